# SPDX-License-Identifier: BSD-3-Clause
"""The project's tables as Python sees them: .def files, error codes, what README.md lists, usage lines."""
import ast
import os
import re

import markdown


class Source:
    """Files of the source tree."""

    def __init__(self, root):
        self.root = root

    def text(self, *path):
        with open(os.path.join(self.root, *path), encoding="utf-8") as stream:
            return stream.read()

    def rows(self, *path):
        """Those of an X-macro table: lists of words and strings."""
        text = re.sub(r"/\*.*?\*/", "", self.text(*path), flags=re.S)
        found = []
        for line in re.findall(r"(?m)^\w+\((.*)\)$", text):
            words = re.findall(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[^,\s][^,]*', line)
            found.append([ast.literal_eval(word) if word[0] in "\"'" else word.strip() for word in words])
        return found

    def constants(self, file, prefix):
        """(constant, what it is) of a table whose rows are number, symbol, …, text."""
        return [(prefix + row[1], row[-1]) for row in self.rows("include", "nt", file)]

    def kinds(self):
        return [row[2] for row in self.rows("include", "nt", "kinds.def")]

    def variables(self):
        """The environment: (NAME or NAME=VALUE, what it does), in Markdown."""
        _, rows = markdown.table_of(markdown.section(self.text("README.md"), "Counting"))
        return [(name.strip("`"), text) for name, text in rows]

    def errors(self):
        return re.findall(r"(NT_E\w+) = \d+,? */\* (.*?) \*/", self.text("include", "nt", "error.h"))


# What words in usage lines and option tables stand for, as far as a shell can complete it.
FILES, DIRECTORIES, OBJECTS, WORDS, COMMANDS, NAMES = "files", "directories", "objects", "words", "commands", "names"
ARGUMENTS = {"FILE": FILES, "DIR": DIRECTORIES, "PATH": OBJECTS, "OBJECT": OBJECTS, "WORD": WORDS, "CMD": COMMANDS,
             "COMMAND": NAMES}
TOKEN = re.compile(r"\[|\]|--?[\w-]+|--|[A-Z]+|…|\S|\s+")


def choices(option, tables, source):
    """The words that an option's argument may be; none if it may be anything."""
    if option.get("argument") == "FORMAT":
        return tables["formats"]
    if option.get("argument") == "COLUMN":
        return [row[1] for row in source.rows("src", "model", "rates.def")]
    match = re.match(r"([a-z-]+)(?: \([^)]*\))? or ([a-z-]+)\b", option["text"])
    return [match[1], match[2]] if option.get("argument") and match else []


def operands(command):
    """What a command takes besides its options: a set of FILES, OBJECTS …"""
    usage = command["arguments"]
    for option in command["options"]:
        if "argument" in option:
            usage = re.sub(rf"-+[\w-]+ {option['argument']}\b", "", usage)
    return {ARGUMENTS[word] for word in re.findall(r"[A-Z]+", usage) if word in ARGUMENTS}
