#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs benchmarks one after another, prints a table and writes BUILD/bench.json.

A benchmark is a program in BUILD/bench or a bench/*.py: `--list` prints the names of its rows, other
arguments pick rows, and each row is a JSON object on a line of its own. Rows that could not run are
absent; their program says why on stderr.
"""
import argparse
import glob
import json
import os
import subprocess
import sys

KEYS = ("name", "median", "spread", "unit", "ratio", "against")


def find_benchmarks(build):
    """Command -> names of its rows."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench", "*.py")
    programs = [p for p in glob.glob(os.path.join(build, "bench", "*"))
                if os.path.isfile(p) and os.access(p, os.X_OK) and not p.endswith("_test")]
    found = {}
    for path in sorted(programs + glob.glob(source)):
        command = [sys.executable, path] if path.endswith(".py") else [os.path.abspath(path)]
        listing = subprocess.run(command + ["--list"], capture_output=True, text=True, timeout=60)
        found[tuple(command)] = listing.stdout.split()
    return found


def run_benchmark(command, rows, environment, limit):
    """Runs one benchmark; returns (rows measured, whether it succeeded)."""
    name = os.path.basename(command[-1])
    measured = []
    try:
        result = subprocess.run(list(command) + rows, stdout=subprocess.PIPE, text=True,
                                timeout=limit, env=environment)
    except subprocess.TimeoutExpired:
        print(f"bench: {name}: not done after {limit} s", file=sys.stderr)
        return measured, False
    for line in result.stdout.splitlines():
        try:
            row = json.loads(line)
            measured.append({**{key: row[key] for key in KEYS},
                             **{key: row[key] for key in row if key not in KEYS}})
        except (ValueError, KeyError, TypeError):
            print(f"bench: {name}: not a row: {line}", file=sys.stderr)
            return measured, False
    if result.returncode < 0 or result.returncode > 1:
        print(f"bench: {name}: exit code {result.returncode}", file=sys.stderr)
        return measured, False
    return measured, True


def print_table(rows):
    head = ("name", "median", "spread", "unit", "ratio", "against", "limit", "")
    table = [head]
    for row in rows:
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.3f}"
        verdict = "" if "pass" not in row else ("pass" if row["pass"] else "FAIL")
        table.append((row["name"], f"{row['median']:.4g}", f"{row['spread']:.3g}", row["unit"], ratio,
                      row["against"] or "", str(row.get("limit", "")), verdict))
    widths = [max(len(line[i]) for line in table) for i in range(len(head))]
    for line in table:
        cells = [cell.rjust(width) if i in (1, 2, 4) else cell.ljust(width)
                 for i, (cell, width) in enumerate(zip(line, widths))]
        print("  ".join(cells).rstrip())


def write_json(path, rows):
    with open(path + ".new", "w", encoding="utf-8") as stream:
        stream.write("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")
    os.replace(path + ".new", path)


def main():
    parser = argparse.ArgumentParser(description="Runs benchmarks.")
    parser.add_argument("--build", default="build")
    parser.add_argument("--timeout", type=int, default=1200, help="seconds a benchmark may take")
    parser.add_argument("--strict", action="store_true", help="fail when a limit is not kept")
    parser.add_argument("names", nargs="*", help="rows to measure; default: all")
    args = parser.parse_args()

    benchmarks = find_benchmarks(args.build)
    known = {name for rows in benchmarks.values() for name in rows}
    for name in args.names:
        if name not in known:
            print(f"bench: no row {name}; there are: {' '.join(sorted(known))}", file=sys.stderr)
            return 2

    environment = dict(os.environ, NTSCOPE_BUILD=os.path.abspath(args.build))
    rows, good = [], True
    for command, names in benchmarks.items():
        picked = [name for name in names if name in args.names]
        if args.names and not picked:
            continue
        measured, succeeded = run_benchmark(command, picked, environment, args.timeout)
        rows += measured
        good &= succeeded
    print_table(rows)
    write_json(os.path.join(args.build, "bench.json"), rows)
    kept = all(row.get("pass", True) for row in rows)
    return 0 if good and (kept or not args.strict) else 1


if __name__ == "__main__":
    sys.exit(main())
