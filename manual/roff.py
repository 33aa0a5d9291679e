# SPDX-License-Identifier: BSD-3-Clause
"""mdoc text: escapes, filled lines, tags, tables. Knows nothing of what the pages say."""
import re
import textwrap

WIDTH = 78
CHARACTERS = {"\\": "\\e", "^": "\\(ha", "~": "\\(ti", "`": "\\(ga", "…": "...\\&", "×": "\\(mu", "≤": "\\(<=", "≥": "\\(>=",
              "−": "\\(mi", "–": "\\(en", "→": "\\(->", "▶": ">", "“": "\\(lq", "”": "\\(rq"}
# What mdoc would call if it were an argument of a line that calls macros.
CALLABLE = re.compile(r"[A-Z%][a-z0-9]?|[.,:;()\[\]?!|]+")
INLINE = re.compile(r"``?(?P<code>[^`]+)``?|\*\*(?P<strong>\S(?:.*?\S)?)\*\*(?!\w)|(?<![\w*])\*(?P<mild>[^\s*](?:[^*]*[^\s*])?)\*(?!\w)|"
                    r"\[(?P<link>[^\]]+)\]\([^)]+\)")


def escape(text):
    """Text that is filled: a dash is a hyphen between letters, else a minus."""
    text = re.sub(r"(?<=\w)-(?=\w)", "\0", text).replace("-", "\1")
    text = "".join(CHARACTERS.get(character, character) for character in text)
    text = text.replace("\0", "-").replace("\1", "\\-")
    return re.sub(r"[^\0-\x7e]", lambda match: f"\\[u{ord(match[0]):04X}]", text)


def literal(text):
    """Text that is to be typed, or is code."""
    return escape(text).replace("\\-", "-").replace("-", "\\-").replace("'", "\\(aq").replace('"', "\\(dq")


def guard(line):
    return "\\&" + line if line[:1] in (".", "'") else line


def bold(text):
    return f"\\fB{literal(text)}\\fP"


def inline(text, markdown=True):
    """Text with `code` and *words*, and where it is Markdown **strong**, *mild* and [links](there)."""
    parts, at = [], 0
    for match in INLINE.finditer(text):
        if not markdown and match["code"] is None and not re.fullmatch(r"\*\w+\*", match[0]):
            continue
        parts.append(escape(text[at:match.start()]))
        at = match.end()
        if match["code"] is not None:
            parts.append(bold(match["code"]))
        elif match["link"] is not None:
            parts.append(inline(match["link"]))
        else:
            parts.append(f"\\fI{inline(match['strong'] or match['mild'])}\\fP")
    parts.append(escape(text[at:]))
    return "".join(parts)


def fill(text, markdown=True):
    """A paragraph as lines, each sentence on lines of its own."""
    lines = []
    for sentence in re.split(r"(?<=[.?!])(?<!\.\.)(?<!e\.g\.) +(?=\S)", " ".join(text.split())):
        lines += textwrap.wrap(inline(sentence, markdown), WIDTH, break_long_words=False, break_on_hyphens=False)
    return [guard(line) for line in lines]


def argument(text):
    """One argument of a macro."""
    text = literal(text)
    if CALLABLE.fullmatch(text):
        return "\\&" + text
    if re.search(r"[.,:;()\[\]?!|]$", text):
        text += "\\&"
    return f'"{text}"' if " " in text or not text else text


def display(lines):
    """Lines as they are."""
    return [".Bd -literal -offset indent", *(guard(literal(line)) for line in lines), ".Ed"]


def tags(rows, macro="Cm", compact=True):
    """A list of (word, lines)."""
    out = [".Bl -tag -width Ds" + (" -compact" if compact else "")]
    for word, lines in rows:
        out += [f".It {macro} {argument(word)}" if macro else f".It {word}", *lines]
    return out + [".El"]


def table(head, rows, widest=24):
    """A tbl table; cells are Markdown. Columns with longer cells are filled, and share the room that is left."""
    columns = len(head)
    wide = [max(len(row[column]) for row in [head, *rows]) > widest for column in range(columns)]
    layout = " ".join("lx" if flag else "l" for flag in wide)
    out = [".TS", f"{' '.join(['lb'] * columns)}", f"{layout}.", "\t".join(inline(cell) for cell in head)]
    for row in rows:
        cells = ["T{\n" + "\n".join(fill(cell) or ["\\&"]) + "\nT}" if flag else guard(inline(cell))
                 for cell, flag in zip(row, wide)]
        out += "\t".join(cells).split("\n")
    return out + [".TE"]


def page(title, section, release, names, summary, body):
    """A whole page. release: date and version."""
    heads = [f".Nm {name} ," for name in names[:-1]] + [f".Nm {names[-1]}"]
    lines = [f".Dd {release[0]}", f".Dt {title.upper()} {section}", f".Os {release[1]}", ".Sh NAME", *heads,
             f".Nd {escape(summary)}", *body]
    if ".TS" in lines:
        lines.insert(0, "'\\\" t")
    return "\n".join(lines) + "\n"


def nd(text):
    """A sentence as a page's one line."""
    text = text.strip().rstrip(".")
    return text[:1].lower() + text[1:]
