#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fills in what completions for bash and zsh know of commands, from `ntscope help --json` and the tables of the source tree.

completions.py TABLES SOURCE TEMPLATE OUT
"""
import json
import re
import sys

import tables as tables_of

# Options that name a file to be written.
PATHS, ANYTHING = "paths", "anything"
HELP = {"letter": "h", "name": "help", "text": "this text"}
ORDER = (tables_of.OBJECTS, tables_of.FILES, tables_of.WORDS, tables_of.NAMES, tables_of.COMMANDS)


def quoted(word):
    """A word of either shell."""
    return word if re.fullmatch(r"[\w./+-]+", word) else "'" + word.replace("'", "'\\''") + "'"


def names(option):
    return ([f"-{option['letter']}"] if "letter" in option else []) + [f"--{option['name']}"]


def argument(option, tables, source):
    """What an option's argument is: words to choose from, or one of what the templates know."""
    if option["argument"] == "FILE":
        return [PATHS]
    known = tables_of.ARGUMENTS.get(option["argument"])
    return [known] if known else tables_of.choices(option, tables, source) or [ANYTHING]


def operands(command):
    found = tables_of.operands(command)
    return [what for what in ORDER if what in found]


# ---- bash ----

def bash(tables, source):
    options, arguments, takes = [], [], []
    for command in tables["commands"]:
        rows = [*command["options"], HELP]
        options.append(f"    {command['name']}) echo {' '.join(name for row in rows for name in names(row))} ;;")
        takes.append(f"    {command['name']}) echo {' '.join(operands(command))} ;;")
        for row in rows:
            if "argument" in row:
                patterns = " | ".join(f"'{command['name']} {name}'" for name in names(row))
                arguments.append(f"    {patterns}) echo {' '.join(argument(row, tables, source))} ;;")
    return {"OPTIONS": "\n".join(options), "ARGUMENTS": "\n".join(arguments), "OPERANDS": "\n".join(takes),
            "OWN": " ".join(name for row in tables["options"] for name in names(row))}


# ---- zsh ----

def spec_text(text):
    return re.sub(r"([\[\]:\\])", r"\\\1", text)


def spec(option, tables, source):
    """One of _arguments' words."""
    ways = names(option)
    exclusive = f"({' '.join(ways)})"
    action = ""
    if "argument" in option:
        ways = [name + ("=" if name.startswith("--") else "+") for name in ways]
        what = argument(option, tables, source)
        action = {(PATHS,): "_files", (tables_of.DIRECTORIES,): "_files -/", (ANYTHING,): " "}.get(tuple(what))
        action = f":{option['argument']}:" + (action or f"({' '.join(what)})")
    if option["name"] in ("help", "version"):
        exclusive = "(- *)"
    rest = f"[{spec_text(option['text'])}]{action}"
    return f"{quoted(exclusive)}{'{' + ','.join(ways) + '}' if len(ways) > 1 else ways[0]}{quoted(rest)}"


def zsh(tables, source):
    described = [f"        {quoted(command['name'] + ':' + command['summary'].replace(':', chr(92) + ':'))}"
                 for command in tables["commands"]]
    specs = []
    for command in tables["commands"]:
        lines = [spec(row, tables, source) for row in [*command["options"], HELP]]
        what = " ".join(what for what in operands(command) if what != tables_of.COMMANDS)
        lines += [quoted(f"*:argument: _ntscope_operands {what}")] if what else []
        specs.append(f"    {command['name']})\n        _arguments -s \\\n            " + " \\\n            ".join(lines) + "\n        ;;")

    def those_with(what):
        return '" ' + " ".join(command["name"] for command in tables["commands"] if what in operands(command)) + ' "'

    return {"DESCRIBED": "\n".join(described), "SPECS": "\n".join(specs),
            "CMD": those_with(tables_of.COMMANDS), "WORDS": those_with(tables_of.WORDS),
            "OWN": " ".join(spec(row, tables, source) for row in tables["options"])}


def main():
    tables_path, root, template, out = sys.argv[1:]
    with open(tables_path, encoding="utf-8") as stream:
        tables = json.load(stream)
    source = tables_of.Source(root)
    with open(template, encoding="utf-8") as stream:
        text = stream.read()
    values = {"COMMANDS": " ".join(command["name"] for command in tables["commands"]),
              "KINDS": " ".join([*source.kinds(), "user", "all"]),
              **(zsh if text.startswith("#compdef") else bash)(tables, source)}
    text = re.sub(r"@([A-Z]+)@", lambda match: values[match[1]], text)
    with open(out, "w", encoding="utf-8") as stream:
        stream.write(text)


if __name__ == "__main__":
    main()
