#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`ntscope events FILE` with conditions: what is found without reading all of a recording is what reading all of it gives,
to the byte, with all that is missing; and what is not needed is not read.

While following (-f) nothing is left out: that is what is compared with.

find.py [--seed N] [--runs N]
"""
import argparse
import json
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import scope  # noqa: E402
import tap  # noqa: E402

BAD = 3
RUNS, EACH = 400, 10  # recordings at TEST_SCALE 1, and conditions of each
HEAD, HEADER = 64, 64


def made(path, seed):
    result = scope.run([scope.MADE_RECORDING, str(seed), path])
    if result.code != 0:
        raise RuntimeError(f"made_recording {seed}: {result!r}")


def events_of(path):
    lines = [json.loads(line) for line in scope.ntscope("events", "--json", "-f", path).out.splitlines()]
    return [line for line in lines if "reason" not in line]


def time_of(event, change=0):
    seconds, nanoseconds = divmod(event["time"] + change, 10 ** 9)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{nanoseconds:09}Z"


def comparison(chance, events):
    """Something that is true of an event, or nearly."""
    event = chance.choice(events)
    return chance.choice((
        lambda: f"session = '{event['session']}'",
        lambda: f"session = '{event['session']}'",
        lambda: f"session IN ('{event['session']}', '{chance.choice(events)['session']}', '00000000000000ff')",
        lambda: "session = 0",
        lambda: f"session = {chance.getrandbits(64)}",
        lambda: f"object = '{event['object']}'",
        lambda: f"object = '{event['object']}'",
        lambda: f"object IN ('channel-{chance.randrange(60)}', '{event['object']}')",
        lambda: f"path GLOB '*-{chance.randrange(10)}'",
        lambda: f"process = 'worker-{chance.randrange(3)}'",
        lambda: f"NOT object GLOB 'channel-{chance.randrange(1, 5)}*'",
        lambda: f"time >= '{time_of(event)}'",
        lambda: f"time < '{time_of(event)}'",
        lambda: f"time BETWEEN '{time_of(event)}' AND '{time_of(event, 3000000)}'",
        lambda: f"kind = '{chance.choice(('read', 'write', 'mask'))}'",
        lambda: f"value > {chance.randrange(3000)}",
        lambda: "flags = 'late'",
    ))()


def condition(chance, events, depth=0):
    if depth == 2 or chance.random() < 0.5:
        return comparison(chance, events)
    parts = [condition(chance, events, depth + 1) for _ in range(2)]
    return f"({chance.choice((' AND ', ' AND ', ' OR ')).join(parts)})"


def arguments_of(chance, events):
    arguments = []
    if chance.random() < 0.8:
        arguments += ["--where", condition(chance, events)]
    if chance.random() < 0.2:
        arguments += ["--since", time_of(chance.choice(events))]
    if chance.random() < 0.2:
        arguments += ["--until", time_of(chance.choice(events))]
    if chance.random() < 0.3:
        arguments.append(chance.choice((f"**/channel-{chance.randrange(60)}", "worker-0", "**/channel-1*",
                                        f"**/channel-{chance.randrange(10)}/read")))
    return arguments + (["--json"] if chance.random() < 0.5 else [])


def equal_answers(test, seed, runs):
    chance = random.Random(seed)
    wrong, shown = [], 0
    for _ in range(runs):
        number = chance.getrandbits(32)
        with scope.workspace() as folder:
            path = os.path.join(folder, "a.ntrec")
            made(path, number)
            events = events_of(path)
            for _ in range(EACH):
                arguments = arguments_of(chance, events)
                found, read = scope.ntscope("events", path, *arguments), scope.ntscope("events", "-f", path, *arguments)
                shown += found.out.count(b"\n")
                if found.out != read.out or found.timed_out or found.code not in (0, 1, BAD):
                    wrong.append(f"made_recording {number}: {arguments}:\n{found!r}\n{read!r}")
    test.ok(not wrong, f"{runs} recordings, {EACH} conditions of each: what is found is what reading all gives", *wrong[:2])
    test.ok(shown > 0, "some was found")


def blocks_of(data):
    """(offset, size, type) of each."""
    offset, blocks = HEADER, []
    while offset + HEAD <= len(data):
        size = HEAD + int.from_bytes(data[offset + 16:offset + 20], "little") + \
            int.from_bytes(data[offset + 20:offset + 24], "little")
        size += -size % 8
        blocks.append((offset, size, int.from_bytes(data[offset + 8:offset + 10], "little")))
        offset += size
    return blocks


def made_of_blocks(path, chance, least):
    """A recording that has so many blocks of events at least: its number, bytes and these blocks."""
    while True:
        number = chance.getrandbits(32)
        made(path, number)
        with open(path, "rb") as stream:
            data = bytearray(stream.read())
        blocks = [block for block in blocks_of(data) if block[2] == 1]
        if len(blocks) >= least:
            return number, data, blocks


def damaged(test, seed, runs):
    """With any byte wrong what is found is some of what there is, and no damage is told of what is not needed."""
    chance = random.Random(seed)
    wrong, quiet, told = [], 0, 0
    for run in range(runs + 50):
        if run >= runs and quiet:  # more than asked for only until some had a block that was not needed
            break
        with scope.workspace() as folder:
            path = os.path.join(folder, "a.ntrec")
            number, data, blocks = made_of_blocks(path, chance, 1 if run < runs else 3)
            events = events_of(path)
            for _ in range(EACH):
                event = chance.choice(events)
                where = chance.choice((f"object = '{event['object']}'", f"session = '{event['session']}'"))
                whole = set(scope.ntscope("events", path, "--json", "--where", where).out.splitlines())
                offset, size, _ = chance.choice(blocks)
                at = offset + chance.randrange(size)
                broken = bytearray(data)
                broken[at] ^= 1 << chance.randrange(8)
                other = os.path.join(folder, "b.ntrec")
                with open(other, "wb") as stream:
                    stream.write(broken)
                found = scope.ntscope("events", other, "--json", "--where", where)
                lines = {line for line in found.out.splitlines() if b'"reason"' not in line}
                quiet += found.err == b""
                told += found.code == BAD and f" offset {offset}".encode() in found.err
                if not lines <= whole or found.timed_out or (found.err == b"") != (found.code in (0, 1)):
                    wrong.append(f"made_recording {number}: {where}, byte {at}:\n{found!r}")
    test.ok(not wrong, f"{runs} recordings damaged: what is found was there", *wrong[:2])
    test.ok(quiet > 0 and told > 0, "damage is told where it matters alone", f"{told} told, {quiet} not")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int)
    parser.add_argument("--runs", type=int, default=scope.scaled(RUNS, 4))
    arguments = parser.parse_args()
    test = tap.Tap()
    seed = scope.base_seed(arguments.seed)
    test.note(f"seed {seed}")
    test.attempt("equal answers", equal_answers, test, seed, arguments.runs)
    test.attempt("damaged", damaged, test, seed, max(4, arguments.runs // 8))
    test.done()


if __name__ == "__main__":
    main()
