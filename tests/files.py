#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Commands on files, recordings above all: `ntscope info` says of one what the other commands say of it, and finds each
damage; `ntscope check` finds what does not add up, and nothing else; `ntscope diff`
what happened between two moments.

files.py [--seed N] [--runs N]
"""
import argparse
import datetime
import json
import os
import random
import re
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import relay  # noqa: E402
import scope  # noqa: E402
import tap  # noqa: E402

NOTHING, USAGE, BAD = 1, 2, 3
WRITE = 1
RUNS, DAMAGES = 40, 400  # at TEST_SCALE 1
LIMIT = 60
LOSSY = {"ring": 16384, "requests": 2000, "fork-every": 0}  # something is overwritten in any case


def run_relay(logs, seed, **fixed):
    options = relay.Options(seed, **fixed)
    result = scope.run(options.command(), scope.environment(logs, NTSCOPE_KEEP="all"), limit=LIMIT)
    if result.code != 0:
        raise RuntimeError(f"relay {options}: {result!r}")
    return options


def only_logs(logs):
    return sorted(os.path.join(logs, name) for name in os.listdir(logs) if name.endswith(".ntlog"))


def record(path, *arguments, logs=None):
    result = scope.ntscope("record", "-o", path, *arguments, logs=logs, limit=LIMIT)
    if result.code != 0:
        raise RuntimeError(f"record: {result!r}")
    return path


def one_line(result):
    return result.out == b"" and result.err.count(b"\n") == 1 and result.err.startswith(b"ntscope: ")


def read_file(path):
    with open(path, "rb") as stream:
        return stream.read()


def write_file(path, data):
    with open(path, "wb") as stream:
        stream.write(data)
    return path


def sum_of_events(path):
    """Of a file, by what `events` prints: events, lost, not logged, overwritten."""
    sums = {"events": 0, "lost": 0, "not logged": 0, "overwritten": 0, "found": 0}
    times = []
    for line in scope.ntscope("events", "--json", path, limit=LIMIT).out.splitlines():
        event = json.loads(line)
        if "reason" in event:
            sums[event["reason"]] += event["count"]
        else:
            sums["events"] += 1
            times.append(event["time"])
    return sums, times


# ---- info ----

def info_agrees(test, seed, runs):
    chance = random.Random(seed)
    wrong, missing = [], 0
    for number in range(runs):
        with scope.workspace() as logs:
            options = run_relay(logs, chance.getrandbits(32), **(LOSSY if number == 0 else {}))
            path = record(os.path.join(logs, "a.ntrec"), logs=logs)
            for name in (path, only_logs(logs)[0]):
                result = scope.ntscope("info", "--json", name)
                said = result.json()
                sums, times = sum_of_events(name)
                missing += sums["lost"] + sums["overwritten"]
                programs = scope.ntscope("ps", "--json", name).json()["processes"]
                sessions = scope.ntscope("session", "--json", name).json()["sessions"]
                wanted = {"file": name, "events": sums["events"], "lost": sums["lost"] - sums["found"],
                          "not_logged": sums["not logged"], "overwritten": sums["overwritten"], "bytes": os.path.getsize(name),
                          "dropped": sum(program["dropped"] for program in programs), "damages": [], "thinned": False,
                          "version": 1, "format": "recording" if name == path else "log", "sessions": len(sessions)}
                got = {key: said[key] for key in wanted}
                if result.code != 0 or got != wanted or len(said["processes"]) != len(programs):
                    wrong.append(f"{options}: {name}: {got} is not {wanted}")
                elif len({said["first"], said["last"]} ^ {min(times), max(times)}) != 0 and name == path:
                    wrong.append(f"{options}: {said['first']} to {said['last']} is not {min(times)} to {max(times)}")
            shown = scope.ntscope("info", path)
            if shown.code != 0 or shown.err or f"  events     {sum_of_events(path)[0]['events']}" not in shown.text or \
                    "the checksums of all blocks hold" not in shown.text:
                wrong.append(f"{options}: {shown!r}")
    test.ok(not wrong, f"info of {runs} relays says what the other commands say", *wrong[:3])
    test.ok(missing > 0, "something was missing in some")


def info_of_damage(test, seed, damages):
    chance = random.Random(seed)
    wrong = []
    with scope.workspace() as logs:
        run_relay(logs, seed, requests=60, churn=0)
        path = record(os.path.join(logs, "a.ntrec"), logs=logs)
        whole = read_file(path)
        other = os.path.join(logs, "b.ntrec")
        for number in range(damages):
            data = bytearray(whole)
            if number % 2 == 0:
                data = data[:chance.randrange(64, len(whole))]
                what = f"cut at {len(data)}"
            else:
                at = chance.randrange(8, len(whole))
                data[at] ^= 1 << chance.randrange(8)
                what = f"byte {at} changed"
            result = scope.ntscope("info", "--json", write_file(other, data))
            told = result.json()["damages"] if result.out else []
            if result.code != BAD or not (result.err or told) or (told and not re.search(r"offset \d+|damaged", told[0])):
                wrong.append(f"{what}: {result!r}")
        text = scope.ntscope("info", write_file(other, whole[:len(whole) // 2]))
        test.ok(text.code == BAD and re.search(r"checks +\d+ damage.*\n +.*offset \d+", text.text) and
                "has no end" in text.text, "what is damaged stands there with its offset", text.text)
    test.ok(not wrong, f"{damages} damaged recordings: each damage is found", *wrong[:3])


def info_of_thinned(test, seed):
    with scope.workspace() as logs:
        run_relay(logs, seed, ring=None, cap=None)
        path = record(os.path.join(logs, "a.ntrec"), "--where", "kind = 'read'", logs=logs)
        said = scope.ntscope("info", "--json", path).json()
        test.ok(said["thinned"] and said["events"] > 0, "that events were left out is said", said)
        several = scope.ntscope("info", path, *only_logs(logs))
        test.ok(several.code == 0 and several.text.count("\n  format ") == 1 + len(only_logs(logs)), "several files", repr(several))


def info_usage(test, _seed):
    with scope.workspace() as logs:
        for arguments in ([], ["--nonsense"], ["--", "true"]):
            result = scope.ntscope("info", *arguments)
            test.ok(result.code == USAGE and one_line(result), f"wrong: info {' '.join(arguments)}", repr(result))
        for name, data in (("text", b"text"), ("empty", b""), ("none", None)):
            path = os.path.join(logs, name)
            if data is not None:
                write_file(path, data)
            result = scope.ntscope("info", path)
            test.ok(result.code == BAD and one_line(result), f"info of what is no such file: {name}", repr(result))


# ---- check ----

def holds(result):
    return result.code == 0 and not result.err and result.out.count(b"\n") == result.out.count(b": laws 1 and 2 hold; ") > 0


def laws_hold(test, seed, runs):
    """Of relays that run, that ended and that were killed, in their logs and recorded while they ran and after."""
    chance = random.Random(seed)
    wrong, missing = [], 0
    for number in range(runs):
        with scope.workspace() as logs:
            options = relay.Options(chance.getrandbits(32), **(LOSSY if number == 0 else {}))
            path = os.path.join(logs, "a.ntrec")
            env = scope.environment(logs, NTSCOPE_KEEP="all")
            results = []
            with scope.Program(options.command(), env) as program:
                scope.wait_for(lambda: only_logs(logs) or program.process.poll() is not None)
                with scope.Program([scope.NTSCOPE, "record", "-o", path], env) as recorder:
                    time.sleep(chance.random() * 0.1)
                    results.append(scope.ntscope("check", logs=logs))
                    if number % 2 == 1:
                        program.end()
                    program.finish(LIMIT)
                    recorder.finish(LIMIT)
            results += [scope.ntscope("check", path), scope.ntscope("check", logs=logs),
                        scope.ntscope("check", *only_logs(logs))]
            results.append(scope.ntscope("check", record(path, logs=logs)))
            missing += sum(b"; missing: " in result.out for result in results)
            wrong += [f"{options}: {result!r}" for result in results if not holds(result)]
    test.ok(not wrong, f"the laws hold for {runs} relays", *wrong[:3])
    test.ok(missing > 0, "something was missing in some")


def events_of(log):
    return [event for event in map(json.loads, scope.ntscope("events", "--json", log).out.splitlines())
            if "reason" not in event and event["kind"] == "write" and event["value"] > 0]


def places(data, what):
    at = data.find(what)
    while at >= 0:
        yield at
        at = data.find(what, at + 1)


def record_at(data, event):
    """Where its value stands in the file."""
    return next(at for at in places(data, struct.pack("<QQQ", event["value"], event["count"], event["total"]))
                if at % 64 == 24 and data[at - 16] == WRITE)


def violations_found(test, seed):
    """Bytes of a log that has no checksums are changed: what does not add up any more is found, there and in its recording."""
    with scope.workspace() as logs:
        run_relay(logs, seed, requests=100, workers=1, churn=0, ring=None, cap=None, size="16:1024", **{"fork-every": 0})
        log = next(path for path in only_logs(logs) if os.path.basename(path).startswith("source."))
        whole, events = read_file(log), events_of(log)
        event = events[len(events) // 2]
        at = record_at(whole, event)
        same = [one for one in events if one["object"] == event["object"]]
        last, most = same[-1], max(one["value"] for one in same)
        tally = whole.find(struct.pack("<QQQ", last["count"], last["total"], most))
        copy = os.path.join(logs, "copy.ntlog")
        for what, offset, said in (("a total", at + 16, "has total"), ("a count", at + 8, "comes again|has total"),
                                   ("a tally", tally + 8, "its tally of")):
            data = bytearray(whole)
            data[offset] ^= 1
            write_file(copy, data)
            for name in (copy, record(os.path.join(logs, "copy.ntrec"), copy)):
                result = scope.ntscope("check", name)
                lines = [line for line in result.text.splitlines() if line.startswith("law 1: ")]
                test.ok(result.code == 1 and any(re.search(said, line) for line in lines) and " violations; " in result.text,
                        f"{what} changed, {name[-5:]}: law 1 does not hold", repr(result))
        both = scope.ntscope("check", log, copy)
        test.ok(both.code == 1 and both.text.count(": laws 1 and 2 hold; ") == 1, "of two files one does not", repr(both))


def first_flags(test, seed):
    """Without the mark of its first event a change of session is not known."""
    with scope.workspace() as logs:
        run_relay(logs, seed, requests=50, workers=1, churn=0, ring=None, cap=None, parts=1, **{"fork-every": 0, "sessions": "on"})
        log = next(path for path in only_logs(logs) if os.path.basename(path).startswith("source."))
        data = bytearray(read_file(log))
        for event in events_of(log):
            data[record_at(data, event) - 15] &= 0xfe
        result = scope.ntscope("check", write_file(os.path.join(logs, "copy.ntlog"), data))
        test.ok(result.code == 1 and "not marked as its first" in result.text, "marks of changes are missed", repr(result))


def check_other(test, seed):
    with scope.workspace() as logs:
        run_relay(logs, seed, requests=60, churn=0)
        path = record(os.path.join(logs, "a.ntrec"), logs=logs)
        thinned = record(os.path.join(logs, "b.ntrec"), "--where", "count > 3", logs=logs)
        result = scope.ntscope("check", thinned)
        test.ok(result.code == 0 and "left out on purpose" in result.text, "what was left out is not held against it", repr(result))
        whole = read_file(path)
        codes = set()
        for size in range(64, len(whole), max(1, len(whole) // 20)):
            result = scope.ntscope("check", write_file(os.path.join(logs, "c.ntrec"), whole[:size]))
            codes.add((result.code, "law " in result.text, bool(re.search(r"offset \d+", result.errors))))
        test.equal(codes, {(BAD, False, True)}, "of a recording that was cut nothing is said but that")
        empty = os.path.join(logs, "empty")
        os.mkdir(empty)
        for arguments, code in ((["--nonsense"], USAGE), (["--", "true"], USAGE), (["/nonexistent"], BAD),
                                (["--dir", empty], NOTHING)):
            result = scope.ntscope("check", *arguments)
            test.ok(result.code == code and one_line(result), f"check {' '.join(arguments)}: exit {code}", repr(result))


# ---- diff ----

def without_pid(path):
    return re.sub(r"^([^/]*/[^/]*)\.\d+(?=/|$)", r"\1", path)


def tables(path, time):
    """By path and kind, what `events` says had been counted up to that time, where nothing is missing."""
    sums = {}
    for line in scope.ntscope("events", "--json", path, limit=LIMIT).out.splitlines():
        event = json.loads(line)
        key = (without_pid(event["path"]), event["kind"])
        if event.get("count") and event["time"] <= time and "reason" not in event:
            life = sums.setdefault(key, {})
            if event["count"] > life.get(event["object"], (0, 0))[0]:
                life[event["object"]] = (event["count"], event["total"])
    return {key: (sum(one[0] for one in lives.values()), sum(one[1] for one in lives.values()))
            for key, lives in sums.items()}


def rfc3339(time):
    seconds, rest = divmod(time, 10 ** 9)
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S") + f".{rest:09}Z"


def moments_agree(test, seed, runs):
    """Two moments of a recording in which nothing is missing: what changed is what happened in between, to the byte."""
    chance = random.Random(seed)
    wrong, rows, new = [], 0, 0
    for number in range(runs):
        with scope.workspace() as logs:
            options = run_relay(logs, chance.getrandbits(32), ring=None, cap=None, churn=0, **{"fork-every": 0})
            path = record(os.path.join(logs, "a.ntrec"), logs=logs)
            said = scope.ntscope("info", "--json", path).json()
            times = sorted(chance.randint(said["first"] - 1000, said["last"]) for _ in range(2))
            if number == 0:  # all of it, so that something is new in any case
                times = [said["first"] - 1000, said["last"]]
            result = scope.ntscope("diff", "--json", "--all", *(f"{path}@{rfc3339(time)}" for time in times))
            diff = result.json()
            wanted = [tables(path, time) for time in times]
            got = [{(without_pid(row["path"]), row["kind"]): (row[side]["count"], row[side]["total"])
                    for row in diff["changes"] if row[side] and row[side]["count"] > 0} for side in ("before", "after")]
            inexact = [row for row in diff["changes"] if not row.get("exact", True) and row["kind"] != "poll"]
            odd = [row for row in diff["changes"] if row["after"] and
                   row["count"] != row["after"]["count"] - (row["before"] or {"count": 0})["count"]]
            for side in range(2):  # polls are not logged, nor all that the log counts by itself
                for key in set(wanted[side]) | set(got[side]):
                    if key[1] not in ("poll", *relay.OWN_WORDS) and wanted[side].get(key) != got[side].get(key):
                        wrong.append(f"{options}: {key}: {got[side].get(key)} is not {wanted[side].get(key)}")
            if result.code not in (0, NOTHING) or inexact or odd or [one["time"] for one in (diff["from"], diff["to"])] != times:
                wrong.append(f"{options}: {result.code} {result.err!r} {inexact[:2]} {odd[:2]}")
            rows += len(diff["changes"])
            new += sum(row["change"] == "new" for row in diff["changes"])
    test.ok(not wrong, f"{runs} recordings: what changed between two moments is what happened", *wrong[:3])
    test.ok(rows > 0 and new > 0, "something changed, something was new", f"{rows} rows, {new} new")


def runs_compared(test, seed):
    with scope.workspace() as logs:
        paths = []
        for number, requests in enumerate((60, 240)):
            one = os.path.join(logs, str(number))
            os.mkdir(one)
            run_relay(one, seed, requests=requests, churn=0, workers=1, threads=1, **{"fork-every": 0, "reconnect-every": 0})
            paths.append(record(os.path.join(logs, f"{number}.ntrec"), logs=one))
        diff = scope.ntscope("diff", "--json", *paths).json()
        sums = [{}, {}]
        for side, path in enumerate(paths):
            for line in scope.ntscope("stat", "--all", "**/disk-write/total", path).text.splitlines():
                sums[side] = int(line.split("\t")[-1])
        rows = [row for row in diff["changes"] if row["kind"] == "disk-write"]
        test.ok(len(rows) == 1 and rows[0]["total"] == sums[1] - sums[0] and rows[0]["exact"] and
                "." not in rows[0]["path"].split("/")[1], "of two runs the same object is compared", rows, sums)
        counts = [abs(row.get("count", row["before"] and row["before"]["count"])) for row in diff["changes"]]
        test.ok(counts == sorted(counts, reverse=True), "the largest change comes first")
        by_total = scope.ntscope("diff", "--json", "--sort", "total", "-n", "5", *paths).json()
        totals = [abs(row.get("total", row["before"] and row["before"]["total"])) for row in by_total["changes"]]
        test.ok(len(totals) == 5 and totals == sorted(totals, reverse=True) and by_total["more"] == len(counts) - 5,
                "or the largest total, and only some", by_total)
        shown = scope.ntscope("diff", *paths)
        test.ok(shown.code == 0 and len(shown.text.splitlines()) == 3 + len(counts), "as text, a line each", repr(shown))
        back = scope.ntscope("diff", "--json", *reversed(paths)).json()
        test.equal(sorted(-row["count"] for row in back["changes"] if row["after"] and row["before"]),
                   sorted(row["count"] for row in diff["changes"] if row["after"] and row["before"]), "and back")
        same = scope.ntscope("diff", paths[0], paths[0])
        test.ok(same.code == NOTHING and same.text.count("\n") == 2, "nothing has changed: exit 1", repr(same))
        log = only_logs(os.path.join(logs, "0"))[0]
        mixed = scope.ntscope("diff", "--json", f"{log}@1970-01-01", log).json()
        test.ok(mixed["changes"] and all(row["change"] == "new" for row in mixed["changes"]),
                "of a log file too: before the beginning there was nothing", mixed["changes"][:2])


def diff_usage(test, seed):
    with scope.workspace() as logs:
        run_relay(logs, seed, requests=60, churn=0)
        path = record(os.path.join(logs, "a.ntrec"), logs=logs)
        odd = write_file(os.path.join(logs, "b@2024-05-01"), read_file(path))
        result = scope.ntscope("diff", odd, f"{odd}@2024-05-01")
        test.ok(result.code == 0, "a file with @ in its name", repr(result))
        for arguments, code in (([], USAGE), ([path], USAGE), ([path] * 3, USAGE), ([path, path, "--sort", "x"], USAGE),
                                ([path, path, "-n", "x"], USAGE), ([path, path + "@soon"], USAGE), ([path, "none"], BAD),
                                ([path, "none@-5s"], BAD), ([path, "--", path], USAGE)):
            result = scope.ntscope("diff", *arguments)
            test.ok(result.code == code and one_line(result), f"wrong: diff {' '.join(map(os.path.basename, arguments))}",
                    repr(result))
        whole = read_file(path)
        cut = scope.ntscope("diff", path, write_file(os.path.join(logs, "c.ntrec"), whole[:len(whole) - 200]))
        test.ok(cut.code == BAD and re.search(r"offset \d+", cut.errors), "one that was cut is read as far as it goes", repr(cut))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int)
    parser.add_argument("--runs", type=int, default=scope.scaled(RUNS, 2))
    arguments = parser.parse_args()
    test = tap.Tap()
    seed = scope.base_seed(arguments.seed)
    test.note(f"seed {seed}")
    test.attempt("info agrees", info_agrees, test, seed, arguments.runs)
    test.attempt("info of damage", info_of_damage, test, seed, scope.scaled(DAMAGES, 8))
    test.attempt("moments agree", moments_agree, test, seed, arguments.runs)
    test.attempt("laws hold", laws_hold, test, seed, arguments.runs)
    for case in (info_of_thinned, info_usage, violations_found, first_flags, check_other, runs_compared, diff_usage):
        test.attempt(case.__name__, case, test, seed)
    test.done()


if __name__ == "__main__":
    main()
