#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Sums over a program go together in every snapshot, while it folds closed objects as fast as it can.

churn.py [--seed N]: a seed repeats what the program does, not the moments of the snapshots.
"""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import scope  # noqa: E402
import tap  # noqa: E402

CHURN_CHECK = scope.built("tests", "churn_check")
LIMIT = 100  # seconds
# name, threads, cap in bytes (a smaller one uses slots again sooner), snapshots at TEST_SCALE 1
SHAPES = [
    ("slots used again after 32 others", 1, 1 << 19, 20000),
    ("two threads, slots used again after 32 others", 2, 1 << 19, 20000),
    ("four threads, slots used again after 128 others", 4, 1 << 21, 20000),
    ("a program of the usual size", 1, 1 << 26, 3000),
    ("two threads of the usual size", 2, 1 << 26, 3000),
    ("four threads of the usual size", 4, 1 << 26, 3000),
]


def shape(cases, seed, name, threads, cap, snapshots):
    with scope.workspace() as place:
        result = scope.run([CHURN_CHECK, place, str(threads), str(cap), str(scope.scaled(snapshots, 10)), str(seed)],
                           limit=LIMIT)
    if not cases.equal(result.code, 0, f"{name}: sums between what was counted before and after", repr(result)):
        return
    told = result.json()
    cases.note(result.text.strip())
    slow = told["lives"] < 10000  # a machine too busy to use a slot again in that time
    cases.ok(told["folded"] > 0 or slow, f"{name}: objects were folded", repr(result))
    cases.ok(told["moving"] * 100 <= told["snapshots"], f"{name}: hardly ever given up", repr(result))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int)
    seed = scope.base_seed(parser.parse_args().seed)
    cases = tap.Tap()
    cases.note(f"seed {seed}")
    for number, row in enumerate(SHAPES):
        for end in range(2):  # an even seed rests in the end, an odd one is killed
            cases.attempt(row[0], shape, cases, (seed & ~1) + 2 * number + end, *row)
    cases.done()


if __name__ == "__main__":
    main()
