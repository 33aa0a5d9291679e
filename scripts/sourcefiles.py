# SPDX-License-Identifier: BSD-3-Clause
"""What the checks share: the tracked files, and C text with comments and literals blanked."""
import re
import subprocess
import sys

LITERALS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)


def tracked_files(*suffixes):
    """Paths under version control and new ones not ignored, that exist; all, or by suffix."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True, text=True).stdout
    paths = sorted(set(p for p in listing.split("\0") if p))
    return [p for p in paths if not suffixes or p.endswith(suffixes)]


def read_text(path):
    """The text of a file, or None if it vanished or is not text."""
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read()
    except (FileNotFoundError, IsADirectoryError, UnicodeDecodeError):
        return None


def blank_literals(text):
    """The text with comments, strings and characters blanked; lines stay where they were."""
    def blank(match):
        found = match.group(0)
        if found.startswith("/"):
            return re.sub(r"[^\n]", " ", found)
        return found[0] + re.sub(r"[^\n]", " ", found[1:-1]) + found[-1]
    return LITERALS.sub(blank, text)


class Findings:
    """Collects `file:line: what` and prints them in order."""

    def __init__(self):
        self.rows = []

    def add(self, path, line, what):
        self.rows.append((path, line, what))

    def finish(self):
        for path, line, what in sorted(self.rows):
            print(f"{path}:{line}: {what}")
        sys.exit(1 if self.rows else 0)
