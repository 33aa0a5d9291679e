#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The project's own checks find what they are there for: each gets a small tree with one fault in it."""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
SPDX = "/* SPDX-License-Identifier: BSD-3-Clause */\n"
FLOORS = "low:\n    = low.h\nmiddle: low\nmiddle/part: low middle\nhigh: middle\n"
results = []


def case(name, good, detail=""):
    results.append(good)
    if not good:
        print(name, detail, sep=":\n", file=sys.stderr)
    print("ok" if good else "not ok", len(results), "-", name, flush=True)


def run_check(check, files):
    """Output of scripts/check-CHECK.py in a tree of these files (path -> text)."""
    with tempfile.TemporaryDirectory() as tree:
        shutil.copytree(os.path.join(ROOT, "scripts"), os.path.join(tree, "scripts"),
                        ignore=lambda *_: {"size-exceptions.txt", "__pycache__"})
        subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
        for path, text in {"src/floors.txt": FLOORS, **files}.items():
            os.makedirs(os.path.dirname(os.path.join(tree, path)) or tree, exist_ok=True)
            with open(os.path.join(tree, path), "w", encoding="utf-8") as stream:
                stream.write(text)
        result = subprocess.run([sys.executable, f"scripts/check-{check}.py"], cwd=tree, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return result.returncode, result.stdout


def finds(name, check, files, *expected):
    """The check fails and says each of the expected texts; with none it passes."""
    status, output = run_check(check, files)
    good = (status != 0) == bool(expected) and all(text in output for text in expected)
    case(f"{check}: {name}", good and (bool(expected) or not output), output)


def check_floors():
    finds("a floor below is fine", "floors", {"src/high/a.c": SPDX + '#include "middle/m.h"\n'})
    finds("a floor above", "floors", {"src/low/a.c": SPDX + '#include "high/m.h"\n'},
          "src/low/a.c:2: low may not include high")
    finds("a floor below that is not named", "floors", {"src/high/a.c": SPDX + "#include <nt/low.h>\n"},
          "src/high/a.c:2: high may not include low")
    finds("a part of a module that has a line", "floors", {"src/high/a.c": SPDX + '#include "middle/part/p.h"\n'},
          "src/high/a.c:2: high may not include middle/part")
    finds("a part of a module that has none", "floors", {"src/high/a.c": SPDX + '#include "middle/more/p.h"\n'})
    finds("a test may", "floors", {"src/low/a_test.c": SPDX + '#include "high/m.h"\n'})
    finds("a line that names a later one", "floors", {"src/floors.txt": "a: b\nb:\n"},
          "src/floors.txt:1: a names b")
    finds("a module without a line", "floors", {"src/new/a.c": SPDX}, "no line in src/floors.txt")
    finds("a header of nobody", "floors", {"include/nt/new.h": SPDX}, "belongs to no module")


def check_sizes():
    body = "    x();\n"
    finds("80 lines are fine", "sizes", {"a.c": "void f(void)\n{\n" + body * 77 + "}\n"})
    finds("81 lines", "sizes", {"a.c": "void f(void)\n{\n" + body * 78 + "}\n"}, "a.c:1: f: lines 81")
    finds("complexity 16", "sizes", {"a.c": "int f(int a)\n{\n    return " + "a && " * 15 + "a;\n}\n"},
          "f: complexity 16")
    finds("an #else branch counts once", "sizes", {
        "a.c": "int f(int a)\n{\n#if A\n    return " + "a || " * 9 + "a;\n#else\n    return " + "a || " * 9
               + "a;\n#endif\n}\n"})
    nested = "if (a) {\n" * 5 + "a();\n" + "}\n" * 5
    finds("nesting 5", "sizes", {"a.c": "void f(int a)\n{\n" + nested + "}\n"}, "f: nesting 5")
    chain = "if (a) {\n}\n" + "else if (a) {\n}\n" * 6
    finds("an else-if chain does not nest", "sizes", {"a.c": "void f(int a)\n{\n" + chain + "}\n"})
    finds("7 parameters", "sizes", {"a.c": "void f(int a, int b, int c, int d, int e, int g, int h)\n{\n}\n"},
          "f: parameters 7")
    finds("901 lines of file", "sizes", {"a.c": "\n" * 901}, "a.c:1: file: file-lines 901")
    finds("what stands in strings and comments does not count", "sizes", {
        "a.c": 'void f(void)\n{\n    s = "' + "{ if && " * 20 + '";\n    /* ' + "if (a) { " * 20 + "*/\n}\n"})
    finds("an exception that is not needed", "sizes", {
        "a.c": "void f(void)\n{\n}\n", "scripts/size-exceptions.txt": "a.c f lines 90\n"}, "lower the limit")


def check_source():
    finds("a clean file", "source", {"src/low/a.c": SPDX + "/* strcpy( */ int snprintf_(void);\n"})
    finds("no SPDX line", "source", {"src/low/a.c": "int a;\n"}, "src/low/a.c:1:")
    finds("a banned call", "source", {"src/low/a.c": SPDX + "f(strcpy(a, b));\n"}, "a.c:2: banned: strcpy")
    finds("the heap in the log", "source", {"src/log/a.c": SPDX + "p = malloc(1);\n"}, "banned: malloc")
    finds("the heap elsewhere", "source", {"src/low/a.c": SPDX + "p = malloc(1);\n"})
    finds("a path of a machine", "source", {"docs/a.md": "see /" + "work/x\n"}, "docs/a.md:1:")
    finds("a long line", "source", {"src/low/a.c": SPDX + "/* " + "x" * 130 + " */\n"}, "line of 136 columns")


def count(*logs, arguments=()):
    """The words that count-tests.py prints for logs, each a list of (result, output)."""
    with tempfile.TemporaryDirectory() as folder:
        import json
        paths = []
        for number, tests in enumerate(logs):
            paths.append(os.path.join(folder, str(number)))
            with open(paths[-1], "w", encoding="utf-8") as stream:
                for result, output in tests:
                    stream.write(json.dumps({"name": "t", "result": result, "stdout": output}) + "\n")
        return subprocess.run([sys.executable, os.path.join(ROOT, "scripts/count-tests.py"), *arguments, *paths],
                              capture_output=True, text=True).stdout.split()


def check_counts():
    tap = "1..3\nok 1 - a\nnot ok 2 - b\nok 3 # SKIP c\n"
    case("counts: cases of all runs", count([("FAIL", tap)], [("OK", "ok 1 - a\n1..1\n")]) == ["2", "1", "1"])
    case("counts: a crash is one failed", count([("ERROR", "1..2\nok 1 - a\n")]) == ["1", "1", "0"])
    case("counts: out of time is one failed", count([("TIMEOUT", "")]) == ["0", "1", "0"])
    why = " ".join(count([("FAIL", tap.replace("ok 3", "# for a reason\nok 3"))], arguments=["--why"]))
    case("counts: why one failed", "not ok 2 - b # for a reason" in why and "ok 1" not in why)
    case("counts: a hash in a name", count([("OK", "ok 1 - channel #1\n1..1\n")]) == ["1", "0", "0"])


def main():
    check_floors()
    check_sizes()
    check_source()
    check_counts()
    print(f"1..{len(results)}")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
