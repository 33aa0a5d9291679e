# SPDX-License-Identifier: BSD-3-Clause
"""A public C header taken apart: its sections, comments, calls, structs, constants. What it may have in it is what those
in include/nt have; anything else is an error."""
import re


class Item:
    """kind: section, comment, call, members, code, table or gap; what else depends on it."""

    def __init__(self, kind, **values):
        self.kind = kind
        self.__dict__.update(values)


def plain(comment):
    """A comment's text, one line a paragraph."""
    return " ".join(comment.strip()[2:-2].split())


def without_conditions(text):
    """Without what stands in an #if; the guard around all is none."""
    out, depth = [], 0
    for line in text.splitlines():
        word = re.match(r"#\s*(\w+)", line)
        if word and word[1].startswith("if"):
            depth += 1
        elif word and word[1] == "endif":
            depth -= 1
        elif depth < 2 and not re.match(r"#\s*(?:include|undef|else)|#define \w+_H$", line):
            out.append(line)
        elif depth < 2 and re.match(r"#include <nt/\w+\.def>", line):
            out.append(line)
    return "\n".join(out) + "\n"


def members(body, separator):
    """(declaration, comment) of each member between braces; None if some have braces of their own."""
    if "{" in body:
        return None
    found = []
    pending = ""
    for token in re.findall(rf"/\*.*?\*/|{separator}|(?:(?!/\*){'[^' + separator + ']'})+", body, re.S):
        if token.startswith("/*"):
            if pending:
                found.append([pending, plain(token)])
                pending = ""
            elif found:
                found[-1][1] = " ".join((found[-1][1] + " " + plain(token)).split())
        elif token == separator:
            if pending:
                found.append([pending, ""])
            pending = ""
        else:
            pending = " ".join((pending + " " + token).split())
    if pending:
        found.append([pending, ""])
    return found


def call_of(text):
    """A declaration of a call, or the head of an inline one; None if it is none."""
    match = re.match(r"(?:NT_API|static inline) (.*?)(\w+)\(([^)]*)\)", " ".join(text.split()))
    if not match:
        return None
    arguments = [] if match[3] == "void" else [word.strip() for word in match[3].split(",")]
    return Item("call", type=match[1].strip(), name=match[2], arguments=arguments)


def declaration_of(text, prefixes):
    """A struct, enum or typedef."""
    match = re.match(r"(?:typedef )?(struct|enum)(?: (\w+))? ?\{(.*)\}[^}]*;$", text.strip(), re.S)
    if match and "#include" in match[3]:
        name = re.search(r"<nt/(\w+\.def)>", match[3])[1]
        rest = members(re.sub(r"(?m)^#.*$", "", match[3]), ",")
        return Item("table", file=name, prefix=prefixes[-1], rows=rest)
    found = members(match[3], "," if match[1] == "enum" else ";") if match else None
    if not found:
        return Item("code", lines=text.strip().splitlines())
    return Item("members", what=" ".join(filter(None, match.groups()[:2])), rows=found)


DEFINE = re.compile(r"#define (\w+(?:\([^)]*\))?)[ \t]*((?:.*\\\n)*.*)\n")
COMMENT = re.compile(r"/\*.*?\*/[ \t]*\n", re.S)


def declaration_end(text, at):
    """Behind the ; or the last } of a declaration, and behind a comment on the same line."""
    depth = 0
    for match in re.finditer(r"/\*.*?\*/|[{};]", text[at:], re.S):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0 and (match[0] == ";" or match[0] == "}" and "inline" in text[at:at + 20]):
            return at + match.end()
    raise ValueError(f"no end: {text[at:at + 60]!r}")


def define_item(match, prefixes):
    prefix = re.search(r"(\w+_)##symbol", match[2])
    if prefix:
        prefixes.append(prefix[1])
        return None
    value = "" if "\n" in match[2] or "(" in match[1] else " " + match[2]
    return Item("code", lines=[f"#define {match[1]}{value}"])


def items(text):
    """What a header says, in order; the comment at its top comes first."""
    text = without_conditions(text)
    found, prefixes, at = [], [], 0
    while at < len(text):
        comment, define = COMMENT.match(text, at), DEFINE.match(text, at)
        if text[at] == "\n":
            found.append(Item("gap"))
            at += 1
        elif comment and "SPDX" in comment[0]:
            at = comment.end()
        elif comment:
            section = re.fullmatch(r"---- (.*) ----", plain(comment[0]))
            found.append(Item("section", text=section[1]) if section else Item("comment", text=plain(comment[0])))
            if not section and "\n\n" in comment[0]:
                found[-1].text = "\n".join(" ".join(part.split()) for part in comment[0].strip()[2:-2].split("\n\n"))
            at = comment.end()
        elif define:
            item = define_item(define, prefixes)
            found += [item] if item else []
            at = define.end()
        else:
            end = declaration_end(text, at)
            tail = re.match(r"[ \t]*(/\*[^\n]*\*/)?[ \t]*\n", text[end:])
            whole = text[at:end]
            item = call_of(whole) or declaration_of(whole, prefixes)
            if tail and tail[1] and item.kind == "code":
                item.lines[-1] += " " + tail[1]
            elif tail and tail[1]:
                found.append(Item("comment", text=plain(tail[1]) + ":"))
            found.append(item)
            at = end + (tail.end() if tail else 0)
    return found
