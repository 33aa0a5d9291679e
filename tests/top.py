#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`ntscope top`: what is on the screen is what was counted, each key does what it says, sizes change, the terminal is put back
as it was however it ends; and plain text where there is no terminal.

top.py
"""
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import scope  # noqa: E402
import tap  # noqa: E402
from counter import Counter  # noqa: E402
from terminal import Terminal  # noqa: E402

NOTHING, USAGE, BAD = 1, 2, 3
OBJECTS = 60
LATE = 30000  # objects, so many that a frame of them takes longer than 20 ms


def fill(counter):
    """Channels chan-0 and on below an endpoint; the n-th wrote n + 1 messages of n bytes, and every third read one of 5000."""
    parent = counter.object("listener")
    for number in range(OBJECTS - 1):
        channel = counter.object(f"chan-{number}", parent)
        counter.count(channel, "write", number, number + 1)
        if number % 3 == 0:
            counter.count(channel, "read", 5000)
    return parent


def top(logs, *arguments, **options):
    return Terminal([scope.NTSCOPE, "top", *arguments], scope.environment(logs), **options)


def rows(lines):
    """Those of a screen or a frame: object, kind, count."""
    found = []
    for line in lines:
        words = re.match(r" *\S+ +\S+ +(\d+) .*? ([a-z-]+) +(\S+)$", line)
        if words and words[3] != "OBJECT":
            found.append((words[3].split("/")[-1], words[2], int(words[1])))
    return found


def shows(*texts):
    return lambda lines: all(any(text in line for line in lines) for text in texts)


def keys(test):
    with scope.workspace() as logs, Counter(logs) as counter:
        fill(counter)
        with top(logs, rows=20, columns=100) as terminal:
            terminal.wait_for(shows("chan-0", "OBJECT"))
            heads = next(line for line in terminal.screen.lines if "OBJECT" in line)
            test.ok("EVENTS/Sv" in heads, "sorted by events a second at first", *terminal.screen.lines)
            terminal.press("T")
            terminal.wait_for(lambda lines: shows("TOTALv")(lines) and rows(lines)[:1] == [("chan-0", "read", 1)])
            test.equal(rows(terminal.screen.lines)[0], ("chan-0", "read", 1), "T sorts by total, the greatest first")
            terminal.press("<")
            terminal.wait_for(shows("COUNTv"))
            got = rows(terminal.screen.lines)
            test.equal(got, [(f"chan-{n}", "write", n + 1) for n in range(OBJECTS - 2, OBJECTS - 2 - len(got), -1)],
                       "< sorts by the column to the left: counts")
            test.ok(len(got) == 20 - 3, "the screen is full", *terminal.screen.lines)
            terminal.press(">", ">", ">")
            test.ok(terminal.wait_for(shows("MAXv")), "> by those to the right")
            terminal.press("N")
            test.ok(terminal.wait_for(shows("OBJECTv")) and rows(terminal.screen.lines)[0][0] == "chan-0", "N by object")
            terminal.press("R")
            test.ok(terminal.wait_for(lambda lines: rows(lines)[:1] == [(f"chan-{OBJECTS - 2}", "write", OBJECTS - 1)]),
                    "R turns it round", *terminal.screen.lines)
            terminal.press("R", "page down")
            test.ok(terminal.wait_for(shows("rows 18-34 of 79")), "a page down", *terminal.screen.lines)
            terminal.press("down", "down", "up")
            test.ok(terminal.wait_for(shows("rows 19-35 of 79")), "a row down")
            terminal.press("end")
            test.ok(terminal.wait_for(shows("rows 63-79 of 79")), "to the end")
            terminal.press("page up", "home")
            test.ok(terminal.wait_for(shows("rows 1-17 of 79")), "and back")
            terminal.press("/", "C", "H", "A", "N", "-", "5", "x", "backspace")
            test.ok(terminal.wait_for(lambda lines: lines[-1] == "/CHAN-5" and
                                      {name for name, _, _ in rows(lines)} == {"chan-5", *(f"chan-5{n}" for n in range(9))}),
                    "a filter holds while it is typed", *terminal.screen.lines)
            terminal.press("enter")
            test.ok(terminal.wait_for(lambda lines: shows("filter CHAN-5")(lines) and lines[-1] == ""), "and is kept")
            terminal.press("/", "q", "escape")
            test.ok(terminal.wait_for(shows("filter CHAN-5", "rows 1-13 of 13")), "or given up", *terminal.screen.lines)
            terminal.press("\\")
            test.ok(terminal.wait_for(shows("of 79")), "and cleared")
            terminal.press("t")
            test.ok(terminal.wait_for(lambda lines: any(line.endswith("   node-1/counter  running") for line in lines) and
                                      any(line.endswith("   listener") for line in lines) and
                                      any(line.endswith("     chan-0") for line in lines)),
                    "t shows the tree", *terminal.screen.lines)
            terminal.press("h")
            test.ok(terminal.wait_for(shows("Keys", "sort by events a second")), "h helps", *terminal.screen.lines)
            terminal.press("x", "?")
            test.ok(terminal.wait_for(shows("Keys")), "so does ?")
            terminal.press("x", "q")
            test.ok(terminal.finish() == 0 and terminal.restored, "q quits, and the terminal is as it was",
                    terminal.process.poll())


def motion(test):
    """What is counted meanwhile, pausing, and that nothing is drawn that was there already."""
    with scope.workspace() as logs, Counter(logs) as counter:
        fill(counter)
        with top(logs, "--sort", "count", rows=30, columns=120) as terminal:
            terminal.wait_for(shows("chan-58"))
            counter.count(30, "write", 100, 1000)
            test.ok(terminal.wait_for(lambda lines: rows(lines)[:1] == [("chan-29", "write", 1030)]), "counts as they come",
                    *terminal.screen.lines)
            test.ok(terminal.wait_for(lambda lines: re.match(r" *[1-9]", next((line for line in lines if "chan-29" in line), ""))),
                    "and their rate", *terminal.screen.lines)
            terminal.press("i")
            test.ok(terminal.wait_for(lambda lines: {name for name, _, _ in rows(lines)} <= {"chan-29"}), "only busy ones")
            terminal.press("i", " ")
            test.ok(terminal.wait_for(shows("PAUSED", "chan-58")), "paused", *terminal.screen.lines)
            counter.count(31, "write", 1, 5000)
            terminal.read(0.5)
            test.equal(rows(terminal.screen.lines)[0], ("chan-29", "write", 1030), "then nothing moves")
            terminal.press(" ")
            test.ok(terminal.wait_for(lambda lines: rows(lines)[:1] == [("chan-30", "write", 5031)]), "until it goes on")
            terminal.read(1.5)
            cleared, drawn = terminal.screen.cleared, len(terminal.bytes)
            terminal.read(1)
            drawn = len(terminal.bytes) - drawn
            test.ok(terminal.screen.cleared == cleared and drawn < 30 * 120 * 5, "frames send what has changed, and clear nothing",
                    f"{drawn} bytes in a second, cleared {terminal.screen.cleared - cleared} times")
            for size in ((10, 60), (3, 20), (1, 1), (45, 132)):
                terminal.size(*size)
                terminal.read(0.3)
                test.ok(terminal.process.poll() is None, f"{size[0]} rows of {size[1]}", repr(terminal.bytes[-200:]))
            test.ok(terminal.wait_for(lambda lines: len(rows(lines)) == 45 - 3), "all of a new size is used", *terminal.screen.lines)


def ends(test):
    with scope.workspace() as logs, Counter(logs) as counter:
        fill(counter)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            for paused in (False, True):
                with top(logs) as terminal:
                    terminal.wait_for(shows("chan-"))
                    if paused:
                        terminal.press(" ")
                        terminal.wait_for(shows("PAUSED"))
                    os.kill(terminal.process.pid, number)
                    test.ok(terminal.finish() == 0 and terminal.restored, f"signal {number} ends it, the terminal is as it was",
                            terminal.process.poll(), repr(terminal.bytes[-100:]))
        with top(logs, "-n", "3", "-d", "0.05") as terminal:
            test.ok(terminal.finish() == 0 and terminal.restored, "so does -n", terminal.process.poll())
        with top(logs, kind="nonesuch") as terminal:
            test.ok(terminal.finish() == BAD and b"not known" in terminal.bytes and terminal.restored,
                    "a terminal of an unknown kind is said", terminal.bytes)
        with top(logs) as terminal:
            terminal.wait_for(shows("chan-"))
            counter.end()
            for name in os.listdir(logs):
                os.unlink(os.path.join(logs, name))
            test.ok(terminal.wait_for(shows("programs 0")), "when all is gone it goes on", *terminal.screen.lines)
            terminal.press("t", "page down", "/", "x", "enter", "q")
            test.ok(terminal.finish() == 0 and terminal.restored, "and quits")
        with top(logs) as terminal:
            test.ok(terminal.finish() == NOTHING and b"no logs in" in terminal.bytes and terminal.restored, "no logs are said",
                    terminal.bytes)


def late(test):
    """Keys and signals are heard also where each frame takes longer than the time from one to the next."""
    with scope.workspace() as logs, Counter(logs) as counter:
        for number in range(LATE):
            counter.count(counter.object(f"chan-{number}"), "write", 1)
        for end in ("q", signal.SIGTERM):
            with top(logs, "-d", "0.02") as terminal:
                terminal.wait_for(shows("chan-"))
                terminal.press("/", "c", "h", "a", "n", "-", "9", "9", "enter")
                test.ok(terminal.wait_for(shows("filter chan-99")), "keys are heard by late frames", *terminal.screen.lines)
                if end == "q":
                    terminal.press(end)
                else:
                    os.kill(terminal.process.pid, end)
                test.ok(terminal.finish() == 0 and terminal.restored, f"{end!r} ends late frames", terminal.process.poll())


def plain(test):
    with scope.workspace() as logs, Counter(logs) as counter:
        fill(counter)
        result = scope.ntscope("top", "-n", "1", "--sort", "count", logs=logs)
        test.ok(result.code == 0 and not result.err and b"\x1b" not in result.out, "no terminal: plain text", repr(result))
        wanted = {(f"chan-{n}", "write", n + 1) for n in range(OBJECTS - 1)} | \
            {(f"chan-{n}", "read", 1) for n in range(0, OBJECTS - 1, 3)}
        got = rows(result.text.splitlines())
        test.ok(set(got) == wanted and [count for _, _, count in got] == sorted((count for _, _, count in wanted), reverse=True),
                "all rows, sorted", repr(result))
        with scope.Program([scope.NTSCOPE, "top", "-d", "0.5", "-n", "3", "-f", "chan-7"], scope.environment(logs)) as program:
            first = b""
            while b"chan-7" not in first:
                first += os.read(program.process.stdout.fileno(), 65536)
            counter.count(8, "write", 10, 500)
            frames = (first + program.finish().out).decode().split("\n\n")
        rates = [re.search(r"^ *(\S+) +(\S+) .*chan-7$", frame, re.MULTILINE) for frame in frames]
        test.ok(len(frames) == 3 and rates[0][1] == "0" and any(re.fullmatch(r"[\d.]+k?", rate[1]) and rate[1] != "0"
                                                                for rate in rates[1:]), "frames, with rates", frames)
        result = scope.ntscope("top", "-b", "-n", "1", "--tree", logs=logs)
        test.ok(result.code == 0 and "\n      " in result.text and result.text.count("chan-7\n") == 1, "as a tree", repr(result))
        with scope.Program(["sh", "-c", f"{scope.NTSCOPE} top -d 0.05 | head -n 5"], scope.environment(logs)) as program:
            result = program.finish(10)
        test.ok(not result.timed_out and result.out.count(b"\n") == 5 and not result.err, "who reads may go away", repr(result))
        with scope.Program([scope.NTSCOPE, "top", "-d", "0.1"], scope.environment(logs)) as program:
            time.sleep(0.3)
            program.process.send_signal(signal.SIGTERM)
            result = program.finish(10)
        test.ok(result.code == 0 and result.out.endswith(b"\n"), "a signal ends it between two frames", result.code)
        path = os.path.join(logs, "a.ntrec")
        scope.ntscope("record", "-o", path, "--for", "100ms", logs=logs)
        result = scope.ntscope("top", "-n", "1", "--sort", "count", path)
        test.ok(result.code == 0 and set(rows(result.text.splitlines())) == wanted - {("chan-7", "write", 8)} | {("chan-7", "write", 508)},
                "of a recording too", repr(result))


def hostile(test):
    """Names cannot command the terminal, nor go beyond their line."""
    with scope.workspace() as logs, Counter(logs) as counter:
        for name in (b"\x1b[2J\x1b]0;x\x07", b"\xff\xfe", "\u65e5\u672c\u8a9e".encode() * 30, b"a\nb\tc", "e\u0301".encode(), b"x" * 250):
            counter.count(counter.object(name), "write", 1)
        with top(logs, "-n", "5", columns=150) as terminal:
            shown = terminal.wait_for(shows("\\x1b[2J", "\\xff\\xfe", "a\\x0ab\\x09c"))
            test.ok(shown and terminal.finish() == 0 and len(rows(terminal.screen.lines)) >= 0, "names are shown escaped",
                    *terminal.screen.lines)
        result = scope.ntscope("top", "-n", "1", logs=logs)
        test.ok(result.code == 0 and b"\x1b" not in result.out and b"\xff" not in result.out, "in plain text too", repr(result))


def usage(test):
    with scope.workspace() as logs:
        for arguments, code in ((["--nonsense"], USAGE), (["-d", "x"], USAGE), (["-d", "0"], USAGE), (["-d", "nan"], USAGE),
                                (["-n", "0"], USAGE), (["-n", "x"], USAGE), (["--sort", "x"], USAGE), (["--", "true"], USAGE),
                                (["-f", "x" * 200], USAGE), (["/nonexistent"], BAD), ([], NOTHING)):
            result = scope.ntscope("top", *arguments, logs=logs)
            test.ok(result.code == code and result.out == b"" and result.err.count(b"\n") == 1, f"wrong: top {arguments}", repr(result))


def main():
    test = tap.Tap()
    for case in (keys, motion, ends, late, plain, hostile, usage):
        test.attempt(case.__name__, case, test)
    test.done()


if __name__ == "__main__":
    main()
