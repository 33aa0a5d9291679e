#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Laws 7 and 11: events of running, stopped and killed programs come in order of time or marked, each once, and for each
object and kind what came and what is told as missing makes up what was counted.
"""
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import scope  # noqa: E402
import tap as taps  # noqa: E402

ROW = 64          # bytes of a slot
LIMIT = 60        # seconds
HANDLERS = [] if os.environ.get("NTSCOPE_SANITIZE") == "thread" else ["handlers"]


class Talker:
    """A program that answers each line with a line."""

    def __init__(self, command, logs):
        self.program = scope.Program(command, scope.environment(logs), stdin=subprocess.PIPE)

    def send(self, line):
        self.program.process.stdin.write(line.encode() + b"\n")
        self.program.process.stdin.flush()

    def answer(self):
        return self.program.process.stdout.readline().decode()

    def ask(self, line):
        self.send(line)
        return self.answer()

    def finish(self):
        """The last line, as JSON, and the exit code with what went wrong."""
        result = self.program.finish(LIMIT)
        lines = result.text.splitlines()
        return json.loads(lines[-1]) if lines else None, (result.code, result.errors)

    def __enter__(self):
        return self

    def __exit__(self, *rest):
        self.program.__exit__(*rest)


class Reader(Talker):
    def __init__(self, logs, *options):
        super().__init__([scope.built("tests", "order_check"), *options, logs], logs)

    def read(self, line):
        return json.loads(self.ask(line))


def counter(logs, ring, threads, *options):
    return Talker([scope.built("tests", "h_order"), str(ring), str(threads), *options], logs)


def objects(answer, name):
    """What became of the counts of the objects of that name, of all programs."""
    return [value for key, value in answer.items() if isinstance(value, dict) and key.split(".", 1)[1] == name]


def nothing_is_lost(tap):
    """Rings that hold all: read as it comes, nothing is missing but what was not logged."""
    threads, parts, rounds = 4, 10, 400 * scope.scaled(7)  # in each part; at its end the mask is on
    with scope.workspace() as logs, counter(logs, 8 << 20, threads, *HANDLERS) as program, Reader(logs) as reader:
        reader.send("follow")
        for _ in range(parts):
            program.ask(f"run {rounds}")
        time.sleep(0.3)  # new programs are looked for ten times a second
        reader.ask("flush")
        reader.answer()
        truth, ended = program.finish()
        last, outcome = reader.finish()
        tap.equal((ended[0], outcome[0], outcome[1]), (0, 0, ""), "read as it comes: all laws hold", last)
        tap.equal((last["twice"], last["odd"], last["early"]), (0, 0, 0), "nothing comes twice or too early", last)
        names = ["shared", "locked", "masked"] + [f"own-{i}" for i in range(threads)]
        each = [objects(last, name)[0] for name in names]
        tap.equal([one["lost"] - one["found"] for one in each], [0] * len(each), "nothing is called lost", last)
        tap.equal([one["came"] + one["not_logged"] for one in each], [one["tally"] for one in each],
                  "what came and what was not logged is what was counted", last)
        tap.equal(objects(last, "masked")[0]["not_logged"], truth["while_off"],
                  "not logged is what was counted while the mask was off", last)
        tap.ok(truth["while_off"] > 0, "some was")


def one_loss_a_ring(tap):
    """A reader that stood still for three laps is told of one loss a ring, and goes on."""
    ring, threads = 64 << 10, 4
    with scope.workspace() as logs, counter(logs, ring, threads) as program, Reader(logs) as reader:
        program.ask("run 100")
        first = reader.read("flush")
        tap.equal((first["losses"], first["rings"], first["errors"]), (0, threads + 1, 0), "nothing lost at first", first)
        program.ask(f"run {3 * ring // ROW}")
        second = reader.read("flush")
        tap.equal((second["rings_with_losses"], second["most_losses"], second["errors"]), (threads, 1, 0),
                  "after three laps one loss in each ring", second)
        tap.ok(second["events"] > 0 and second["lost"] > threads * 2 * ring // ROW, "most was lost", second)
        program.ask("run 100")
        third = reader.read("flush")
        tap.equal((third["losses"], third["errors"]), (0, 0), "then it goes on without", third)
        tap.ok(third["events"] >= threads * 100, "and reads all that comes", third)
        program.finish()
        last, outcome = reader.finish()
        tap.equal((outcome[0], outcome[1]), (0, ""), "all laws hold", last)
        own = objects(last, "own-1")[0]
        tap.ok(own["lost"] > 0 and own["found"] == 0, "what was lost of an object is told with its number", last)


def overrun_all_the_time(tap):
    """Small rings, a reader that follows with little memory and room, and handlers in between."""
    for options in ([], ["--memory", "1", "--room", "7"]):
        with scope.workspace() as logs, counter(logs, 16 << 10, 3, *HANDLERS) as program, \
                Reader(logs, *options) as reader:
            reader.send("follow")
            program.ask(f"run {scope.scaled(1000000, 20000)}")
            program.finish()
            last, outcome = reader.finish()
            name = " ".join(["overrun", *options])
            tap.equal((outcome[0], outcome[1], last["odd"]), (0, "", 0), f"{name}: all laws hold", last)


def stopped_and_killed(tap):
    """Programs that are stopped in the middle, go on, and are killed in the middle, with one that ends by itself."""
    rounds = scope.scaled(60, 4)
    with scope.workspace() as logs, Reader(logs) as reader:
        wrong = []
        for number in range(rounds):
            with counter(logs, (16 << 10) << number % 5, 3, *HANDLERS) as first, \
                    counter(logs, 64 << 10, 2) as second:
                first.ask("go")
                second.ask("run 500")
                os.kill(first.program.pid, signal.SIGSTOP)
                wrong += [answer for answer in (reader.read("flush"), reader.read("flush")) if answer["errors"]]
                os.kill(first.program.pid, signal.SIGCONT)
                second.ask("run 500")
                wrong += [answer for answer in [reader.read("flush")] if answer["errors"]]
                first.program.end(signal.SIGKILL)
                second.finish()
                wrong += [answer for answer in [reader.read("flush")] if answer["errors"]]
        last, outcome = reader.finish()
        tap.equal((outcome[0], outcome[1], wrong), (0, "", []), f"{rounds} times stopped and killed: all laws hold", last)
        tap.equal((last["twice"], last["odd"]), (0, 0), "nothing comes twice", last)


def main():
    tap = taps.Tap()
    for case in (nothing_is_lost, one_loss_a_ring, overrun_all_the_time, stopped_and_killed):
        tap.attempt(case.__name__, case, tap)
    tap.done()


if __name__ == "__main__":
    main()
