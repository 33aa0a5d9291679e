#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Holds src/floors.txt: a module includes only itself and what its line names.

A file belongs to the module that its folder under src/ names, or the nearest folder above it that has a
line; a public header to the module whose "=" line lists it. Tests beside the code (x_test.c) may include any floor, and their own module's.
"""
import re

from sourcefiles import Findings, read_text, tracked_files

FLOORS = "src/floors.txt"
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<nt/([^>]+)>)')


def read_floors(findings):
    """Returns (module -> allowed modules, header -> module)."""
    allowed, owner, module = {}, {}, None
    for number, line in enumerate((read_text(FLOORS) or "").splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        if line.startswith("="):
            for header in line[1:].split():
                if header in owner:
                    findings.add(FLOORS, number, f"{header} belongs to {owner[header]} already")
                owner[header] = module
            continue
        module, _, names = line.partition(":")
        module = module.strip()
        if module in allowed:
            findings.add(FLOORS, number, f"module {module} has two lines")
        for name in names.split():
            if name not in allowed:
                findings.add(FLOORS, number, f"{module} names {name}, which is on no earlier line")
        allowed[module] = set(names.split()) | {module}
    return allowed, owner


def module_of_folder(folder, allowed):
    """The nearest folder of src/ that has a line; the outermost one when none has."""
    while folder not in allowed and "/" in folder:
        folder = folder.rsplit("/", 1)[0]
    return folder


def module_of_path(path, allowed, owner):
    """The module that a source file or header stands in, or None."""
    if path.startswith("src/") and path.count("/") > 1:
        return module_of_folder(path[len("src/"):].rsplit("/", 1)[0], allowed)
    if path.startswith("include/nt/"):
        return owner.get(path[len("include/nt/"):])
    return None


def module_of_include(path, quoted, public, allowed, owner):
    """The module that an include names; "" for a public header that no module lists."""
    if public is not None:
        return owner.get(public, "")
    if quoted.startswith("nt/"):
        return owner.get(quoted[3:], "")
    if "/" in quoted:
        return module_of_folder(quoted.rsplit("/", 1)[0], allowed)
    return module_of_path(path, allowed, owner)


def check_file(path, allowed, owner, findings):
    module = module_of_path(path, allowed, owner)
    if module is None:
        if path.startswith("include/"):
            findings.add(path, 1, f"header belongs to no module in {FLOORS}")
        return
    if module not in allowed:
        findings.add(path, 1, f"module {module} has no line in {FLOORS}")
        return
    is_test = re.search(r"_test\.[ch]$", path) is not None
    for number, line in enumerate((read_text(path) or "").splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target = module_of_include(path, match.group(1), match.group(2), allowed, owner)
        if target == "":
            findings.add(path, number, f"{line.strip()}: belongs to no module in {FLOORS}")
        elif target not in allowed:
            findings.add(path, number, f"{line.strip()}: no module {target} in {FLOORS}")
        elif not is_test and target not in allowed[module]:
            findings.add(path, number, f"{module} may not include {target}: {line.strip()}")


def main():
    findings = Findings()
    allowed, owner = read_floors(findings)
    for path in tracked_files(".c", ".h", ".def"):
        if path.startswith(("src/", "include/")):
            check_file(path, allowed, owner, findings)
    findings.finish()


if __name__ == "__main__":
    main()
