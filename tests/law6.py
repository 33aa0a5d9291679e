#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Law 6: with no reader there is no thread, no system call and no allocation for an event, logged or masked off."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import law8_run as law8  # noqa: E402
import tap as taps  # noqa: E402

PHASES = ["exclusive", "shared", "masked-off", "timed", "with-fields", "many-kinds", "closed-object", "tally", "no-log"]


def costs(tap):
    if law8.SANITIZED:
        tap.skip("costs of an event", "sanitizers allocate and call")
        return
    with law8.Place() as place:
        result = place.run([law8.helper("h_law6")], truth=False)
    lines = [line.split() for line in result.out.splitlines()]
    calls = [int(line[1]) for line in lines if line[0] == "calls"]
    phases = [line for line in lines if line[0] != "calls"]
    tap.equal((result.code, [line[0] for line in phases]), (0, PHASES), "all phases ran", result.err)
    for line, number in zip(phases, calls):
        name, events, allocations, threads = line[0], int(line[1]), int(line[2]), int(line[3])
        tap.equal((number, allocations, threads), (0, 0, 1),
                  f"{name}: system calls, allocations and threads of {events} events")


def dropping(tap):
    """Where there is no room for a ring, it is asked for now and then, not at each event."""
    if law8.SANITIZED:
        tap.skip("costs of a dropped event", "sanitizers allocate and call")
        return
    with law8.Place() as place:
        result = place.run([law8.helper("h_law6"), "dropping"], truth=False)
    lines = [line.split() for line in result.out.splitlines()]
    calls = [int(line[1]) for line in lines if line[0] == "calls"]
    tap.ok(len(calls) == 1 and calls[0] < 5000, "100000 dropped events: fewer than 5000 system calls", result.note())


def main():
    law8.main(taps.Tap(), [costs, dropping])


if __name__ == "__main__":
    main()
