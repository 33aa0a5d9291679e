#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Law 2 on random relays and on programs that do nothing but change sessions: every total of a session is the truth,
to the byte, or is said to be "at least"; through tiny rings, stopped readers, stopped programs, more sessions than
there is room for, and kill -9 at any instruction.

law2_relay.py [--seed N] [--runs N] [--kind plain|stopped|starved|crowded|killed|counter]: a run's seed repeats its
options, not the instruction that a signal meets.
"""
import argparse
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import processes  # noqa: E402
import relay  # noqa: E402
import scope  # noqa: E402
import session_answers  # noqa: E402
import sessions  # noqa: E402
import tap  # noqa: E402

RUNS = 200    # at TEST_SCALE 1: relays that come to their end, and as many that are stopped on the way
KILLS = 500   # of relays' processes, and as many of programs that only count
CROWDED = 60
STARVED = 20
LIMIT = 60    # seconds
SHOWN = 5
PICKED = 1000  # sessions of a log, of which channels are looked at


class Outcome:
    """What all runs met: a property test that never meets anything shows nothing."""

    def __init__(self):
        self.runs = self.looks = self.kills = self.exact = self.at_least = self.trees = self.in_flight = 0
        self.sessions = self.refused = self.unsettled = self.unlogged = self.lost = 0
        self.shown = self.shown_trees = self.channels = self.channels_least = 0
        self.met = {}
        self.run_faults, self.faults = [], []

    def note(self):
        met = ", ".join(f"{number} {name}" for name, number in self.met.items())
        return f"{self.runs} runs, {self.looks} looks at their logs, {self.kills} kills; {self.sessions} sessions made; " \
               f"{self.exact} sums exact, {self.at_least} at least, {self.trees} trees of some of those exact; " \
               f"{self.in_flight} operations in flight, {self.unsettled} sums and {self.refused} programs' tallies " \
               f"had no room, " \
               f"{self.unlogged} died before they had a log; met: {met}; shown: {self.shown} sessions exact, " \
               f"{self.shown_trees} of them with others below, {self.channels} channels of sessions exact, " \
               f"{self.channels_least} at least"

    def look(self, label, logs, truth, threads, killed=False):
        """Compares the logs that there are now with what their programs counted. threads: that each may have."""
        known = relay.load_truth(truth)
        result = scope.run([scope.SESSIONS_CHECK, logs], limit=LIMIT, data=sessions.ids_of(known))
        if result.code != 0 or result.err:
            self.faults.append(f"{label}: sessions_check: {result!r}")
            return
        comparison = sessions.Comparison(result.json(), known, threads if killed else 0)
        faults = comparison.differences
        faults += [f"{process['name']}.{process['pid']} left no log" for process in comparison.missing
                   if not killed or any(int(life["handle"], 16) for life in process["objects"])]
        self.faults += [f"{label}: {fault}" for fault in faults[:SHOWN]]
        self.looks += 1
        self.exact += comparison.exact
        self.at_least += comparison.at_least
        self.trees += comparison.whole_trees
        self.in_flight += comparison.in_flight
        self.sessions += comparison.sessions
        self.refused += comparison.refused
        self.unsettled += comparison.unsettled
        self.unlogged += len(comparison.missing)
        for name, number in comparison.met.items():
            self.met[name] = self.met.get(name, 0) + number
        self.answers(label, logs, known, result.json(), threads if killed else 0)

    def answers(self, label, logs, known, said, doubts):
        """What ntscope makes of it."""
        if not said["programs"]:
            return
        result = scope.ntscope("session", "--json", logs=logs, limit=LIMIT)
        if result.code != 0 or result.err:
            self.faults.append(f"{label}: {result!r}")
            return
        answer = session_answers.Answer(result.json(), said, known, doubts)
        self.faults += [f"{label}: ntscope session: {fault}" for fault in answer.differences[:SHOWN]]
        self.shown += answer.exact
        self.shown_trees += answer.trees
        ids = [one["id"] for one in result.json()["sessions"]]
        if not ids:
            return
        result = scope.ntscope("session", "--json", *ids[:: max(1, len(ids) // PICKED)], logs=logs, limit=LIMIT)
        if result.code != 0 or result.err:
            self.faults.append(f"{label}: {result!r}")
            return
        exact, least, faults = session_answers.check_channels(result.json(), known)
        self.faults += [f"{label}: ntscope session ID: {fault}" for fault in faults[:SHOWN]]
        self.channels += exact
        self.channels_least += least


def random_options(seed, **fixed):
    return relay.Options(seed, **{"sessions": "on", **fixed})


class Place:
    """A workspace and a relay's command in it."""

    def __init__(self, work, options):
        self.logs, self.truth = relay.directory_of(work, "logs"), relay.directory_of(work, "truth")
        self.threads = options["threads"] + 2  # of a worker: these, a reader and a writer
        self.command = options.command(self.truth)
        self.env = scope.environment(self.logs, NTSCOPE_KEEP="all", TMPDIR=work)


def ended(outcome, label, result):
    if result.code == 0 and not result.err:
        return True
    outcome.run_faults.append(f"{label}: {result!r}")
    return False


def plain_run(outcome, seed, options):
    label = f"seed {seed}: relay {options}"
    with scope.workspace() as work:
        place = Place(work, options)
        if ended(outcome, label, scope.run(place.command, place.env, LIMIT)):
            outcome.look(label, place.logs, place.truth, place.threads)
            outcome.runs += 1


def stopped_run(outcome, seed, options):
    """A relay whose processes are all stopped now and then: what a log holds at any moment, while its program lives."""
    chance = random.Random(seed ^ 0x5709)
    label = f"seed {seed}: relay {options}, stopped"
    with scope.workspace() as work:
        place = Place(work, options)
        with scope.Program(place.command, place.env) as program:
            scope.wait_for(lambda: processes.of_truth(place.truth), LIMIT)
            for _ in range(3):
                time.sleep(chance.choice((0.005, 0.05)) * chance.random())
                if not processes.stop(program.pid):
                    break
                outcome.look(f"{label} on the way", place.logs, place.truth, place.threads, killed=True)
                processes.resume(program.pid)
            result = program.finish(LIMIT)
        if ended(outcome, label, result):
            outcome.look(label, place.logs, place.truth, place.threads)
            outcome.runs += 1


def starved_run(outcome, seed, options):
    """A reader that is stopped while rings of 256 slots go round many times."""
    label = f"seed {seed}: relay {options}, reader stopped"
    with scope.workspace() as work:
        place = Place(work, options)
        reader_command = [scope.EVENTS_CHECK, "--live", "--pause", "1", "--seed", str(seed), place.logs, place.truth]
        with scope.Program(reader_command, stdin=-1) as reader:
            with scope.Program(place.command, place.env) as program:
                scope.wait_for(lambda: processes.of_truth(place.truth), LIMIT)
                time.sleep(0.05)
                os.kill(reader.pid, signal.SIGSTOP)
                result = program.finish(LIMIT)
            os.kill(reader.pid, signal.SIGCONT)
            read = reader.finish(LIMIT, b"")
        if not ended(outcome, label, result):
            return
        if read.code != 0:
            outcome.faults.append(f"{label}: events_check: {read!r}")
        else:
            outcome.lost += read.json()["lost"]
        outcome.look(label, place.logs, place.truth, place.threads)
        outcome.runs += 1


def killed_run(outcome, seed, options):
    chance = random.Random(seed ^ 0x5EED)
    label = f"seed {seed}: relay {options}, killed"
    with scope.workspace() as work:
        place = Place(work, options)
        with scope.Program(place.command, place.env) as program:
            scope.wait_for(lambda: processes.of_truth(place.truth), LIMIT)
            time.sleep(chance.choice((0.02, 0.12)) * chance.random())
            pids = processes.choose(chance, processes.of_truth(place.truth))
            killed = [pid for pid in pids if processes.kill(pid, program.pid)]
            if chance.random() < 0.5:  # the rest at once, too, or it ends by itself
                killed += [pid for pid in processes.of_truth(place.truth)
                           if pid not in killed and processes.kill(pid, program.pid)]
            result = program.finish(LIMIT)
        if result.timed_out:
            outcome.run_faults.append(f"{label}: {result!r}")
            return
        outcome.look(label, place.logs, place.truth, place.threads, killed=True)
        outcome.runs += 1
        outcome.kills += len(killed)


def counter_run(outcome, seed, _options):
    """Most kills meet a settlement or a fold: there is hardly anything else."""
    chance = random.Random(seed ^ 0xC0FFEE)
    with scope.workspace() as work:
        logs, truth = relay.directory_of(work, "logs"), relay.directory_of(work, "truth")
        threads = chance.randint(1, 4)
        command = [scope.SESSION_COUNTER, truth, str(threads), str(chance.choice((16384, 65536))),
                   str(chance.choice((524288, 524288, 1048576, 67108864))), str(chance.choice((2, 30, 300, 3000))),
                   str(seed)]
        label = f"seed {seed}: session_counter {' '.join(command[2:])}"
        with scope.Program(command, scope.environment(logs)) as program:
            program.process.stdout.readline()
            time.sleep(chance.choice((0.002, 0.01, 0.04)) * chance.random())
            killed = processes.kill(program.pid, program.pid)
            result = program.finish(LIMIT)
        if not killed:
            outcome.run_faults.append(f"{label}: {result!r}")
            return
        outcome.look(label, logs, truth, threads, killed=True)
        outcome.runs += 1
        outcome.kills += 1


def repeat(test, base, what, run, options, enough):
    """Runs until there is enough, and reports."""
    outcome = Outcome()
    seed = base
    while not enough(outcome) and len(outcome.run_faults) < 20:
        run(outcome, seed, options(seed))
        seed += 1
    test.note(outcome.note())
    test.ok(not outcome.run_faults, f"{what}: every program does its work", *outcome.run_faults[:20])
    test.ok(outcome.exact and not outcome.faults,
            f"{what}: every total of a session is the truth, or says \"at least\"; together they are what the objects "
            "counted; sessions have the names and parents that they were given", *outcome.faults[:40])
    return outcome


def plain(test, base, runs):
    outcome = repeat(test, base, "relays", plain_run, lambda seed: random_options(seed, cap=None),
                     lambda outcome: outcome.runs >= runs)
    test.ok(not outcome.at_least and not outcome.unsettled, "relays with room enough: no total says \"at least\"",
            outcome.note())


def stopped(test, base, runs):
    repeat(test, base, "relays stopped on the way", stopped_run,
           lambda seed: random_options(seed, rate=random.Random(seed).choice((0, 2000)), requests=400),
           lambda outcome: outcome.runs >= runs)


def starved(test, base, runs):
    outcome = repeat(test, base, "relays with a stopped reader", starved_run,
                     lambda seed: random_options(seed, ring=16384, requests=1500, workers=2),
                     lambda outcome: outcome.runs >= runs)
    test.ok(outcome.lost > 0, "the stopped reader lost events", f"{outcome.lost}")


def crowded(test, base, runs):
    """More sessions than there is room for."""
    outcome = repeat(test, base, "relays with more sessions than room", plain_run,
                     lambda seed: random_options(seed, requests=1500, cap=524288, ring=16384, parts=8,
                                                 **{"session-count": 0, "size": "0:64"}),
                     lambda outcome: outcome.runs >= runs)
    test.ok(outcome.at_least and outcome.met["given_parent"] and outcome.met["given_older"],
            "sessions were given up, to their parents and to older", outcome.note())


def killed(test, base, kills):
    repeat(test, base, "relays that are killed", killed_run,
           lambda seed: random_options(seed, requests=random.Random(seed).randint(300, 3000), seconds=1,
                                       rate=random.Random(seed).choice((0, 2000, 20000))),
           lambda outcome: outcome.kills >= kills)


def counter(test, base, kills):
    outcome = repeat(test, base, "programs that only change sessions", counter_run, lambda _: None,
                     lambda outcome: outcome.kills >= kills)
    if kills >= 50:
        test.ok(all(outcome.met[name] for name in ("waiting", "given_parent", "given_older")) and outcome.in_flight and
                outcome.at_least and outcome.trees,
                "kills met operations in flight, settlements that were not folded, sessions that were given up",
                outcome.note())


def main():
    kinds = {"plain": (plain, RUNS, 3), "stopped": (stopped, RUNS, 3), "starved": (starved, STARVED, 1),
             "crowded": (crowded, CROWDED, 1), "killed": (killed, KILLS, 5), "counter": (counter, KILLS, 5)}
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--kind", choices=kinds)
    arguments = parser.parse_args()
    test = tap.Tap()
    base = scope.base_seed(arguments.seed)
    test.note(f"TEST_SEED={base}")
    if os.environ.get("NTSCOPE_SANITIZE") == "thread":
        del kinds["counter"]  # it makes a 16-byte store of two behind a lock: who is killed inside leaves it torn
    for name, (function, full, least) in kinds.items():
        if arguments.kind in (None, name):
            start = time.monotonic()
            test.attempt(name, function, test, base, arguments.runs or scope.scaled(full, least))
            test.note(f"{name}: {time.monotonic() - start:.1f} s")
    test.done()


if __name__ == "__main__":
    main()
