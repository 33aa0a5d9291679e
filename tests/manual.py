#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Man pages and completions: all commands, options, calls and formats are in them, they are well formed, they follow from the
tables alone, and shells complete by them.

manual.py
"""
import html
import json
import os
import re
import shutil
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))

import scope  # noqa: E402
import tap  # noqa: E402
from counter import Counter  # noqa: E402
from terminal import Terminal  # noqa: E402

MANUAL = os.path.join(scope.BUILD, "manual")
PAGES = os.path.join(MANUAL, "man")
BASH, ZSH = os.path.join(MANUAL, "ntscope"), os.path.join(MANUAL, "_ntscope")
HEADERS = ("log", "link")
DATE = "June 1, 2026"


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as stream:
        return stream.read()


def pages():
    """Paths below man/ of what is a page itself, and of what only leads to one."""
    found = sorted(os.path.join(folder, name) for folder in os.listdir(PAGES)
                   for name in os.listdir(os.path.join(PAGES, folder)))
    links = [path for path in found if read(PAGES, path).startswith(".so ")]
    return [path for path in found if path not in links], links


def shown(path):
    """A page as it is read, all in one line; from HTML, where cells of a table do not stand beside each other."""
    result = scope.run(["mandoc", "-Thtml", os.path.join(PAGES, path)])
    text = re.sub(r"</?(?:a|b|code|i|span|var)\b[^>]*>", "", result.text)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).replace("\u2010", "-").split())


def commands():
    """Names, from the text that a user sees."""
    return re.findall(r"(?m)^  ([a-z]+) +[A-Z]", scope.ntscope("--help").text)


# ---- What the pages say ----

def section_1(test):
    own = shown("man1/ntscope.1")
    test.ok(len(commands()) >= 11, "there are commands", commands())
    for command in commands():
        text = shown(f"man1/ntscope-{command}.1")
        usage = scope.ntscope("help", command).text
        options = re.findall(r"(?m)^  ((?:-\w, )?--[\w-]+)(?: [A-Z]+)?(?:  | *$)", usage)
        options = [name for option in options for name in option.split(", ") if name not in ("-h", "--help")]
        missing = [name for name in options if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)]
        test.ok((options or command == "help") and not missing, f"{command}: its page has all its options", missing)
        lines = [" ".join(line.split()) for line in usage.splitlines() if line.startswith("  ntscope ")]
        missing = [line for line in lines if line not in text]
        test.ok(not missing, f"{command}: its page has the examples of its help", missing)
        test.ok(f"ntscope-{command}(1)" in own, f"{command}: ntscope(1) names it")
    kinds = re.findall(r'(?m)^NT_KIND\(\d+, \w+, "([a-z-]+)"', read(ROOT, "include", "nt", "kinds.def"))
    test.ok(kinds and all(f" {kind} " in own for kind in kinds), "ntscope(1) has all kinds of events")
    test.ok(all(name in own for name in ("NTSCOPE=off", "NTSCOPE_DIR", "NTSCOPE_KEEP=all")), "and what the environment says")
    help_text = scope.ntscope("help", "events").text
    columns = re.findall(r"(?m)^NT_(?:COLUMN\(\w+, (\w+)|EVENT_FLAG\(\d+, \"(\w+)\")",
                         read(ROOT, "src", "event", "columns.def") + read(ROOT, "src", "event", "flags.def"))
    names = [first or second for first, second in columns]
    text = shown("man1/ntscope-events.1")
    test.ok(len(names) > 20 and all(f"  {name}: " in help_text and f" {name} " in text for name in names),
            "ntscope-events(1) has all columns and flags")


def section_3(test):
    for header in HEADERS:
        text = shown(f"man3/nt_{header}.3")
        source = read(ROOT, "include", "nt", f"{header}.h")
        calls = re.findall(r"(?m)^(?:NT_API|static inline) [^(]*?\b(nt_\w+)\(", source)
        test.ok(calls and all(f"{call}(" in text for call in calls), f"nt_{header}(3) has all calls of the header")
        wanted = {f"man3/{call}.3": f".so man3/nt_{header}.3\n" for call in calls}
        got = {path: read(PAGES, path) for path in wanted if os.path.exists(os.path.join(PAGES, path))}
        test.equal(got, wanted, f"each call of <nt/{header}.h> leads to it")
        constants = re.findall(r"\bNT_[A-Z0-9_]+(?= *=)", source)
        missing = [name for name in constants if name not in text]
        test.ok(not missing, f"nt_{header}(3) has its constants", missing)
        # A comment's words are all there, in order.
        said = [" ".join(re.sub(r"[`*]", "", part).split()) for part in re.findall(r"(?s)/\*(.*?)\*/", source)]
        bare = re.sub(r"[`*\s]", "", text)
        missing = [part for part in said if "SPDX" not in part and "----" not in part and
                   re.sub(r"\s", "", part).replace("…", "...") not in bare]
        test.ok(not missing, f"nt_{header}(3) has every comment of the header", *missing)
    log = shown("man3/nt_log.3")
    errors = re.findall(r"\bNT_E[A-Z]+\b", read(ROOT, "include", "nt", "error.h"))
    errors = [name for name in errors if name != "NT_ERROR"]
    test.ok(errors and all(name in log for name in errors), "nt_log(3) has the error codes")
    for name, table in (("kinds", "NT_"), ("objects", "NT_OBJECT_")):
        symbols = re.findall(r"(?m)^NT_\w+\(\d+, (\w+),", read(ROOT, "include", "nt", f"{name}.def"))
        test.ok(symbols and all(table + symbol in log for symbol in symbols), f"nt_log(3) has all of {name}.def")


def section_5(test):
    parts = re.split(r"(?m)^# .*$", read(ROOT, "docs", "format.md"))[1:]
    test.equal(len(parts), 2, "docs/format.md has two parts")
    for name, part in zip(("ntlog", "ntrec"), parts):
        text = shown(f"man5/{name}.5").replace(" ", "")
        words = re.sub(r"(?m)^#+ .*$|^\|[-|]+\|$|^ *(?:\*|\d+\.) ", "", part)
        for before, after in (("…", "..."), ("×", "x"), ("≤", "<="), ("−", "-"), ("–", "-")):
            words, text = words.replace(before, after), text.replace(before, after)
        pieces = [re.sub(r"[`*\s|]", "", piece) for piece in re.split(r"\n\n|\n(?=\|)| \| |\n *\d+\. |\n\* |^\d+\. ", words)]
        pieces = [piece for piece in pieces if piece]
        text = re.sub(r"[`*\s|]", "", text)
        missing = [piece for piece in pieces if piece not in text]
        test.ok(len(pieces) > 50 and not missing, f"{name}(5) has what the document says", *missing[:5])
        headings = re.findall(r"(?m)^#+ (.*)$", part)
        missing = [heading for heading in headings if heading.replace(" ", "").lower() not in text.lower()]
        test.ok(headings and not missing, f"{name}(5) has its headings", missing)


# ---- Form ----

def form(test):
    own, links = pages()
    test.ok(len(own) >= 16 and len(links) > 30, "there are pages", own, links)
    said = scope.run(["mandoc", "-Tlint", "-Wstyle", *(os.path.join(PAGES, path) for path in own)]).text.splitlines()
    said = [line for line in said if "referenced manual not found" not in line]
    test.ok(not said, "mandoc has no fault to find", *said)
    for device in ("utf8", "ascii"):
        said = [scope.run(["groff", "-t", "-mandoc", f"-T{device}", "-ww", "-z", path], cwd=PAGES) for path in own + links]
        wrong = [repr(one) for one in said if one.code != 0 or one.err]
        test.ok(not wrong, f"groff has none, for {device}", *wrong)
    names = {re.fullmatch(r"man\d/(.*)\.(\d)", path).groups() for path in own + links}
    references = {(path, reference) for path in own for reference in re.findall(r"\.(?:It )?Xr (\S+) (\d)", read(PAGES, path))}
    wrong = [one for one in references if one[1] not in names]
    test.ok(len(references) > 50 and not wrong, "pages that are referred to are there", wrong)
    wrong = [path for path in own if not read(PAGES, path).isascii()]
    test.ok(not wrong, "pages are ASCII", wrong)


def make(name, tables, out, root=ROOT, template=None, env=None):
    """Runs a generator on tables that are written for it."""
    path = out + ".json"
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(tables, stream)
    middle = [os.path.join(ROOT, "manual", template)] if template else [DATE]
    result = scope.run([sys.executable, "-B", os.path.join(ROOT, "manual", name), path, root, *middle, out],
                       scope.environment(**(env or {})))
    if result.code != 0:
        raise RuntimeError(repr(result))
    return out


def all_of(folder):
    return {os.path.relpath(os.path.join(where, name), folder): read(where, name)
            for where, _, names in os.walk(folder) for name in names}


def generated(test):
    with scope.workspace() as work:
        tables = scope.ntscope("help", "--json").json()
        first = all_of(make("pages.py", tables, work + "/one"))
        other = all_of(make("pages.py", tables, work + "/two", env={"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C",
                                                                    "SOURCE_DATE_EPOCH": "1"}))
        test.ok(first and first == other, "the same tables give the same pages, whatever the environment")
        built = {name: re.sub(r"(?m)^\.Dd .*$", f".Dd {DATE}", text) for name, text in all_of(PAGES).items()}
        test.equal(sorted(built), sorted(first), "pages that were built are those of the tables")
        wrong = [name for name in built if built[name] != first[name]]
        test.ok(not wrong, "and say the same", wrong)
        tables["commands"].append({
            "name": "polish", "arguments": "[--gloss N] [--way WAY] [OBJECT…]", "summary": "Polishes it.", "text": "It's \\new.\n",
            "options": [{"name": "gloss", "argument": "N", "text": "how bright"},
                        {"letter": "w", "name": "way", "argument": "WAY", "text": "round (default) or straight"}]})
        pages_now = all_of(make("pages.py", tables, work + "/three"))
        page = pages_now.get("man1/ntscope-polish.1", "")
        test.ok("\\-gloss" in page and "\\enew" in page and ".Xr ntscope-polish 1" in pages_now["man1/ntscope.1"],
                "a new command has a page", page)
        for shell, template in (("bash", "ntscope.bash.in"), ("zsh", "_ntscope.in")):
            path = make("completions.py", tables, f"{work}/{shell}", template=template)
            test.ok("polish" in read(path) and scope.run([shell, "-n", path]).code == 0, f"and {shell} knows it")
        test.equal(complete(work, work + "/bash", "polish", "--way", ""), ["round", "straight"],
                   "its option is completed to what it may be")
        copy = work + "/tree"
        shutil.copytree(os.path.join(ROOT, "include"), copy + "/include")
        os.mkdir(copy + "/docs")
        shutil.copy(os.path.join(ROOT, "README.md"), copy)
        shutil.copy(os.path.join(ROOT, "docs", "format.md"), copy + "/docs")
        with open(copy + "/include/nt/kinds.def", "a", encoding="utf-8") as stream:
            stream.write('NT_KIND(20, FROB, "frob", bytes, merge, "it was frobbed")\n')
        changed = all_of(make("pages.py", tables, work + "/four", root=copy))
        test.ok("frob" in changed["man1/ntscope.1"] and ".It Dv NT_FROB\n" in changed["man3/nt_log.3"], "so does a new kind")


# ---- Completion ----

BASH_CALL = """
source "$1"
COMP_LINE=$2 COMP_POINT=${#2} COMP_CWORD=$3
shift 3
COMP_WORDS=("$@")
[[ $(complete -p ntscope) == 'complete -F _ntscope ntscope' ]] || exit 3
_ntscope
[[ ${#COMPREPLY[@]} -eq 0 ]] || printf '%s\\n' "${COMPREPLY[@]}"
"""


def complete(logs, script, *words, taken_apart=None):
    """What bash offers for the last word. taken_apart: the words as bash passes them, where that differs."""
    passed = [scope.NTSCOPE, *(taken_apart or words)]
    line = " ".join([scope.NTSCOPE, *words])
    result = scope.run(["bash", "--norc", "-c", BASH_CALL, "bash", script, line, str(len(passed) - 1), *passed],
                       scope.environment(logs), cwd=logs)
    if result.code != 0 or result.err:
        raise RuntimeError(repr(result))
    return result.text.splitlines()


def bash(test):
    with scope.workspace() as logs, Counter(logs) as counter:
        counter.count(counter.object("orders"), "read", 5)
        counter.count(counter.object("with space"), "write", 5)
        counter.count(counter.object("tcp:7"), "write", 5)
        for name in ("old.ntlog", "night.ntrec", "notes.txt"):
            with open(os.path.join(logs, name), "wb"):
                pass
        os.mkdir(logs + "/more")
        log = next(name for name in os.listdir(logs) if name.startswith("counter."))
        files = sorted([log, "more", "night.ntrec", "old.ntlog"])

        def offers(words, wanted, what, **options):
            test.equal(sorted(complete(logs, BASH, *words, **options)), sorted(wanted), f"bash: {what}")

        offers([""], commands(), "commands")
        offers(["re"], ["record"], "a command that was begun")
        offers(["--v"], ["--version"], "options of ntscope itself")
        for command in commands():
            usage = scope.ntscope("help", command).text
            wanted = sorted(re.findall(r"(?m)^  (?:-\w, )?(--[\w-]+)", usage))
            got = sorted(set(complete(logs, BASH, command, "--")))
            test.equal(got, wanted, f"bash: {command}: all long options that its help has")
        offers(["info", ""], files, "files that can be read, and folders")
        offers(["diff", "night.ntrec", "ol"], ["old.ntlog"], "a second file")
        offers(["record", "-o", "n"], ["night.ntrec", "notes.txt"], "any file where one is written")
        offers(["stat", "--dir", ""], ["more"], "folders")
        offers(["stat", "--format", ""], ["text", "json"], "formats")
        offers(["stat", "--format=j"], ["json"], "formats behind =", taken_apart=["stat", "--format", "=", "j"])
        offers(["stat", "--format="], ["text", "json"], "formats right behind =", taken_apart=["stat", "--format", "="])
        offers(["session", "-s", ""], ["traffic", "last"], "orders")
        offers(["top", "--sort", "M"], ["MEAN", "MAX"], "columns")
        offers(["events", "--where", ""], [], "nothing where anything may stand")
        offers(["clean", ""], [], "nothing where nothing may stand")
        offers(["help", "di"], ["diff"], "commands to be helped with")
        offers(["mask", "x", "+disk-"], ["+disk-read", "+disk-write"], "kinds of a mask")
        offers(["mask", "x", "-read,wr"], ["-read,write"], "further kinds")
        offers(["mask", "x", "=er"], ["error"], "kinds behind =", taken_apart=["mask", "x", "=", "er"])
        offers(["mask", "x", "-"], ["-" + kind for kind in complete(logs, BASH, "mask", "x", "=", taken_apart=["mask", "x", "="])] +
               ["-j", "--json", "-d", "--dir", "-h", "--help"], "kinds and options")
        offers(["events", "node"], ["node-1/"], "nodes of live logs")
        offers(["events", "node-1/counter/"], ["node-1/counter/orders", "node-1/counter/with space", "node-1/counter/tcp:7"],
               "objects below")
        offers(["stat", "counter/o"], ["counter/orders"], "objects without their node")
        offers(["stat", "counter/tcp:"], ["7"], "what bash has taken apart", taken_apart=["stat", "counter/tcp", ":"])
        offers(["mask", "--dir", logs + "/more", "count"], [], "objects of another directory")
        offers(["mask", "-d", logs + "/more", "count"], [], "the same by letter")
        offers(["record", "--", "mkf"], sorted({"mkfifo"} | set(complete(logs, BASH, "stat", "--", "mkf"))), "programs behind --")
        offers(["stat", "--", "ls", "not"], ["notes.txt"], "their files")
        offers(["info", "--", "x"], [], "no programs where none are run")


def in_terminal(test):
    """Shells that a user types at."""
    path = os.path.dirname(scope.NTSCOPE)
    shells = {
        "bash": (["bash", "--norc", "--noprofile", "-i"], [f"PS1='> ' PATH={path}:$PATH; source {BASH}; clear\r"]),
        "zsh": (["zsh", "-f", "-i"],
                [f"PS1='> ' PATH={path}:$PATH; fpath=({MANUAL} $fpath); autoload -Uz compinit; compinit -D -u; clear\r"]),
    }
    with scope.workspace() as logs, Counter(logs) as counter:
        counter.count(counter.object("orders"), "read", 5)
        with open(logs + "/night.ntrec", "wb"), open(logs + "/night.txt", "wb"):
            pass
        for shell, (command, setting) in shells.items():
            env = scope.environment(logs, HOME=logs, HISTFILE="/dev/null")
            with Terminal(command, env, rows=30, columns=150) as terminal:
                terminal.press(f"cd {logs}; ", *setting)
                if not test.ok(terminal.wait_for(lambda lines: lines[0] == ">" and not any(lines[1:])),
                               f"{shell} starts", *terminal.screen.lines):
                    continue
                for typed, wanted in (("ntscope rec\t", "> ntscope record"), ("ntscope stat --form\t", "> ntscope stat --format"),
                                      ("ntscope stat --format j\t", "> ntscope stat --format json"),
                                      ("ntscope info nigh\t", "> ntscope info night.ntrec"),
                                      ("ntscope events node-1/counter/or\t", "> ntscope events node-1/counter/orders"),
                                      ("ntscope mask x +rec\t", "> ntscope mask x +reconnect")):
                    terminal.press(typed)
                    test.ok(terminal.wait_for(lambda lines, wanted=wanted: any(line.rstrip(" =") == wanted for line in lines)),
                            f"{shell} completes to '{wanted[2:]}'", *[line for line in terminal.screen.lines if line])
                    terminal.press("\x15\x0c")
                    terminal.wait_for(lambda lines: lines[0] == ">")
    test.equal(scope.run(["zsh", "-n", ZSH]).code, 0, "zsh can read its completion")


def main():
    test = tap.Tap()
    for name, function in (("section 1", section_1), ("section 3", section_3), ("section 5", section_5), ("form", form),
                           ("generated", generated), ("bash", bash), ("in a terminal", in_terminal)):
        test.attempt(name, function, test)
    test.done()


if __name__ == "__main__":
    main()
