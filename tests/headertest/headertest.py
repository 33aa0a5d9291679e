#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compiles each public header alone and twice, as C17 and as C++17, with every warning an error.

Prints TAP, one case for a header and compiler. Knows nothing of what the headers contain.
"""
import argparse
import os
import subprocess
import sys

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
COMPILERS = [
    ("gcc c17", ["gcc", "-std=c17", "-x", "c"]),
    ("clang c17", ["clang", "-std=c17", "-x", "c"]),
    ("g++ c++17", ["g++", "-std=c++17", "-x", "c++"]),
]


def compile_header(command, include, header):
    source = f"#include <{header}>\n#include <{header}>\nint main(void) {{ return 0; }}\n"
    return subprocess.run(
        command + WARNINGS + ["-O1", "-I", include, "-c", "-o", "/dev/null", "-"],
        input=source, text=True, capture_output=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--include", required=True)
    parser.add_argument("headers", nargs="+")
    args = parser.parse_args()
    headers = sorted(os.path.relpath(h, args.include) for h in args.headers if h.endswith(".h"))
    print(f"1..{len(headers) * len(COMPILERS)}")
    number = failed = 0
    for header in headers:
        for name, command in COMPILERS:
            number += 1
            result = compile_header(command, args.include, header)
            if result.returncode != 0:
                failed += 1
                print(result.stderr, file=sys.stderr)
            print("not ok" if result.returncode else "ok", number, "-", header, name, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
