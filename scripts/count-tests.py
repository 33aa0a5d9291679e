#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts test cases over the logs of test runs (meson-logs/testlog.json): one line of three numbers,
passed, failed, skipped.

A TAP case is one case. A test that crashed, ran out of time, or printed fewer cases than it planned
counts as one failed case more; so does a log that is missing.
"""
import json
import re
import sys

CASE = re.compile(r"^(not )?ok\b\s*\d*\s*(?:-\s*)?[^#]*(#\s*(?:SKIP|TODO)\b)?", re.IGNORECASE)
PLAN = re.compile(r"^1\.\.(\d+)\s*(#\s*SKIP\b)?", re.IGNORECASE)
GOOD = ("OK", "EXPECTEDFAIL", "SKIP")


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


def count_log(path):
    totals = [0, 0, 0]
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            tests = [json.loads(line) for line in stream if line.strip()]
    except (OSError, ValueError) as error:
        print(f"count-tests: {path}: {error}", file=sys.stderr)
        return [0, 1, 0]
    for test in tests:
        counts = count_test(test)
        totals = [total + count for total, count in zip(totals, counts)]
        if counts[1]:
            print(f"count-tests: failed: {test['name']} ({test['result']})", file=sys.stderr)
    return totals


def main():
    totals = [0, 0, 0]
    for path in sys.argv[1:]:
        totals = [total + count for total, count in zip(totals, count_log(path))]
    print(*totals)


if __name__ == "__main__":
    main()
