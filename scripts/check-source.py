#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Rules on text: the SPDX line, line length (clang-format leaves comments alone), banned functions, and paths of a developer's machine."""
import re

from sourcefiles import Findings, blank_literals, read_text, tracked_files

SPDX = "SPDX-License-Identifier: BSD-3-Clause"
SOURCE_SUFFIXES = (".c", ".h", ".def", ".py", ".sh", ".build", ".lua", ".map")

# name: what to use instead
BANNED = {
    "strcpy": "a copy with a length", "strcat": "a copy with a length",
    "stpcpy": "a copy with a length", "strncpy": "memcpy with a checked length",
    "strncat": "a copy with a length", "sprintf": "snprintf", "vsprintf": "vsnprintf",
    "gets": "getline or fgets", "strtok": "strtok_r or a parser", "alloca": "a bounded array",
    "atoi": "a parser that reports errors", "atol": "a parser that reports errors",
    "atoll": "a parser that reports errors", "atof": "a parser that reports errors",
    "system": "posix_spawn", "popen": "posix_spawn and a pipe",
    "tmpnam": "mkstemp", "mktemp": "mkstemp", "tempnam": "mkstemp",
    "setjmp": "error codes", "sigsetjmp": "error codes",
    "longjmp": "error codes", "siglongjmp": "error codes",
    "asctime": "strftime", "ctime": "strftime", "localtime": "localtime_r", "gmtime": "gmtime_r",
}

# What runs inside a traced program neither prints, allocates, ends it nor takes its signals.
IN_TRACED = {
    "malloc": "mmap", "calloc": "mmap", "realloc": "mmap", "free": "munmap", "strdup": "no heap",
    "asprintf": "no heap", "printf": "no output", "fprintf": "no output", "puts": "no output",
    "perror": "no output", "fputs": "no output", "vfprintf": "no output", "dprintf": "no output",
    "abort": "drop and count", "exit": "drop and count", "_exit": "drop and count",
    "assert": "drop and count", "raise": "drop and count",
    "signal": "no handlers", "sigaction": "no handlers",
}
TRACED_FOLDERS = ("src/log/", "src/transport/", "src/preload/")

# Files that may use a banned name, with the reason; reviewed like code.
ALLOWED = {
    # A truncated file ends a read with SIGBUS; only a jump leaves the faulting copy.
    ("src/source/", "sigsetjmp"), ("src/source/", "siglongjmp"),
    # Messages are the program's own memory; no call of the transport is made in a signal handler.
    *(("src/transport/", name) for name in ("malloc", "calloc", "realloc", "free", "strdup", "asprintf")),
}

CALL = re.compile(r"(?<![\w.>])(\w+)\s*\(")
COLUMNS = 120  # as in .clang-format
MACHINE_PATH = re.compile(r"/(?:work|farm)/")


def is_test(path):
    return re.search(r"_test\.[ch]$", path) is not None


def check_lines(path, text, findings):
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > COLUMNS:
            findings.add(path, number, f"line of {len(line)} columns, limit {COLUMNS}")


def check_spdx(path, text, findings):
    lines = text.splitlines()[:2]
    first = lines[1] if len(lines) > 1 and lines[0].startswith("#!") else (lines or [""])[0]
    if SPDX not in first:
        findings.add(path, 1, f"the first line is not '{SPDX}'")


def check_calls(path, text, findings):
    banned = dict(BANNED)
    if path.startswith(TRACED_FOLDERS) and not is_test(path):
        banned.update(IN_TRACED)
    allowed = {name for folder, name in ALLOWED if path.startswith(folder)}
    for number, line in enumerate(blank_literals(text).splitlines(), 1):
        for name in CALL.findall(line):
            if name in banned and name not in allowed:
                findings.add(path, number, f"banned: {name} (use: {banned[name]})")


def main():
    findings = Findings()
    for path in tracked_files():
        text = read_text(path)
        if text is None:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if MACHINE_PATH.search(line):
                findings.add(path, number, "path of a developer's machine")
        is_script = text.startswith("#!")
        if path.endswith(SOURCE_SUFFIXES) or is_script:
            check_spdx(path, text, findings)
        if path.endswith((".c", ".h", ".def")):
            check_lines(path, text, findings)
            check_calls(path, text, findings)
    findings.finish()


if __name__ == "__main__":
    main()
