#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tool's command line from outside: exit codes, wrong input, hostile names, pipes, commands that it runs."""
import contextlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
import unicodedata

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import relay  # noqa: E402
import scope  # noqa: E402
import tap  # noqa: E402

NOTHING, USAGE, BAD = 1, 2, 3
RELAY = [scope.RELAY, "--requests=50", "--workers=2"]
COMMANDS = ("ps", "stat", "top", "events", "session", "record", "info", "check", "diff", "mask", "clean", "help")
VERSION_AT = 8  # of the version in a log, a u32


def one_line(result):
    """Whether it said one line of talk, and nothing else."""
    return result.out == b"" and result.err.endswith(b"\n") and result.err.count(b"\n") == 1 and \
        result.err.startswith(b"ntscope: ")


@contextlib.contextmanager
def named(logs, *names, node=b"node-1", log="named", leave=False):
    """A running program with channels of these names; ends, and closes its log, with the block."""
    command = [scope.NAMED_OBJECTS, *(["--leave"] if leave else []), log, node.hex(), *(name.hex() for name in names)]
    with scope.Program(command, scope.environment(logs), stdin=subprocess.PIPE) as program:
        line = program.process.stdout.readline()
        if line != b"ready\n":
            raise RuntimeError(f"named_objects: {program.finish()!r}")
        yield program
        with contextlib.suppress(ProcessLookupError, BrokenPipeError):
            os.kill(program.pid, signal.SIGCONT)
            program.process.stdin.close()
            program.process.wait(10)


def only_log(logs):
    names = [name for name in os.listdir(logs) if name.endswith(".ntlog")]
    if len(names) != 1:
        raise RuntimeError(f"not one log: {names}")
    return os.path.join(logs, names[0])


def read_file(path):
    with open(path, "rb") as stream:
        return stream.read()


def write_file(path, data):
    with open(path, "wb") as stream:
        stream.write(data)
    return path


def find(tree, name):
    """The objects of that name anywhere in a `stat --json`."""
    found = []

    def visit(objects):
        for said in objects:
            if said["name"] == name:
                found.append(said)
            visit(said["objects"])

    for node in tree["nodes"]:
        for process in node["processes"]:
            visit(process["objects"])
    return found


# ---- Usage ----

def usage(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        for arguments in ([], ["nonsense"], ["ps", "--nonsense"], ["stat", "--nonsense"], ["clean", "--nonsense"],
                          ["stat", "-Q"], ["stat", "--format"], ["stat", "--format", "nonsense"], ["stat", "--json=x"],
                          ["clean", "argument"], ["stat", "--"], ["help", "nonsense"]):
            result = scope.ntscope(*arguments, logs=logs)
            test.ok(result.code == USAGE and one_line(result),
                    f"'ntscope {' '.join(arguments)}' is wrong usage: exit 2 and one line", repr(result))
        for arguments in (["--help"], ["-h"], ["help"], *([command, "--help"] for command in COMMANDS),
                          *(["help", command] for command in COMMANDS)):
            result = scope.ntscope(*arguments, logs=logs)
            test.ok(result.code == 0 and b"usage" in result.out.lower() and not result.err,
                    f"'ntscope {' '.join(arguments)}' helps on stdout: exit 0", repr(result))
        result = scope.ntscope("--help", logs=logs)
        test.ok(all(command in result.text for command in COMMANDS), "--help names every command", repr(result))
        result = scope.ntscope("--version", logs=logs)
        test.ok(result.code == 0 and re.fullmatch(r"ntscope \d+\.\d+\.\d+\n", result.text), "--version tells it",
                repr(result))


def nothing_there(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        for what, directory in (("an empty directory", logs), ("a directory that is not there", work + "/none")):
            for command in ("ps", "stat"):
                result = scope.ntscope(command, logs=directory)
                test.ok(result.code == NOTHING and result.out == b"" and result.err.count(b"\n") <= 1,
                        f"{command} of {what} finds nothing: exit 1", repr(result))
            result = scope.ntscope("clean", logs=directory)
            test.ok(result.code == 0 and result.out == b"", f"clean of {what} has nothing to do: exit 0", repr(result))
        test.ok(not os.path.exists(work + "/none"), "no command makes the directory")
        write_file(logs + "/notes.txt", b"mine")
        result = scope.ntscope("ps", logs=logs)
        test.ok(result.code == NOTHING, "a file that is no log's is none", repr(result))


# ---- Paths and numbers ----

def paths(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with named(logs, b"orders", b"results"):
            for path, number in (("*/named/orders/write/total", "100"), ("named/results/write/total", "101"),
                                 ("orders/write/count", "1"), ("orders/write/max", "100"),
                                 ("node-1/named/orders/write/total", "100"), ("**/orders/write/total", "100")):
                result = scope.ntscope("stat", path, logs=logs)
                test.ok(result.code == 0 and result.text == number + "\n" and not result.err,
                        f"stat '{path}' prints one number", repr(result))
            result = scope.ntscope("stat", "*/named/*/write/total", logs=logs)
            test.ok(result.code == 0 and [line.split("\t")[1] for line in result.text.splitlines()] == ["100", "101"],
                    "several numbers are lines of path, tab, number", repr(result))
            result = scope.ntscope("stat", "--json", "orders/write", logs=logs)
            test.ok(result.code == 0 and len(find(result.json(), "orders")) == 1 and
                    not find(result.json(), "results"), "a path picks a branch of the JSON tree", repr(result))
            for path in ("nonsense", "*/named/nonsense/write/total", "orders/read/total", "orders/write/nonsense"):
                result = scope.ntscope("stat", path, logs=logs)
                test.ok(result.code == NOTHING and one_line(result) and path in result.errors,
                        f"stat '{path}' matches nothing: exit 1 and one line that names it", repr(result))
            for path in ("", "orders\\", "a//b", "x" * 70000):
                result = scope.ntscope("stat", path, logs=logs)
                test.ok(result.code in (NOTHING, USAGE, BAD) and one_line(result),
                        f"the odd path '{path[:20]}' of {len(path)} bytes: one line and an exit code", repr(result))


# ---- Wrong files ----

def wrong_files(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with named(logs, b"orders"):
            pass
        log = only_log(logs)
        whole = read_file(log)
        copy = write_file(work + "/copy.ntlog", whole)
        result = scope.ntscope("stat", "--json", copy, logs=work + "/none")
        said = [process for node in result.json()["nodes"] for process in node["processes"]] if result.code == 0 else []
        test.ok(result.code == 0 and len(said) == 1 and find(result.json(), "orders")[0]["tallies"]["write"]["total"]
                == 100, "a log that was copied elsewhere is read", repr(result))
        bad = {
            "an empty file": b"",
            "a text": b"not a log\n" * 1000,
            "another version": whole[:7] + b"\x63" + (99).to_bytes(4, "little") + whole[12:],
            "another version in the magic": whole[:7] + b"\x63" + whole[8:],
            "zeroes": bytes(65536),
            "no header's end": whole[:100],
            "a header alone": whole[:4096],
            "half of it": whole[:len(whole) // 2],
            "a page less": whole[:-4096],
        }
        for what, data in bad.items():
            path = write_file(work + "/bad.ntlog", data)
            for command in ("ps", "stat"):
                result = scope.ntscope(command, path, logs=work + "/none")
                test.ok(result.code == BAD and one_line(result) and "bad.ntlog" in result.errors,
                        f"{command} of a file with {what}: exit 3, one line that names it", repr(result))
        result = scope.ntscope("ps", work + "/not-there", logs=work + "/none")
        test.ok(result.code == BAD and one_line(result) and "not-there" in result.errors,
                "ps of a file that is not there: exit 3, one line that names it", repr(result))
        os.mkfifo(work + "/fifo.ntlog")
        for what, path in (("a directory", logs), ("a FIFO", work + "/fifo.ntlog"), ("a device", "/dev/zero")):
            for command in ("ps", "stat"):
                result = scope.ntscope(command, path, logs=work + "/none", limit=10)
                test.ok(result.code in (NOTHING, BAD) and one_line(result) and not result.timed_out,
                        f"{command} of {what}: one line, at once", repr(result))
        bad_among_good(test, work, logs, bad)


def bad_among_good(test, work, logs, bad):
    path = write_file(os.path.join(logs, "bad.1.2.3.4.ntlog"), bad["half of it"])
    for command in ("ps", "stat"):
        result = scope.ntscope(command, logs=logs)
        test.ok(result.code == BAD and b"named" in result.out and result.err.count(b"\n") == 1,
                f"{command}: one bad log hides none of the others: exit 3", repr(result))
    result = scope.ntscope("clean", logs=logs)
    test.ok(b"named" in result.out and os.path.exists(path),
            "clean removes no file that it cannot read", repr(result))
    link = os.path.join(logs, "link.1.2.3.4.ntlog")
    os.unlink(path)
    os.symlink(work + "/copy.ntlog", link)
    result = scope.ntscope("ps", logs=logs)
    test.ok(b"named" not in result.out and result.code in (NOTHING, BAD), "a link in the directory is not followed",
            repr(result))


# ---- States ----

def states_of(logs):
    result = scope.ntscope("ps", "--json", logs=logs)
    return {process["pid"]: process["state"] for process in result.json()["processes"]} if result.out else {}


def states(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with named(logs, b"orders", log="lives") as lives, named(logs, b"orders", log="stops") as stops:
            with named(logs, b"orders", log="leaves", leave=True) as leaves:
                pass
            with named(logs, b"orders", log="ends") as ends:
                pass
            with named(logs, b"orders", log="dies") as dies:
                dies.end()
                dies.process.wait(10)
            os.kill(stops.pid, signal.SIGSTOP)
            wanted = {lives.pid: "running", stops.pid: "stopped", leaves.pid: "crashed", ends.pid: "exited",
                      dies.pid: "crashed"}
            test.ok(scope.wait_for(lambda: states_of(logs) == wanted),
                    "ps tells running, stopped, exited and crashed programs apart", repr(states_of(logs)), repr(wanted))
            text = scope.ntscope("ps", logs=logs)
            test.ok(text.code == 0 and all(word in text.text for word in ("running", "stopped", "exited", "crashed")),
                    "ps says so in its table", repr(text))
            cleaning(test, work, logs, (lives, stops), (leaves, ends, dies))


def pid_namespace_changed(data):
    """The log of a program whose pid namespace is another: it cannot be told whether it lives."""
    at = 72  # pid_namespace, a u64
    return data[:at] + (4026531837).to_bytes(8, "little") + data[at + 8:]


def cleaning(test, work, logs, living, dead):
    foreign = os.path.join(logs, "foreign.4026531837.7.7.0123456789abcdef.ntlog")
    write_file(foreign, pid_namespace_changed(read_file(
        next(os.path.join(logs, name) for name in os.listdir(logs) if name.startswith("dies.")))))
    os.chmod(foreign, 0o600)
    write_file(os.path.join(logs, "notes.txt"), b"mine")
    unknown = [process for process in scope.ntscope("ps", "--json", logs=logs).json()["processes"]
               if process["path"] == foreign]
    test.ok(unknown and unknown[0]["state"] == "unknown", "a program of another pid namespace is unknown", repr(unknown))
    before = sorted(os.listdir(logs))
    result = scope.ntscope("clean", "--dry-run", logs=logs)
    test.ok(result.code == 0 and sorted(os.listdir(logs)) == before and len(result.text.splitlines()) == len(dead),
            "clean --dry-run lists what would go and removes nothing", repr(result))
    result = scope.ntscope("clean", logs=logs)
    left = sorted(os.listdir(logs))
    test.ok(result.code == 0 and [name.split(".")[0] for name in left] == ["foreign", "lives", "notes", "stops"],
            "clean removes the logs of the dead, and nothing of the living, the unknown or others", repr(result), left)
    test.ok(set(states_of(logs)) >= {program.pid for program in living}, "the living are still there")
    result = scope.ntscope("clean", logs=logs)
    test.ok(result.code == 0 and result.out == b"" and sorted(os.listdir(logs)) == left,
            "clean again has nothing to do", repr(result))
    unfinished = write_file(os.path.join(logs, ".half-made.tmp"), b"")
    scope.ntscope("clean", logs=logs)
    test.ok(os.path.exists(unfinished), "clean removes no file that is not named like a log")


# ---- Names ----

HOSTILE = {
    "an escape sequence": b"\x1b[31mred\x1b]0;title\x07",
    "a C1 control": "\x9b31m".encode(),
    "a line break": b"two\nlines\r\ttab",
    "a right-to-left override": "abc\u202etxt.exe".encode(),
    "bidi isolates": "\u2066a\u2069\u200f\u061c".encode(),
    "a line separator": "a\u2028b\u2029c".encode(),
    "quotes and a backslash": b"\"double\" 'single' \\back\\",
    "a NUL": b"before\x00after",
    "invalid UTF-8": b"\xff\xfe\xc3(\xed\xa0\x80\xf5\x80\x80\x80",
    "an overlong slash": b"\xc0\xaf",
    "slashes and stars": b"a/b/*/**/?",
    "a leading hash": b"#1.2",
    "dots": b"..",
    "nothing but a space": b" ",
    "255 bytes": b"x" * 255,
    "markup": b"<b>&amp;</b>${HOME}`id`%s%n",
    "letters of the world": "поток-日本-ß-é".encode(),
}
BIDI = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029")


def harmless(data):
    """What is wrong with text for a terminal, "" if nothing."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return f"not UTF-8: {error}"
    for character in text:
        if character in BIDI or (unicodedata.category(character) in ("Cc", "Cs", "Co") and character not in "\n\t"):
            return f"has U+{ord(character):04X}"
    return ""


def name_bytes(text):
    """A name of the JSON as the bytes that it was."""
    return text.encode("utf-8", "surrogateescape")


def hostile(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        node = HOSTILE["an escape sequence"] + HOSTILE["a right-to-left override"] + b"\xff"
        with named(logs, *HOSTILE.values(), node=node):
            tree = scope.ntscope("stat", "--json", logs=logs)
            texts = {"ps": scope.ntscope("ps", logs=logs), "stat": scope.ntscope("stat", logs=logs),
                     "stat --all": scope.ntscope("stat", "--all", logs=logs),
                     "stat '**/write/total'": scope.ntscope("stat", "**/write/total", logs=logs),
                     "stat --json": tree, "ps --json": scope.ntscope("ps", "--json", logs=logs)}
            for what, result in texts.items():
                test.ok(result.code == 0 and not harmless(result.out), f"{what} lets no hostile name reach a terminal",
                        harmless(result.out), repr(result))
            test.ok(texts["stat"].text.count("channel") == len(HOSTILE), "a name of two lines is one line of stat",
                    texts["stat"].text)
            objects = {name_bytes(said["name"]): said for process in tree.json()["nodes"][0]["processes"]
                       for said in process["objects"][0]["objects"]}
            for number, (what, name) in enumerate(HOSTILE.items()):
                said = objects.get(name)
                test.ok(said and said["tallies"]["write"]["total"] == 100 + number,
                        f"a name with {what} is itself in JSON", repr(sorted(objects))[:1500])
            test.equal(name_bytes(tree.json()["nodes"][0]["name"]), node, "a hostile node name is itself in JSON")
            printed_paths(test, logs, texts["stat '**/write/total'"])
            bad = b"\x1b[31m\xe2\x80\xae\xff"
            result = scope.ntscope("stat", bad, logs=logs)
            test.ok(result.code == NOTHING and one_line(result) and not harmless(result.err),
                    "a hostile path comes back harmless", repr(result))
            result = scope.ntscope("stat", "x\ny", "--nonsense\x1b[1m", logs=logs)
            test.ok(result.code == USAGE and one_line(result) and not harmless(result.err),
                    "a hostile option comes back harmless", repr(result))


def printed_paths(test, logs, result):
    """A path that stat prints picks the same number."""
    wrong = []
    for line in result.text.splitlines():
        path, _, number = line.rpartition("\t")
        again = scope.ntscope("stat", path, logs=logs)
        if again.text != number + "\n":
            wrong.append(f"{path!r}: {number}, then {again!r}")
    test.ok(len(result.text.splitlines()) == len(HOSTILE) and not wrong,
            "each path that stat prints picks that number alone", *wrong[:5], result.text[:2000])


# ---- Output that cannot be written ----

def outputs(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with named(logs, *(b"channel-%d" % number for number in range(3000))):
            for arguments in (["ps"], ["stat"], ["stat", "--json"], ["stat", "**/write/total"], ["--help"]):
                what = " ".join(arguments)
                with open("/dev/full", "wb") as full:
                    result = scope.ntscope(*arguments, logs=logs, stdout=full)
                test.ok(result.code == BAD and result.err.count(b"\n") == 1,
                        f"{what} to a full device: exit 3 and one line", repr(result))
            for arguments in (["stat"], ["stat", "--json"], ["stat", "**/write/total"]):
                what = " ".join(arguments)
                result = broken_pipe(logs, arguments)
                test.ok(result.code in (0, -signal.SIGPIPE) and not result.err,
                        f"{what} into a pipe that nobody reads ends without a word", repr(result))
            result = scope.run(["/bin/sh", "-c", '"$0" stat >&-', scope.NTSCOPE], scope.environment(logs))
            test.ok(result.code == BAD and result.err.count(b"\n") == 1, "stat without a stdout: exit 3 and one line",
                    repr(result))
            result = scope.ntscope("stat", "-o", work + "/none/file", logs=logs)
            test.ok(result.code == BAD and one_line(result), "stat -o to where it cannot write: exit 3 and one line",
                    repr(result))
            plain = scope.ntscope("stat", "--json", "**/channel-7/write", logs=logs)
            result = scope.ntscope("stat", "--json", "-o", work + "/file", "**/channel-7/write", logs=logs)
            written = read_file(work + "/file")
            test.ok(result.code == 0 and result.out == b"" and timeless(written) == timeless(plain.out),
                    "stat -o writes there what it writes to stdout", repr(result), repr(written), repr(plain))


def timeless(data):
    """Without times: the longer a program runs, the better its clock is known, by nanoseconds."""
    return re.sub(rb"\b\d{19}\b", b"0", data)


def broken_pipe(logs, arguments):
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as stream:
        return scope.ntscope(*arguments, logs=logs, stdout=stream)


# ---- stat -- CMD ----

def commands(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")

        def stat_of(*command, options=(), **more):
            return scope.ntscope("stat", *options, "--", *command, logs=logs, **more)

        for code in (0, 1, 2, 3, 42, 255):
            result = stat_of("/bin/sh", "-c", f"echo out; echo err >&2; exit {code}")
            test.ok(result.code == code and result.out == b"out\n" and result.err.startswith(b"err\n"),
                    f"stat -- CMD has CMD's exit code {code} and leaves its stdout alone", repr(result))
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV):
            result = stat_of("/bin/sh", "-c", f"kill -{int(number)} $$")
            test.ok(result.code == 128 + number, f"stat -- CMD that dies of {number.name} exits {128 + number}",
                    repr(result))
        result = stat_of(work + "/none")
        test.ok(result.code == 127 and result.err.count(b"\n") == 1, "stat -- CMD that is not there: 127", repr(result))
        result = stat_of(write_file(work + "/plain", b"x"))
        test.ok(result.code == 126 and result.err.count(b"\n") == 1, "stat -- CMD that cannot be run: 126", repr(result))
        result = stat_of("/bin/cat", data=b"through")
        test.ok(result.code == 0 and result.out == b"through", "stat -- CMD gets stdin", repr(result))
        test.ok(os.listdir(logs) == [], "what stat -- CMD made is gone", repr(os.listdir(logs)))
        relays(test, work, logs, stat_of)
        signals(test, logs)


def relays(test, work, logs, stat_of):
    bare = scope.run(RELAY, scope.environment(NTSCOPE="off"), limit=60)
    result = stat_of(*RELAY, options=("--json", "-o", work + "/tree.json"), limit=60)
    tree = json.loads(read_file(work + "/tree.json"))
    names = sorted(process["name"] for node in tree["nodes"] for process in node["processes"])
    test.ok(result.code == 0 and not result.err and relay.steady(result.text) == relay.steady(bare.text),
            "stat -- relay prints what relay prints without a log", repr(result), relay.steady(bare.text),
            relay.steady(result.text))
    test.equal(names, ["router", "sink", "source", "worker-1", "worker-2"],
               "stat -- CMD shows the logs of its children's children")
    said = json.loads(next(line for line in result.text.splitlines() if line.startswith('{"process":"worker-1"')))
    orders = [said_of for said_of in find(tree, "orders") if said_of["tallies"]["read"]["total"] ==
              said["channels"]["tcp/inbox/orders"]["read"]["total"]]
    test.ok(len(orders) == 1, "and their totals are those that the command printed", repr(said))
    truth = relay.directory_of(work, "truth")
    result = stat_of(*RELAY, "--requests=300", "--fork-every=2", f"--truth={truth}", options=("--json", "-o", work + "/tree.json"),
                     limit=60)
    comparison = relay.Comparison(json.loads(read_file(work + "/tree.json")), relay.load_truth(truth))
    test.ok(result.code == 0 and not comparison.differences and not comparison.missing and len(comparison.seen) > 20,
            "stat -- CMD loses no log of many forked children", repr(result), len(comparison.seen),
            *comparison.differences[:10], repr(comparison.missing)[:500])
    result = stat_of(*RELAY, options=("worker-1/**/orders/read/total",))
    number = result.errors.strip()
    said = json.loads(next(line for line in result.text.splitlines() if line.startswith('{"process":"worker-1"')))
    test.equal(number, str(said["channels"]["tcp/inbox/orders"]["read"]["total"]),
               "stat PATH -- CMD picks one number")
    test.ok(os.listdir(logs) == [], "nothing is left of any of them", repr(os.listdir(logs)))


def signals(test, logs):
    """What is sent to ntscope reaches the command, and the statistics still come."""
    for number in (signal.SIGTERM, signal.SIGINT):
        script = f"trap 'exit 7' {int(number)}; echo ready; while :; do sleep 0.05; done"
        with scope.Program([scope.NTSCOPE, "stat", "--", "/bin/sh", "-c", script], scope.environment(logs)) as program:
            program.process.stdout.readline()
            os.kill(program.pid, number)
            result = program.finish(15)
        test.ok(result.code == 7 and not result.timed_out, f"{number.name} to stat -- CMD is CMD's", repr(result))


# ---- Other users' directories ----

def directories(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with named(logs, b"orders"):
            result = scope.ntscope("stat", "--dir", logs, "orders/write/total", logs=work + "/none")
            test.ok(result.code == 0 and result.text == "100\n", "--dir names the directory", repr(result))
            test.equal(stat.S_IMODE(os.stat(logs).st_mode), 0o700, "the directory's mode stays")
            start = time.monotonic()
            scope.ntscope("ps", logs=logs)
            test.ok(time.monotonic() - start < 5, "ps answers at once")
        result = scope.ntscope("ps", logs=write_file(work + "/file", b""))
        test.ok(result.code in (NOTHING, BAD) and result.out == b"" and result.err.count(b"\n") == 1,
                "a directory that is a file: one line", repr(result))


def main():
    test = tap.Tap()
    for function in (usage, nothing_there, paths, wrong_files, states, hostile, outputs, commands, directories):
        test.attempt(function.__name__, function, test)
    test.done()


if __name__ == "__main__":
    main()
