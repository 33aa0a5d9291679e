#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts test cases over the logs of test runs (meson-logs/testlog.json): one line of three numbers,
passed, failed, skipped.

A TAP case is one case. A test that crashed, ran out of time, or printed fewer cases than it planned
counts as one failed case more; so does a log that is missing.

count-tests.py --why LOG…: prints instead, shortly, what each failed test said.
"""
import json
import re
import sys

CASE = re.compile(r"^(not )?ok\b\s*\d*\s*(?:-\s*)?[^#]*(#\s*(?:SKIP|TODO)\b)?", re.IGNORECASE)
PLAN = re.compile(r"^1\.\.(\d+)\s*(#\s*SKIP\b)?", re.IGNORECASE)
GOOD = ("OK", "EXPECTEDFAIL", "SKIP")
WRONG = re.compile(r"Sanitizer|runtime error|\[  ERROR|Assertion|Traceback")  # where the reason begins
NOTES = 8    # lines
MOST = 40    # lines a test
WIDTH = 300  # characters


def count_tap(text):
    """(passed, failed, skipped, planned or None) of one test's output."""
    passed = failed = skipped = 0
    planned = None
    for line in text.splitlines():
        plan = PLAN.match(line)
        case = CASE.match(line)
        if plan:
            planned = int(plan.group(1))
            skipped += 1 if plan.group(2) else 0
        elif case and case.group(2):
            skipped += 1
        elif case:
            failed += 1 if case.group(1) else 0
            passed += 0 if case.group(1) else 1
    return passed, failed, skipped, planned


def count_test(test):
    """(passed, failed, skipped) of one test of a log."""
    passed, failed, skipped, planned = count_tap(test.get("stdout", ""))
    short = planned is not None and passed + failed + skipped < planned
    if failed == 0 and (short or test["result"] not in GOOD):
        failed += 1
    if passed + failed + skipped == 0:
        skipped += 1 if test["result"] == "SKIP" else 0
        passed += 1 if test["result"] == "OK" else 0
    return passed, failed, skipped


def load(path):
    """The tests of a log; None if it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return [json.loads(line) for line in stream if line.strip()]
    except (OSError, ValueError) as error:
        print(f"count-tests: {path}: {error}", file=sys.stderr)
        return None


def why(test):
    """Failed cases with their diagnostics, and what else the test said last."""
    lines = test.get("stdout", "").splitlines()
    shown = []
    for at, line in enumerate(lines):
        if not line.startswith("not ok"):
            continue
        shown.append(line)
        for note in lines[at + 1:at + 1 + NOTES]:
            if CASE.match(note) or PLAN.match(note):
                break
            shown.append(note)
    said = [line for line in test.get("stderr", "").splitlines() if line.strip()]
    first = next((at for at, line in enumerate(said) if WRONG.search(line)), len(said) - NOTES)
    shown += said[max(first, 0):max(first, 0) + 2 * NOTES]
    return (shown or lines[-NOTES:])[:MOST]


def tell(path):
    for test in load(path) or []:
        if count_test(test)[1]:
            print(f"-- {test['name']}: {test['result']} after {test.get('duration', 0):.1f} s")
            for line in why(test):
                print("   " + line[:WIDTH])


def count_log(path):
    totals = [0, 0, 0]
    tests = load(path)
    if tests is None:
        return [0, 1, 0]
    for test in tests:
        counts = count_test(test)
        totals = [total + count for total, count in zip(totals, counts)]
        if counts[1]:
            print(f"count-tests: failed: {test['name']} ({test['result']})", file=sys.stderr)
    return totals


def main():
    if sys.argv[1:2] == ["--why"]:
        for path in sys.argv[2:]:
            tell(path)
        return
    totals = [0, 0, 0]
    for path in sys.argv[1:]:
        totals = [total + count for total, count in zip(totals, count_log(path))]
    print(*totals)


if __name__ == "__main__":
    main()
