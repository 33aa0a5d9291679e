#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes all man pages: section 1 from `ntscope help --json`, 3 from the public headers, 5 from docs/format.md.

pages.py TABLES SOURCE DATE OUT: the JSON, the source tree, the date of this version, the folder to be made.
"""
import json
import os
import re
import shutil
import sys

import header
import markdown
import roff
from tables import TOKEN, Source

FORMATS = ("ntlog", "ntrec")  # of the parts of docs/format.md
HEADERS = ("log", "link")


def see_also(*pages):
    out = [".Sh SEE ALSO"]
    for index, page in enumerate(pages):
        out.append(f".Xr {page[0]} {page[1]}" + (" ," if index < len(pages) - 1 else ""))
    return out


# ---- Section 1 ----

def usage(text):
    """A usage line's arguments as macros."""
    lines, glue = [], False
    for token in TOKEN.findall(text):
        if token.isspace():
            glue = False
            continue
        if token in "[]":
            words = "Oo" if token == "[" else "Oc"
        elif token == "…":
            words, glue = "No ...", False
            if lines[-1].startswith("Ar") or "Ns Ar" in lines[-1]:
                lines[-1] += " ..."
                continue
        elif token == "--":
            words = "Fl \\-"
        elif token.startswith("-"):
            words = f"Fl {roff.literal(token[1:])}"
        elif token.isupper():
            words = f"Ar {token}"
        else:
            words = f"No {roff.argument(token)}"
        if glue and token != "]" and lines[-1] != "Oo":
            lines[-1] += " Ns " + words
        elif glue and token == "]" and " Ns Oo" in lines[-1]:
            lines[-1] += " Ns Oc"
        else:
            lines.append(words)
        glue = True
    return ["." + line for line in lines]


def options(rows):
    out = [".Bl -tag -width Ds"]
    for option in rows:
        argument = f" Ar {option['argument']}" if "argument" in option else ""
        short = f"Fl {option['letter']}{argument} , " if "letter" in option else ""
        out.append(f".It {short}Fl \\-{roff.literal(option['name'])}{argument}")
        out += roff.fill(option["text"], False)
    return out + [".El"]


def indented(lines):
    """Indented lines of a help text: a list of words and what they are, or as they are."""
    for form in (r"([\w/-]+): (.+)", r"(\S+)  (.+)"):
        rows = [re.fullmatch(form, line) for line in lines]
        if all(rows):
            return [".Pp", *roff.tags([(row[1], roff.fill(row[2], False)) for row in rows], "Ic")]
    return roff.display(lines)


def help_text(text):
    """The text of a command's help."""
    out, block = [], []

    def flush():
        if block and block[0].startswith("  "):
            out.extend(indented([line[2:] for line in block]))
        elif block:
            out.extend([".Pp", *roff.fill(" ".join(block), False)])
        block.clear()

    for line in text.splitlines():
        if not line or (block and line.startswith("  ") != block[0].startswith("  ")):
            flush()
        if line:
            block.append(line)
    flush()
    return out


def exit_status(tables):
    rows = [(str(code), roff.fill(text)) for code, text in enumerate(tables["codes"])]
    return [".Sh EXIT STATUS", *roff.tags(rows, "")]


def environment(source, names):
    rows = [(name, roff.fill(text)) for name, text in source.variables() if name.partition("=")[0] in names]
    return [".Sh ENVIRONMENT", *roff.tags(rows, "Ev", compact=False)]


def command_page(command, tables, source, release):
    others = [(f"ntscope-{other['name']}", 1) for other in tables["commands"] if other is not command]
    body = [".Sh SYNOPSIS", ".Nm ntscope", f".Cm {command['name']}", *usage(command["arguments"]),
            ".Sh DESCRIPTION", *roff.fill(command["summary"]),
            *help_text(command["text"]),
            ".Pp", "The options are:", *options(command["options"])]
    if any(option["name"] == "dir" for option in command["options"]):
        body += environment(source, {"NTSCOPE_DIR"})
    name = f"ntscope-{command['name']}"
    pages = sorted([("ntscope", 1), *others]) + [("nt_log", 3), ("ntlog", 5), ("ntrec", 5)]
    body += exit_status(tables) + see_also(*pages)
    return roff.page(name, 1, release, [name], roff.nd(command["summary"]), body)


def examples(lines):
    """Commands, each with the comment that stands behind it."""
    rows = [re.fullmatch(r"(.*?)(?: +# (.*))?", line) for line in lines]
    return [".Sh EXAMPLES", *roff.tags([(row[1], roff.fill(row[2] or "", False)) for row in rows], "Ic")]


def own_page(tables, source, release):
    readme = source.text("README.md")
    intro = [lines for kind, lines in markdown.blocks(markdown.parts(readme)[0][1]) if kind == "text"][0]
    rows = [(f"Xr ntscope-{command['name']} 1", roff.fill(command["summary"])) for command in tables["commands"]]
    kinds = [[row[2], row[3], row[-1]] for row in source.rows("include", "nt", "kinds.def")]
    objects = [[row[2], row[-1]] for row in source.rows("include", "nt", "objects.def")]
    body = [".Sh SYNOPSIS", ".Nm ntscope", ".Ar COMMAND", ".Op Ar ARGUMENTS",
            ".Sh DESCRIPTION", *roff.fill(tables["summary"]), ".Pp", *roff.fill(" ".join(intro)),
            ".Pp", "The commands are:", *roff.tags(rows, ""), ".Pp", "Options of its own are:", *options(tables["options"]),
            ".Sh KINDS OF EVENTS", *roff.table(["kind", "measured in", "what one event of it says"], kinds),
            ".Sh KINDS OF OBJECTS", *roff.table(["kind", "what it is"], objects),
            *environment(source, {name.partition("=")[0] for name, _ in source.variables()}),
            ".Sh FILES", *roff.tags([("/dev/shm/ntscope-UID/*.ntlog", roff.fill("The logs of programs.")),
                                     ("*.ntrec", roff.fill("Recordings."))], "Pa"),
            *exit_status(tables),
            *examples(markdown.code_of(markdown.section(readme, "Looking")))]
    pages = sorted((f"ntscope-{command['name']}", 1) for command in tables["commands"])
    body += see_also(*pages, *((f"nt_{name}", 3) for name in sorted(HEADERS)), *((name, 5) for name in FORMATS))
    return roff.page("ntscope", 1, release, ["ntscope"], "statistics and events of message-passing programs", body)


# ---- Section 3 ----

def call_line(call):
    return f".Fn {call.name}" + "".join(" " + roff.argument(word) for word in call.arguments or ["void"])


def synopsis(items, name):
    out = [".Sh SYNOPSIS", f".In nt/{name}.h"]
    for item in items:
        if item.kind == "call":
            out += [f".Ft {roff.argument(item.type)}", call_line(item)]
    return out


def constants(item, source):
    rows = [(name, roff.fill(text, False)) for name, text in source.constants(item.file, item.prefix)]
    rows += [(name, roff.fill(text, False)) for name, text in item.rows]
    return [".Pp", *roff.tags(rows, "Dv")]


def members(item):
    """A struct's or an enum's, each with what its comment says."""
    rows = [(name, roff.fill(text, False)) for name, text in item.rows]
    macro = "Dv" if item.what.startswith("enum") else "Vt"
    out = [] if item.what == "enum" else [".Pp", f".Vt {item.what} :"]
    return out + ([".Pp"] if item.what == "enum" else []) + roff.tags(rows, macro)


def comment(text):
    out = []
    for paragraph in text.split("\n"):
        out += [".Pp", *roff.fill(paragraph, False)]
    return out


def described(items, source):
    """What a header says, below its first comment. A comment right before a call is that call's."""
    out, index, first = [], 0, True
    while index < len(items):
        item, following = items[index], items[index + 1] if index + 1 < len(items) else header.Item("gap")
        index += 1
        if item.kind == "section":
            out += [f".Ss {roff.escape(item.text)}"]
            first = True
        elif item.kind == "comment" and following.kind == "call":
            index += 1
            out += [".Bl -tag -width Ds", f".It Fn {following.name}" + names_of(following), *comment(item.text)[1:], ".El"]
        elif item.kind == "comment":
            out += comment(item.text)[1 if first else 0:]
        elif item.kind == "code":
            out += roff.display(item.lines)
        elif item.kind == "members":
            out += members(item)[1 if first else 0:]
        elif item.kind == "table":
            out += constants(item, source)
        elif item.kind == "call":
            raise ValueError(f"{item.name} has no comment")
        first = first and item.kind in ("section", "gap")
    return out


def names_of(call):
    return "".join(" " + re.search(r"\w+$", word)[0] for word in call.arguments)


def layout_types(source):
    """What calls take of <nt/log_layout.h>."""
    text = source.text("include", "nt", "log_layout.h")
    out = [".Ss Of <nt/log_layout.h>"]
    for start in (r"struct nt_layout_pair \{", r"struct nt_layout_tally \{", r"enum \{\n    NT_PAIR_", "enum nt_layout_field_type"):
        at = re.search(start, text).start()
        out += members(header.declaration_of(text[at:header.declaration_end(text, at)], []))
    return out[:1] + out[2:]  # a heading makes room by itself


def header_page(name, source, release):
    items = header.items(source.text("include", "nt", f"{name}.h"))
    calls = [item.name for item in items if item.kind == "call"]
    page = f"nt_{name}"
    summary = items[0].text.partition(":")[0]
    body = [*synopsis(items, name), ".Sh DESCRIPTION", *described(items, source)]
    if name == "log":
        errors = [(code, roff.fill(text, False)) for code, text in source.errors()]
        body += [*layout_types(source),
                 *environment(source, {variable.partition("=")[0] for variable, _ in source.variables()}),
                 ".Sh EXAMPLES", *roff.display(markdown.code_of(markdown.section(source.text("README.md"), "Counting"))),
                 ".Sh ERRORS", "Calls that can fail return a negative code: that of the system, such as",
                 ".Dv \\-ENOSPC ,", "or one of <nt/error.h>, negated:", *roff.tags(errors, "Er")]
    body += see_also(("ntscope", 1), *((f"nt_{other}", 3) for other in HEADERS if other != name), ("ntlog", 5))
    return page, calls, roff.page(page, 3, release, [page, *calls], roff.nd(summary), body)


# ---- Section 5 ----

def format_pages(source, release):
    parts = markdown.parts(source.text("docs", "format.md"))
    for name, (heading, text) in zip(FORMATS, parts, strict=True):
        others = [(other, 5) for other in FORMATS if other != name]
        body = [".Sh DESCRIPTION", *markdown.mdoc(text.strip()), *see_also(("ntscope", 1), ("nt_log", 3), *others)]
        yield name, roff.page(name, 5, release, [name], roff.nd(heading), body)


# ---- All ----

def all_pages(tables, source, release):
    """(section, name, text) of each."""
    yield 1, "ntscope", own_page(tables, source, release)
    for command in tables["commands"]:
        yield 1, f"ntscope-{command['name']}", command_page(command, tables, source, release)
    for name in HEADERS:
        page, calls, text = header_page(name, source, release)
        yield 3, page, text
        for call in calls:
            yield 3, call, f".so man3/{page}.3\n"
    for name, text in format_pages(source, release):
        yield 5, name, text


def main():
    tables_path, root, date, out = sys.argv[1:]
    with open(tables_path, encoding="utf-8") as stream:
        tables = json.load(stream)
    release = (date, f"ntscope {tables['version']}")
    # The folder is made anew, so that pages of what is gone go too.
    fresh = out + ".new"
    shutil.rmtree(fresh, ignore_errors=True)
    for section, name, text in all_pages(tables, Source(root), release):
        folder = os.path.join(fresh, f"man{section}")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, f"{name}.{section}"), "w", encoding="ascii") as stream:
            stream.write(text)
    shutil.rmtree(out, ignore_errors=True)
    os.rename(fresh, out)
    os.utime(out)


if __name__ == "__main__":
    main()
