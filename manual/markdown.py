# SPDX-License-Identifier: BSD-3-Clause
"""The part of Markdown that docs/ and README.md use: headings, paragraphs, tables, lists, code."""
import re

import roff

ITEM = re.compile(r"(?:\*|(\d+)\.) +(.*)")


def parts(text):
    """Splits at headings of the first level: (heading, text below it)."""
    found = re.split(r"(?m)^# +(.*)\n", text)
    return list(zip(found[1::2], found[2::2]))


def section(text, heading):
    """What stands below a heading of the second level."""
    match = re.search(rf"(?ms)^## +{re.escape(heading)}\n(.*?)(?=^## |\Z)", text)
    if not match:
        raise ValueError(f"no heading '{heading}'")
    return match[1]


def code_of(text):
    """The first code in it, as lines."""
    match = re.search(r"(?ms)^```\w*\n(.*?)^```", text)
    if match:
        return match[1].splitlines()
    lines = re.search(r"(?m)^(?:    .*\n|\n(?=    ))+", text)[0].strip("\n").splitlines()
    return [line[4:] for line in lines]


def cells(line):
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def table_of(text):
    """The first table in it: head, rows."""
    lines = re.search(r"(?m)^\|.*(?:\n\|.*)*", text)[0].splitlines()
    return cells(lines[0]), [cells(line) for line in lines[2:]]


def list_of(block):
    """Lines of a list as mdoc; further lines of an item are indented."""
    items, numbered = [], block[0][0].isdigit()
    for line in block:
        match = ITEM.match(line)
        if match:
            items.append([match[2]])
        else:
            items[-1].append(line.strip())
    out = [".Bl -enum -compact" if numbered else ".Bl -bullet -compact"]
    for item in items:
        out += [".It", *roff.fill(" ".join(item))]
    return out + [".El"]


def blocks(text):
    """(kind, lines): heading, table, code, list, text."""
    lines, at = text.splitlines(), 0

    def take(more):
        nonlocal at
        first = at
        at += 1
        while at < len(lines) and more(lines[at]):
            at += 1
        return lines[first:at]

    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
        elif line.startswith("#"):
            yield "heading", take(lambda _: False)
        elif line.startswith("```"):
            code = take(lambda other: not other.startswith("```"))[1:]
            at += 1
            yield "code", code
        elif line.startswith("|"):
            yield "table", take(lambda other: other.startswith("|"))
        elif line.startswith("    "):
            yield "code", [other[4:] for other in take(lambda other: other.startswith("    "))]
        elif ITEM.match(line):
            yield "list", take(lambda other: ITEM.match(other) or other.startswith(" "))
        else:
            yield "text", take(lambda other: other.strip() and not ITEM.match(other) and other[0] not in "#|`" or
                               other.startswith("`") and not other.startswith("```"))


def mdoc(text):
    """The text as mdoc: headings of the second level are sections, those below them subsections."""
    out, fresh = [], True
    for kind, lines in blocks(text):
        if kind == "heading":
            level, heading = re.match(r"(#+) +(.*)", lines[0]).groups()
            out.append(f".Sh {roff.escape(heading).upper()}" if len(level) == 2 else f".Ss {roff.escape(heading)}")
            fresh = True
            continue
        # A display stands off by itself; after a heading nothing needs room.
        if not fresh and kind in ("text", "table", "list"):
            out.append(".Pp")
        fresh = False
        if kind == "table":
            out += roff.table(cells(lines[0]), [cells(line) for line in lines[2:]])
        elif kind == "code":
            out += roff.display(lines)
        else:
            out += list_of(lines) if kind == "list" else roff.fill(" ".join(lines))
    return out
