#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`ntscope events` on real programs: every number exact, order, identity, what is missing in its place, following,
conditions, times, paths, names that would do harm, output that cannot be written."""
import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import time
import unicodedata

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import relay  # noqa: E402
import scope  # noqa: E402
import tap  # noqa: E402
from counter import Counter, account, disorder, events_of, losses_of, parse, unaccounted  # noqa: E402

NOTHING, USAGE, BAD = 1, 2, 3
ODD = [0, 1, 2**31, 2**32, 2**53 + 1, 2**63, 2**64 - 1]
COLUMNS = ["time", "time_raw", "time_error", "log", "ring", "position", "thread", "process", "node", "object", "path",
           "kind", "session", "count", "value", "total", "n", "argument", "flags", "link", "remote_node",
           "remote_process", "data"]
LINE = re.compile(r"(\S+Z)  (\S+) +(\S+) +(\S+) +(.*)")


def one_line(result):
    return result.out == b"" and result.err.count(b"\n") == 1 and result.err.startswith(b"ntscope: ")


def events(*arguments, logs, **options):
    return scope.ntscope("events", *arguments, logs=logs, **options)


# ---- Usage ----

def usage(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        for arguments in (["--nonsense"], ["--where"], ["--where", "value >"], ["--where", "vlaue = 1"],
                          ["--since", "yesterday"], ["--until", "2024-13-01"], ["--since", "-5"], ["--format", "xml"],
                          ["--", "true"], ["--where", "\x1b[31m"]):
            result = events(*arguments, logs=logs)
            test.ok(result.code == USAGE and one_line(result) and b"\x1b" not in result.err,
                    f"'events {' '.join(arguments)}' is wrong usage: exit 2 and one line", repr(result))
        text = events("--help", logs=logs).text
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "docs", "expr.md")) as stream:
            document = stream.read()
        test.equal([name for name in COLUMNS if f"  {name}: " not in text or f"`{name}`" not in document], [],
                   "help and docs/expr.md name every column")
        result = events("--where", "kind = 'read' AND vlaue > 5", logs=logs)
        test.ok("character 19: there is no column vlaue" in result.errors, "what is wrong with EXPR is told with its place",
                repr(result))
        for arguments in ([], ["-f"], ["nonsense"], ["--json"]):
            result = events(*arguments, logs=logs)
            test.ok(result.code == NOTHING and one_line(result), f"'events {' '.join(arguments)}' of no logs: exit 1",
                    repr(result))
        with Counter(logs) as counter:
            counter.count(counter.object("orders"), "read", 5)
            result = events("nonsense", logs=logs)
            test.ok(result.code == NOTHING and one_line(result) and "nonsense" in result.errors,
                    "a path that matches nothing: exit 1 and one line", repr(result))
            with follow(logs, "nonsense") as reader:
                there = select.select([reader.process.stderr], [], [], 20)[0]
                said = there and reader.process.stderr.readline()
                test.equal(said, b"ntscope: nothing matches 'nonsense' so far\n", "following it says so, and goes on")
            result = events("--where", "value = 77", logs=logs)
            test.ok(result.code == NOTHING and result.out == b"", "a condition that no event meets: exit 1", repr(result))
            result = events("a//b", logs=logs)
            test.ok(result.code == BAD and one_line(result), "a bad path: exit 3 and one line", repr(result))


# ---- Numbers ----

def numbers(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with Counter(logs) as counter:
            wanted = []
            for number, value in enumerate(ODD):
                name = f"v{number}"
                made = counter.object(name)
                counter.tell("session", made, value)
                for times in range(1, 4):
                    counter.count(made, "read", value)
                    wanted.append((name, f"{value:016x}", times, value, value * times % 2**64))
            lines = parse(events("--json", logs=logs))
            test.ok(all(list(line) == COLUMNS for line in events_of(lines)), "each JSON line has all columns in order",
                    repr(lines[:1]))
            test.equal([(line["path"].rsplit("/", 1)[1], line["session"], line["count"], line["value"], line["total"])
                        for line in events_of(lines, kind="read")], wanted,
                       "values, totals, counts and sessions of odd size are exact in JSON")
            test.ok(all(line["log"] == lines[0]["log"] and line["process"] == f"counter.{counter.pid}" and
                        line["node"] == "node-1" and line["path"].startswith("node-1/counter") for line in lines),
                    "JSON names log, process, node and path")
            test.ok({line["thread"] for line in events_of(lines)} == {counter.pid}, "and the thread",
                    repr({line["thread"] for line in lines}))
            counter.tell("start", counter.object("threaded"), 3, 1000)
            scope.wait_for(lambda: counter.tally(len(ODD), "ping")[0] > 0)
            counter.tell("stop")
            other = {line["thread"] for line in events_of(parse(events("--json", logs=logs)), kind="ping")}
            test.ok(len(other) == 1 and other != {counter.pid} and None not in other, "whichever it was", repr(other))
            mine = parse(events("--json", "--where", f"thread = {counter.pid} AND kind IN ('read', 'ping')", logs=logs))
            test.ok(len(mine) == 3 * len(ODD), "conditions know threads", len(mine))
            text = events(logs=logs).text
            found = [LINE.fullmatch(line) for line in text.splitlines()]
            said = []
            for match in found:
                rest = re.fullmatch(r"(\d+) bytes  #(\d+)  total (\d+)(?:  session ([0-9a-f]{16}))?(?:  first)?",
                                    match[5]) if match and match[4] == "read" else None
                if rest:
                    said.append((match[3], rest[4] or "0" * 16, int(rest[2]), int(rest[1]), int(rest[3])))
            test.ok(all(found), "each text line has time, program, object, kind", text[:500])
            test.equal(said, wanted, "and they are exact as text", text[:2000])
            wrong = []
            for value in ODD:
                for condition in (f"value = {value}", f"value = 0x{value:x}", f"NOT value <> {value}",
                                  f"value BETWEEN {value} AND {value}", f"value IN ({value})",
                                  f"session = '{value:016x}'", f"session = {value}", f"session IN ('{value:016x}')",
                                  f"session GLOB '{value:016x}'", f"session >= {value} AND session <= {value}"):
                    picked = parse(events("--json", "--where", f"kind = 'read' AND {condition}", logs=logs))
                    if [line["value"] for line in picked] != [value] * 3:
                        wrong.append((condition, [line["value"] for line in picked]))
            test.ok(not wrong, "conditions pick them exactly", *wrong[:5])
            relation = parse(events("--json", "--where", f"kind = 2 AND value > {2**63 - 1}", logs=logs))
            test.equal(sorted({line["value"] for line in relation}), [2**63, 2**64 - 1],
                       "what is beyond 2^63 is more, not less")


def fields(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with Counter(logs) as counter:
            made = counter.object("orders")
            for value in ODD:
                counter.tell("fields", made, value)
            lines = events_of(parse(events("--json", logs=logs)), kind="order")
            test.equal([line["data"] for line in lines],
                       [{"price": 2**64 - 1, "change": -2**63, "rate": 0.1, "raw": "00ff1b",
                         "note": "a\"\x1b[31m\u202e", "id": f"{value:016x}"} for value in ODD],
                       "fields of a user-defined kind are exact in JSON")
            text = events("--where", "kind = 'order'", logs=logs).text
            test.ok(text.count("  price=18446744073709551615 change=-9223372036854775808 rate=0.10000000000000001 "
                               "raw=00ff1b note=\"a\\\"\\x1b[31m\\xe2\\x80\\xae\" id=") == len(ODD),
                    "and as text, where they do no harm", text[:600])
            picked = parse(events("--json", "--where", "data GLOB '*\"id\":\"0020000000000001\"*'", logs=logs))
            test.ok(len(picked) == 1 and picked[0]["value"] == 2**53 + 1, "conditions see them as JSON", repr(picked))
            # declared only after following began
            with follow(logs, "--json", "--since", "-0s") as reader:
                for _ in range(60):  # until it does
                    counter.count(made, "read", 1)
                    if next_line(reader, limit=1):
                        break
                with Counter(logs, log="later") as later:
                    later.tell("fields", later.object("more"), 7)
                    line = next_line(reader, lambda line: line["kind"] == "order")
                    test.ok(line and line["path"].endswith("later/more") and line["data"]["price"] == 2**64 - 1,
                            "programs, objects and kinds that come later are known by name", repr(line))


def sessions(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with Counter(logs) as counter:
            made = counter.object("orders")
            root = int(counter.tell("new", 0, b"night run".hex()))
            child = int(counter.tell("new", root, b"part".hex()))
            counter.count(made, "read", 5)
            counter.tell("join", made, child, 5)
            counter.tell("stand", root)
            counter.tell("end", child)
            lines = events_of(parse(events("--json", logs=logs)), kind="session")
            test.equal([(line["session"], line["value"], line["argument"]) for line in lines],
                       [(f"{root:016x}", 1, 0), (f"{child:016x}", 1, root), (f"{child:016x}", 4, 1),
                        (f"{root:016x}", 3, 0), (f"{child:016x}", 2, 0)], "what becomes of sessions is shown")
            text = events("--where", "kind = 'session'", logs=logs).text
            said = [re.search(r"  session +(.*?)  #\d+  ", line)[1] for line in text.splitlines()]
            test.equal(said, ["new", f"new in {root:016x}", "join from read #1", "standing", "end"], "in words as text",
                       text)
            test.equal([line.rsplit("  session ", 1)[1].split("  ")[0] for line in text.splitlines()],
                       ["'night run'", "'part'", "'part'", "'night run'", "'part'"], "with the names of sessions")
            for condition in ("session = 'part'", "session IN ('x', 'part')", "session GLOB 'p?rt'",
                              f"session = '{child:016x}'", f"session GLOB '*{child & 0xffff:04x}'"):
                found = parse(events("--json", "--where", f"{condition} AND kind = 'session'", logs=logs))
                test.equal([line["value"] for line in found], [1, 4, 2], f"conditions know names: {condition}")
            with follow(logs, "--json", "--since", "-0s", "--where", "session = 'later'") as reader:
                later = int(counter.tell("new", 0, b"later".hex()))
                counter.tell("session", made, later)

                def seen():
                    counter.count(made, "read", 7)
                    line = next_line(reader, limit=0.1)
                    return line and line["session"] == f"{later:016x}"

                test.ok(scope.wait_for(seen), "one that is made later is known by its name while following")
            counter.tell("session", made, 0)
            counter.count(made, "read", 9)
            with follow(logs, "--json", "--where", "session GLOB 'brief *' AND kind = 'read' OR value = 9") as reader:
                next_line(reader)
                brief = [int(counter.tell("new", 0, f"brief {i}".encode().hex())) for i in range(30)]
                for session in brief:
                    counter.tell("session", made, session)
                    counter.count(made, "read", 8)
                counter.tell("session", made, 0)
                found = [next_line(reader) for _ in brief]
                test.equal([line and line["session"] for line in found], [f"{session:016x}" for session in brief],
                           "and so are those that are over as soon as they began")
            text = events("--where", "value = 8", logs=logs).text
            test.equal(re.findall("session '(.*?)'", text), [f"brief {i}" for i in range(30)], "and without following", text)


def remotes(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with Counter(logs) as counter, follow(logs, "--json", "--where", "kind = 'read'") as reader:
            made = counter.object("orders")
            counter.count(made, "read", 1)
            line = next_line(reader)
            test.ok(line and line["remote_node"] is None and line["remote_process"] is None, "no other end is known at first",
                    repr(line))
            counter.tell("remote", made, b"node-9".hex(), "sink-\u202e7".encode().hex())

            def known():
                counter.count(made, "read", 2)
                line = next_line(reader)
                return line and (line["remote_node"], line["remote_process"]) == ("node-9", "sink-\u202e7")

            test.ok(scope.wait_for(known), "once it is said, it is known while following")
            said = parse(events("--json", "--where", "remote_node = 'node-9' AND remote_process GLOB 'sink-?7' AND value = 1",
                                logs=logs))
            test.ok(len(said) == 1, "and conditions see it", repr(said))


# ---- Order and what is missing ----

def order(test):
    seed = scope.base_seed()
    test.note(f"seed {seed}")
    for number in range(scope.scaled(60, 3)):
        options = relay.Options(seed + number)
        with scope.workspace() as work:
            logs = relay.directory_of(work, "logs")
            result = scope.run(options.command(), scope.environment(logs, NTSCOPE_KEEP="all"), limit=60)
            said = events("--json", logs=logs, limit=60)
            lines = parse(said)
            wrong = disorder(lines) + unaccounted(lines)
            late = sum("late" in line["flags"] for line in events_of(lines))
            test.ok(result.code == 0 and said.code == 0 and len(lines) > 100 and not wrong,
                    f"{len(events_of(lines))} events, {len(losses_of(lines))} losses, {late} late: in order, none twice, "
                    f"all accounted for: {options}", repr(result)[:500], *wrong[:10])


def overrun(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with Counter(logs, ring=16384) as counter:
            made = counter.object("orders")
            counter.count(made, "read", 3, 1000)
            counter.count(made, "write", 1, 10)
            lines = parse(events("--json", logs=logs))
            first = lines[0]
            test.ok(first["kind"] == "loss" and first["reason"] == "overwritten" and first["first"] == 0 and
                    first["count"] == first["last"] // 64 and first["ring"] == 0,
                    "what was overwritten is told first", repr(first))
            reads = events_of(lines, kind="read")
            slots = scope.ntscope("ps", "--json", logs=logs).json()["processes"][0]["events"]
            test.ok(reads and reads[-1]["count"] == 1000 and reads[-1]["total"] == 3000 and
                    first["count"] + len(events_of(lines)) == slots, "and is as much as is not there", slots,
                    repr(lines)[:1500])
            test.ok(not unaccounted(lines), "counts are accounted for", *unaccounted(lines))
            text = events(logs=logs).text.splitlines()
            test.ok(re.fullmatch(rf"\S+  counter.{counter.pid}  ring 0  -- {first['count']} overwritten --", text[0]),
                    "text says so in its first line", text[0])
            for condition, wanted in (("process = 'other'", 0), ("process = 'counter'", 1), ("value > 5", 1),
                                      ("node <> 'node-1'", 0), ("kind = 'ping'", 1)):
                said = losses_of(parse(events("--json", "--where", condition, logs=logs)), "overwritten")
                test.ok(len(said) == wanted, f"a loss {'may' if wanted else 'cannot'} be of what meets: {condition}",
                        repr(said))


def stopped_reader(test):
    """A reader that does not read for many laps of the rings shows one loss a ring, and goes on."""
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with Counter(logs, ring=16384) as counter:
            made = [counter.object(f"o{number}") for number in range(2)]
            for number in made:
                counter.tell("start", number, 2, 500)
            with open(work + "/out", "wb") as stream:
                reader = scope.Program([scope.NTSCOPE, "events", "-f", "--json"], scope.environment(logs), stdout=stream)
                with reader:
                    read = scope.wait_for(lambda: os.path.getsize(work + "/out") > 20000)
                    os.kill(reader.pid, signal.SIGSTOP)
                    until = [counter.tally(number, "read")[0] + 1500 for number in made]  # 256 slots a lap
                    stalled = scope.wait_for(lambda: all(counter.tally(number, "read")[0] > least
                                                         for number, least in zip(made, until)), 60)
                    os.kill(reader.pid, signal.SIGCONT)
                    size = os.path.getsize(work + "/out")
                    read = read and scope.wait_for(lambda: os.path.getsize(work + "/out") > size + 60000, 20)
                    counter.tell("stop")
                    counted = [counter.tally(number, "read")[0] for number in made]
                    counter.end()
                    result = reader.finish(20)
            with open(work + "/out", "rb") as stream:
                lines = parse(scope.Result(0, stream.read(), b"", False))
        overwritten = losses_of(lines, "overwritten")
        rings = [loss["ring"] for loss in overwritten]
        test.ok(read and stalled and result.code == 0, "it reads, is stopped for laps, and goes on", repr(result))
        test.ok(len(rings) >= 2 and len(rings) == len(set(rings)), "there is one loss a ring", repr(overwritten))
        test.ok(not disorder(lines) and not unaccounted(lines), "order and accounts hold", *disorder(lines)[:5],
                *unaccounted(lines))
        lost = [loss for loss in losses_of(lines, "lost") if loss["of"] == "read"]
        test.ok(len(lost) == 2 and all(loss["count"] > 1000 for loss in lost), "of each object one run is missing",
                repr(lost))
        ends = [entry["last"] for key, entry in account(lines).items() if key[2] == "read"]
        test.equal(sorted(ends), sorted(counted), "and the last events of both are there")


# ---- Following ----

def follow(logs, *arguments):
    return scope.Program([scope.NTSCOPE, "events", "-f", *arguments], scope.environment(logs))


def next_line(reader, wanted=lambda line: True, limit=20):
    """The next JSON line of that kind, None if there is none for so long."""
    end = time.monotonic() + limit
    pipe = reader.process.stdout.fileno()
    rest = getattr(reader, "rest", b"")
    while True:
        line, newline, rest = rest.partition(b"\n")
        if newline:
            reader.rest = rest
            said = json.loads(line)
            if wanted(said):
                return said
            continue
        rest = reader.rest = line
        if not select.select([pipe], [], [], max(0, end - time.monotonic()))[0]:
            return None
        more = os.read(pipe, 65536)
        if not more:
            return None
        rest += more


def following(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with Counter(logs) as counter:
            made = counter.object("orders")
            counter.count(made, "read", 5)
            with follow(logs, "--json") as reader:
                line = next_line(reader, lambda line: line["kind"] == "read")
                test.ok(line and line["value"] == 5, "-f begins with what is there", repr(line))
                for value in (6, 7, 8):
                    counter.count(made, "read", value)
                    line = next_line(reader, lambda line: line["kind"] == "read")
                    test.ok(line and line["value"] == value, f"and shows what comes: {value}", repr(line))
                os.kill(reader.pid, signal.SIGINT)
                result = reader.finish(20)
                test.ok(result.code == 0 and not result.err and not result.timed_out, "SIGINT ends it: exit 0",
                        repr(result))
            with follow(logs, "--json", "--since", "-0s", "*/orders/write") as reader:
                time.sleep(0.1)
                counter.count(made, "read", 1)
                counter.count(made, "write", 9)
                line = next_line(reader)
                test.ok(line and line["kind"] == "write" and line["value"] == 9,
                        "a path may name a kind that was not counted before", repr(line))
                counter.end()
                result = reader.finish(20)
                test.ok(result.code == 0 and result.out == b"", "it ends when no program runs any more", repr(result))
        with Counter(logs, log="again") as counter:
            made = counter.object("orders")
            with follow(logs, "--json", "--until", "-0s") as reader:
                result = reader.finish(20)
                test.ok(not result.timed_out, "it ends once `until` has passed", repr(result))
            with follow(logs, "--where", "value = 1") as reader:
                reader.process.stdout.close()
                ended = scope.wait_for(lambda: reader.process.poll() is not None, 20)
                test.ok(ended and not reader.process.stderr.read(), "it ends without a word when nobody reads it any more")
            counter.leave()
            result = scope.ntscope("events", "-f", "--json", "again", logs=logs)
            test.ok(result.code == 0 and not result.timed_out and len(result.text.splitlines()) == 1,
                    "of dead programs it shows what there is, and ends", repr(result))


def churn(test):
    """Objects that come and go while they are followed are all shown by name."""
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with Counter(logs) as counter, follow(logs, "--json", "--where", "kind = 'read'") as reader:
            said = []
            for number in range(60):
                made = counter.object(f"short-{number}")
                counter.count(made, "read", number)
                counter.tell("close", made)
                line = next_line(reader)
                said.append((line["path"], line["value"]))
            test.equal(said, [(f"node-1/counter/short-{number}", number) for number in range(60)],
                       "each short life has its name")


# ---- What is asked for ----

def picking(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with Counter(logs, log="one") as one, Counter(logs, log="two", node="node-2") as two:
            for number, counter in ((1, one), (2, two)):
                inbox = counter.object("inbox")
                orders = counter.object("orders", inbox)
                for made, kind, value in ((inbox, "read", 1), (orders, "write", 10), (orders, "error", 100)):
                    counter.count(made, kind, value * number)
                    time.sleep(0.005)

            def values(*arguments):
                lines = events_of(parse(events("--json", *arguments, logs=logs)))
                return sorted(line["value"] for line in lines if line["kind"] not in ("open", "close"))

            for arguments, wanted in ((["one"], [1, 10, 100]), (["node-2"], [2, 20, 200]),
                                      (["**/orders"], [10, 20, 100, 200]), (["two/inbox"], [2, 20, 200]),
                                      (["orders/write"], [10, 20]), (["one/**/error", "two/inbox/read"], [2, 100]),
                                      (["--where", "process = 'one'"], [1, 10, 100]),
                                      (["--where", f"process = {two.pid}"], [2, 20, 200]),
                                      (["--where", f"process = 'two.{two.pid}'"], [2, 20, 200]),
                                      (["--where", "node = 'node-2' AND kind IN ('read', 10)"], [2, 200]),
                                      (["--where", "object = 'orders' AND kind <> 'error'"], [10, 20]),
                                      (["--where", "path GLOB '*/inbox/*' AND kind = 1"], [10, 20]),
                                      (["--where", "kind GLOB 'w*' OR value BETWEEN 150 AND 250"], [10, 20, 200]),
                                      (["one", "--where", "NOT (kind = 'read' OR kind = 'write')"], [100]),
                                      (["--where", "link IS NULL AND value >= 100"], [100, 200]),
                                      (["--where", "time > '1970-01-02' AND time < '-0s' AND value = 1"], [1]),
                                      (["--where", "time > '2500-01-01'"], [])):
                test.equal(values(*arguments), wanted, f"events {' '.join(arguments)}")
            # Of one event times differ by nanoseconds between two looks: clocks become better known.
            middle = {line["value"]: line["time"] for line in events_of(parse(events("--json", logs=logs)))}
            for since, until, wanted in ((middle[10] - 10**6, middle[10] + 10**6, [10]),
                                         (None, middle[10] - 10**6, [1]), (middle[10] + 10**6, None, [2, 20, 100, 200])):
                words = []
                for option, at in (("--since", since), ("--until", until)):
                    if at is not None:
                        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at // 10**9))
                        words += [option, f"{seconds}.{at % 10**9:09d}Z"]
                test.equal(values(*words), wanted, f"events {' '.join(words)}")
            test.equal(values("--since", "-1h", "--until", "-0s"), [1, 2, 10, 20, 100, 200], "lengths of time")
            test.equal(values("--until", "-1h"), [], "and none so long ago")
            log = next(os.path.join(logs, name) for name in os.listdir(logs) if name.startswith("one."))
            with open(log, "rb") as stream, open(work + "/copy.ntlog", "wb") as copy:
                copy.write(stream.read())
            lines = parse(scope.ntscope("events", "--json", work + "/copy.ntlog", logs=work + "/none"))
            test.equal(sorted(line["value"] for line in events_of(lines) if line["kind"] != "open"), [1, 10, 100],
                       "a copied log is read")
            result = scope.ntscope("events", "-f", work + "/copy.ntlog", logs=work + "/none")
            test.ok(result.code == 0 and not result.timed_out, "and following it ends", repr(result))


# ---- Harm ----

def harmless(data):
    text = data.decode()
    bad = [character for character in text
           if unicodedata.category(character) in ("Cc", "Cs", "Co") and character != "\n" or
           unicodedata.bidirectional(character) in ("RLE", "RLO", "LRE", "LRO", "PDF", "RLI", "LRI", "FSI", "PDI")]
    return not bad


def hostile(test):
    names = [b"\x1b[31mred\x1b]0;title\x07", b"two\nlines\r\t", "abc\u202etxt.exe".encode(), b"\xff\xfe\xc0\xaf",
             b"\"quotes\" \\back\\", b"a/b/*/?", b"#1.2", "\u2066a\u2069\u200f".encode(), b"x" * 255]
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with Counter(logs) as counter:
            for value, name in enumerate(names):
                counter.count(counter.object(name), "read", value)
            for arguments in ([], ["--json"]):
                result = events(*arguments, "--where", "kind = 'read'", logs=logs)
                test.ok(result.code == 0 and harmless(result.out) and result.out.count(b"\n") == len(names),
                        f"events {' '.join(arguments)}: one line a name, none does harm", repr(result.out[:600]))
            for value, name in enumerate(names):
                quoted = name.replace(b"'", b"''")
                lines = parse(events("--json", "--where", b"kind = 2 AND object = '" + quoted + b"'", logs=logs))
                test.ok([line["value"] for line in lines] == [value], f"a condition finds {name!r}", repr(lines))
                path = lines[0]["path"].replace("'", "''") if lines else ""
                again = parse(events("--json", "--where", f"kind = 2 AND path = '{path}'", logs=logs))
                test.ok([line["value"] for line in again] == [value], f"and its path finds it too: {path}", repr(again))


def broken_logs(test):
    """Logs with random damage: whatever they say, lines are lines and nothing crashes or hangs."""
    seed = scope.base_seed()
    test.note(f"seed {seed}")
    chance = random.Random(seed)
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with Counter(logs, ring=16384) as counter:
            made = counter.object("orders")
            root = int(counter.tell("new", 0, b"night run".hex()))
            counter.tell("session", made, root)
            counter.tell("remote", made, b"node-9".hex(), b"sink".hex())
            for value in ODD:
                counter.count(made, "read", value, 20)
                counter.tell("fields", made, value)
            counter.tell("mask", made, 6)
            pages, size = pages_of(os.path.join(logs, os.listdir(logs)[0]))
            counter.leave()
        wrong, path = [], os.path.join(work, "broken.ntlog")
        for turn in range(scope.scaled(2000, 20)):
            with open(path, "wb") as stream:
                for at, page in pages.items():
                    os.pwrite(stream.fileno(), page, at)
                for _ in range(chance.choice((1, 3, 10, 100))):
                    at = chance.choice(list(pages)) + chance.randrange(4096)
                    if chance.random() < 0.5:
                        os.pwrite(stream.fileno(), bytes([chance.randrange(256)]), at)
                    else:
                        odd = chance.choice((0, 1, 2**32, 2**63, 2**64 - 1))
                        os.pwrite(stream.fileno(), odd.to_bytes(8, "little"), at & ~7)
                stream.truncate(size if chance.random() < 0.9 else chance.randrange(size))
            for arguments in (["events", path], ["events", "--json", path, "--where", "value >= 0 OR data IS NULL"],
                              ["mask", path], ["mask", path, "orders", "-read"]):
                result = scope.ntscope(*arguments, logs=work + "/none", limit=20)
                if result.code not in (0, NOTHING, BAD) or result.timed_out or not harmless(result.out + result.err):
                    wrong.append(f"turn {turn}: {arguments}: {result!r}")
                elif arguments[1] == "--json":
                    parse(result)
        test.ok(not wrong, f"{turn + 1} broken logs", *wrong[:5])


def pages_of(path):
    """The pages that a log has, by offset, and its size."""
    pages = {}
    with open(path, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        at = os.lseek(stream.fileno(), 0, os.SEEK_DATA)
        while at < size:
            pages[at] = os.pread(stream.fileno(), 4096, at)
            try:
                at = os.lseek(stream.fileno(), at + 4096, os.SEEK_DATA)
            except OSError:
                break
    return pages, size


def output(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with Counter(logs) as counter:
            counter.count(counter.object("orders"), "read", 5, 10000)
            for arguments in ([], ["--json"], ["-f"]):
                what = " ".join(["events", *arguments])
                with open("/dev/full", "wb") as full:
                    result = events(*arguments, logs=logs, stdout=full)
                test.ok(result.code == BAD and result.err.count(b"\n") == 1, f"{what} to a full device: exit 3, one line",
                        repr(result))
                read_end, write_end = os.pipe()
                os.close(read_end)
                with os.fdopen(write_end, "wb") as stream:
                    result = events(*arguments, logs=logs, stdout=stream)
                test.ok(result.code in (0, -signal.SIGPIPE) and not result.err and not result.timed_out,
                        f"{what} into a pipe that nobody reads ends without a word", repr(result))
            result = scope.run(["/bin/sh", "-c", '"$0" events | head -n 1', scope.NTSCOPE], scope.environment(logs))
            test.ok(result.out.count(b"\n") == 1 and not result.err, "events | head says nothing more", repr(result))
            process = subprocess.run([scope.NTSCOPE, "events", "-f"], env=scope.environment(logs), timeout=20,
                                     preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN),
                                     stdout=open("/dev/full", "wb"), stderr=subprocess.PIPE, check=False)
            test.ok(process.returncode == BAD, "nor does it go on where signals are ignored", repr(process))


def main():
    test = tap.Tap()
    for function in (usage, numbers, fields, sessions, remotes, order, overrun, stopped_reader, following, churn, picking,
                     hostile, broken_logs, output):
        test.attempt(function.__name__, function, test)
    test.done()


if __name__ == "__main__":
    main()
