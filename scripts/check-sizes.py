#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Size gates of C code: function length, cyclomatic complexity, nesting, parameters, file length.

Exceptions stand in scripts/size-exceptions.txt, "file function measure limit" each ("-" for a
file's own length); a limit above what is measured, or a row that is not needed, is an error too,
so that the list can only shrink.
"""
import re

from sourcefiles import Findings, blank_literals, read_text, tracked_files

LIMITS = {"lines": 80, "complexity": 15, "nesting": 4, "parameters": 6, "file-lines": 900}
EXCEPTIONS = "scripts/size-exceptions.txt"

TOKEN = re.compile(r"[A-Za-z_]\w*|&&|\|\||[{}();,?]|\n")
CONTROL = {"if", "for", "while", "switch", "do", "else"}
DECISION = {"if", "for", "while", "case", "&&", "||", "?"}


def blank_preprocessor(text):
    """Blanks directives with their continued lines, and all branches of an #if but the first."""
    out, depth_skipped, stack, continued = [], 0, [], False
    for line in text.split("\n"):
        directive = re.match(r"\s*#\s*(\w+)", line) if not continued else None
        if directive:
            word = directive.group(1)
            if word in ("if", "ifdef", "ifndef"):
                stack.append(False)
            elif word in ("else", "elif") and stack and not stack[-1]:
                stack[-1] = True
                depth_skipped += 1
            elif word == "endif" and stack and stack.pop():
                depth_skipped -= 1
        hidden = directive or continued or depth_skipped > 0
        continued = bool(directive or continued) and line.endswith("\\")
        out.append("" if hidden else line)
    return "\n".join(out)


class Function:
    def __init__(self, name, line, parameters):
        self.name, self.line, self.parameters = name, line, parameters
        self.complexity, self.nesting, self.lines = 1, 0, 0


def tokens_of(text):
    """Pairs (token, line number)."""
    line, pairs = 1, []
    for match in TOKEN.finditer(text):
        if match.group(0) == "\n":
            line += 1
        else:
            pairs.append((match.group(0), line))
    return pairs


def skip_parentheses(tokens, at):
    """Index after the ")" that closes the "(" at `at`, and how many parameters stand inside."""
    depth, commas, words = 0, 0, []
    while at < len(tokens):
        token = tokens[at][0]
        if token == "(":
            depth += 1
        elif token == ")":
            depth -= 1
            if depth == 0:
                break
        elif token == "," and depth == 1:
            commas += 1
        elif depth == 1:
            words.append(token)
        at += 1
    return at + 1, 0 if words in ([], ["void"]) else commas + 1


def is_attribute(word):
    return word in ("__attribute__", "__asm__", "asm", "_Alignas", "__declspec", "_Static_assert")


def find_body(tokens, at):
    """For a name followed by "(" at file level: (index of "{", parameters) or None."""
    after, parameters = skip_parentheses(tokens, at + 1)
    while after < len(tokens) and is_attribute(tokens[after][0]):
        after, _ = skip_parentheses(tokens, after + 1)
    if after < len(tokens) and tokens[after][0] == "{":
        return after, parameters
    return None


def measure_body(tokens, at, function):
    """Fills the function's figures from its body; returns the index after its closing brace.

    Nesting counts control statements around a line, braces or not being the same; an else-if is
    one level, as it reads.
    """
    blocks, pending, previous = [], 0, ""
    while at < len(tokens):
        token, line = tokens[at]
        if token in DECISION:
            function.complexity += 1
        if token in CONTROL and not (token == "if" and previous == "else"):
            pending = 1
            level = sum(blocks) + 1
            function.nesting = max(function.nesting, level if len(blocks) else 0)
        if token == "{":
            blocks.append(pending if blocks else 0)
            pending = 0
        elif token == "}":
            blocks.pop()
            pending = 0
            if not blocks:
                function.lines = line - function.line + 1
                return at + 1
        elif token == ";":
            pending = 0
        elif token == "(" :
            at, _ = count_decisions(tokens, at, function)
            previous = ")"
            continue
        previous = token
        at += 1
    return at


def count_decisions(tokens, at, function):
    """Skips a parenthesised expression, whose && || ? count but whose ; do not end a statement."""
    depth = 0
    while at < len(tokens):
        token = tokens[at][0]
        if token == "(":
            depth += 1
        elif token == ")":
            depth -= 1
            if depth == 0:
                return at + 1, depth
        elif token in DECISION:
            function.complexity += 1
        at += 1
    return at, depth


def functions_of(text):
    """All function definitions of a C text."""
    tokens = tokens_of(blank_preprocessor(blank_literals(text)))
    found, at, depth, start = [], 0, 0, None
    while at < len(tokens):
        token, line = tokens[at]
        following = tokens[at + 1][0] if at + 1 < len(tokens) else ""
        if depth == 0 and start is None:
            start = line
        if token in "{}":
            depth += 1 if token == "{" else -1
            start = None if depth == 0 else start
        elif depth == 0 and token == ";":
            start = None
        elif depth == 0 and following == "(" and not is_attribute(token) and token.isidentifier():
            body = find_body(tokens, at)
            if body:
                function = Function(token, start, body[1])
                at = measure_body(tokens, body[0], function)
                found.append(function)
                start = None
                continue
            at, _ = skip_parentheses(tokens, at + 1)
            continue
        at += 1
    return found


def read_exceptions(findings):
    """(file, function, measure) -> (limit, line number)."""
    rows = {}
    for number, line in enumerate((read_text(EXCEPTIONS) or "").splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) != 4 or words[2] not in LIMITS or not words[3].isdigit():
            findings.add(EXCEPTIONS, number, "not 'file function measure limit'")
            continue
        rows[tuple(words[:3])] = (int(words[3]), number)
    return rows


def check(findings, exceptions, used, place, line, value):
    """Holds one figure against its limit; place is (file, function, measure)."""
    path, name, measure = place
    limit = LIMITS[measure]
    if place in exceptions:
        used.add(place)
        limit, row = exceptions[place]
        if value < limit:
            findings.add(EXCEPTIONS, row, f"{path} {name}: {measure} is {value} now; lower the limit")
    if value > limit:
        what = "file" if name == "-" else name
        findings.add(path, line, f"{what}: {measure} {value}, limit {limit}")


def main():
    findings, used = Findings(), set()
    exceptions = read_exceptions(findings)
    for path in tracked_files(".c", ".h"):
        text = read_text(path)
        if text is None:
            continue
        check(findings, exceptions, used, (path, "-", "file-lines"), 1, len(text.splitlines()))
        for function in functions_of(text):
            for measure in ("lines", "complexity", "nesting", "parameters"):
                check(findings, exceptions, used, (path, function.name, measure), function.line,
                      getattr(function, measure))
    for place, (_, row) in exceptions.items():
        if place not in used:
            findings.add(EXCEPTIONS, row, "no such function any more; remove the row")
    findings.finish()


if __name__ == "__main__":
    main()
