#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`ntscope session` on real programs: every sum is what an independent look at the logs finds, by channel it is the
truth or says "at least"; ids and names of all kinds, trees, order, what is marked, running and broken programs, and the
session tree of `ntscope stat --json`.

session.py [--seed N] [--runs N]
"""
import argparse
import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import unicodedata

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import processes  # noqa: E402
import relay  # noqa: E402
import scope  # noqa: E402
import sessions  # noqa: E402
import tap  # noqa: E402
from session_answers import check_channels, sums_of  # noqa: E402

NOTHING, USAGE, BAD = 1, 2, 3
RUNS = 60  # at TEST_SCALE 1
LIMIT = 60
ODD = [1, 2**31, 2**32, 2**53 + 1, 2**63, 2**64 - 1]
WORD = 1 << 64
OWN_WORDS = sessions.OWN_WORDS
NAMES = [b"plain", b"GET /index.html", b"esc\x1b[31m", b"nul-free\x7f\x9b", "bidi\u202egnp".encode(), b"\xff\xfe", b"a\nb",
         "\U0001f600 smile".encode(), b"back\\slash", b"quote\"", b"x" * 94]


def one_line(result):
    return result.out == b"" and result.err.count(b"\n") == 1 and result.err.startswith(b"ntscope: ")


def session(*arguments, logs, **options):
    return scope.ntscope("session", *arguments, logs=logs, **options)


@contextlib.contextmanager
def told(logs, *names, depth=0, many=0, log="told"):
    """A running program with sessions of these names; ends, and closes its log, with the block. Gives their ids."""
    command = [scope.built("tests", "told_sessions"), log, str(depth), str(many), *(name.hex() for name in names)]
    with scope.Program(command, scope.environment(logs), stdin=subprocess.PIPE) as program:
        ids = []
        for line in iter(program.process.stdout.readline, b"ready\n"):
            if not line:
                raise RuntimeError(f"told_sessions: {program.finish()!r}")
            ids.append(line.decode().strip())
        yield program, ids
        with contextlib.suppress(ProcessLookupError, BrokenPipeError):
            os.kill(program.pid, signal.SIGCONT)
            program.process.stdin.close()
            program.process.wait(10)


def by_id(answer):
    return {one["id"]: one for one in answer["sessions"]}


def flatten(trees):
    for tree in trees:
        yield tree
        yield from flatten(tree["sessions"])


def harmless(text):
    """Whether nothing in it can command a terminal or turn text around."""
    return not any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
                   for character in text.replace("\n", ""))


# ---- Usage ----

def usage(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        for arguments in (["--nonsense"], ["--sort"], ["--sort", "name"], ["--format", "xml"], ["--", "true"]):
            result = session(*arguments, logs=logs)
            test.ok(result.code == USAGE and one_line(result),
                    f"'session {' '.join(arguments)}' is wrong usage: exit 2 and one line", repr(result))
        for arguments in ([""], ["[a-"], ["\x1b[31"]):
            result = session(*arguments, logs=logs)
            test.ok(result.code in (NOTHING, BAD) and one_line(result) and b"\x1b" not in result.err,
                    f"'session {arguments!r}': one harmless line", repr(result))
        for arguments in ([], ["--tree"], ["nonsense"], ["--json"]):
            result = session(*arguments, logs=logs)
            test.ok(result.code == NOTHING and one_line(result), f"'session {' '.join(arguments)}' of no logs: exit 1",
                    repr(result))
        with told(logs, b"one"):
            for arguments in (["two"], ["12345"], ["00000000000000ff"], ["--json", "t*"]):
                result = session(*arguments, logs=logs)
                test.ok(result.code == NOTHING and one_line(result),
                        f"'session {' '.join(arguments)}', which is none: exit 1 and one line", repr(result))
            result = session("one", "two", logs=logs)
            test.ok(result.code == NOTHING and b"one" in result.out and result.err.count(b"\n") == 1,
                    "one that is and one that is not: the first is shown", repr(result))
            with open("/dev/full", "wb") as full:
                result = session(logs=logs, stdout=full)
                test.ok(result.code == BAD and result.err.count(b"\n") == 1, "output that cannot be written: exit 3",
                        repr(result))


# ---- Ids and names ----

def odd(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with told(logs, *NAMES, depth=3) as (_, ids):
            answer = session("--json", logs=logs).json()
            known = by_id(answer)
            for number in ODD:
                wanted = {"write": (1, number), "read": (1, number)}
                test.equal(sums_of(known.get(f"{number:016x}", {"kinds": {}})), wanted, f"session {number}: exact sums")
                for text in (str(number), f"{number:016x}", f"{number:016X}"):
                    shown = session("--json", text, logs=logs).json()["sessions"]
                    test.ok(len(shown) == 1 and shown[0]["id"] == f"{number:016x}" and shown[0]["exact"],
                            f"session {text} is found by its id", repr(shown))
                result = session(str(number), logs=logs)
                test.ok(re.search(rf"\bwrite +1 +{number} +bytes\n", result.text), f"session {number}: exact in text",
                        repr(result))
            names = [known[one]["name"].encode("utf-8", "surrogateescape") for one in ids[:len(NAMES)]]
            test.equal(names, NAMES, "names are the bytes that were given")
            text = session(logs=logs)
            test.ok(text.code == 0 and harmless(text.text) and text.text.count("\n") == len(known) + 2,
                    "in a list each session has one line that commands no terminal", repr(text))
            for one in ids:
                text = session(one, logs=logs)
                test.ok(text.code == 0 and harmless(text.text), f"session {one} shown: nothing commands a terminal",
                        repr(text))
            result = session("--json", "GET *", logs=logs).json()["sessions"]
            test.equal([one["name"] for one in result], ["GET /index.html"], "a pattern picks by name")
            test.equal(sums_of(answer["no_session"])["write"], (1, 5), "what was counted in no session")
            test.equal(answer["older_sessions"]["kinds"], {}, "nothing is older")


def trees(test):
    depth = 300
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with told(logs, b"alone", depth=depth) as (_, ids):
            chain = ids[1:]
            answer = session("--json", "--tree", logs=logs).json()
            all_of = {one["id"]: one for one in flatten(answer["sessions"])}
            test.equal([sums_of(all_of[one]["all"])["write"] for one in chain],
                       [(left, left) for left in range(depth, 0, -1)], "a chain: each has the sums of all below it")
            test.equal([all_of[one]["depth"] for one in chain], list(range(depth)), "and its depth")
            test.equal({all_of[one]["root"] for one in chain}, {chain[0]}, "and its root")
            test.equal([all_of[one].get("parent") for one in chain], [None, *chain[:-1]], "and its parent")
            top = next(one for one in answer["sessions"] if one["id"] == chain[0])
            nested = 0
            while top["sessions"]:
                top = top["sessions"][0]
                nested += 1
            test.ok(nested < 110, "JSON nests to a bounded depth", str(nested))
            stat = scope.ntscope("stat", "--json", logs=logs).json()
            test.ok(all(all_of[one["id"]]["all"] == one["all"] for one in flatten(stat["sessions"])),
                    "stat --json has the same trees")
            test.equal(len(list(flatten(stat["sessions"]))), len(all_of), "all of them")
            stat = scope.ntscope("stat", "--json", "told", logs=logs).json()
            test.ok(stat["sessions"] == [] and "no_session" not in stat, "stat of a path has no sessions")
            text = session("--tree", logs=logs)
            lines = text.text.splitlines()
            test.ok(text.code == 0 and max(map(len, lines)) < 200 and f"[{depth - 1}] {chain[-1]}" in text.text,
                    "the text of a deep tree stays narrow", repr(text))
            below = session("--tree", "--json", chain[5], chain[2], logs=logs).json()
            test.equal([one["id"] for one in below["sessions"]], [chain[2]], "a tree of one that is below another")
            facts = session(chain[1], logs=logs).text
            test.ok(f"parent  {chain[0]}" in facts and f"with {depth - 2} below" in facts,
                    "one session: its parent, and sums with all below it", facts)


def order(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with told(logs, *(bytes([letter]) for letter in b"abcdef")) as (_, ids):
            def ids_of(*arguments):
                shown = session("--json", *arguments, logs=logs).json()["sessions"]
                return [one["id"] for one in shown if one["id"] in ids]
            test.equal(ids_of(), ids[::-1], "the list begins with those of the most bytes")
            test.equal(ids_of("--sort", "last"), ids[::-1], "or with the latest")
            answer = session("--json", logs=logs).json()
            totals = [(one["kinds"].get("write", {"total": 0})["total"] + one["kinds"].get("read", {"total": 0})["total"])
                      for one in answer["sessions"]]
            test.ok(all(min(a, WORD - 1) >= min(b, WORD - 1) for a, b in zip(totals, totals[1:])),
                    "bytes never grow down the list", repr(totals))


# ---- More than there is room for ----

def marked(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with told(logs, b"kept", many=40000):
            answer = session("--json", logs=logs).json()
            least = [one for one in answer["sessions"] if not one["exact"]]
            test.ok(len(least) > 10 and all(one["bound"] in ("at least", "about") for one in least),
                    "sessions that found no room say that their sums are the least they can be",
                    f"{len(least)} of {len(answer['sessions'])}")
            test.ok(answer["older_sessions"]["kinds"].get("write", {}).get("count", 0) > 1000,
                    "what they had is in older", repr(answer["older_sessions"]))
            written = sum(one["kinds"].get("write", {}).get("count", 0) for one in
                          [*answer["sessions"], answer["no_session"], answer["older_sessions"]])
            stat = scope.ntscope("stat", "told/own/write/count", logs=logs)
            test.equal(written, int(stat.text), "all together are what the object counted")
            text = session(logs=logs).text
            test.ok(re.search(r"^\w{16} .* >= \d+ ", text, re.MULTILINE) and re.search(r"^\(older\) ", text, re.MULTILINE),
                    "in text they are marked", text[:2000])


# ---- Against an independent look ----

def compare(answer, said, faults, label):
    """Sums of each process, as both say them."""
    mine = {}
    for one in [*answer["sessions"], {**answer["no_session"], "id": "none"}, {**answer["older_sessions"], "id": "older"}]:
        for process in one["processes"]:
            for kind, (count, total) in sums_of(process).items():
                if kind not in OWN_WORDS:
                    mine.setdefault(process["pid"], {})[one["id"], kind] = (count, total, process["exact"])
    checked = exact = 0
    for program in said["programs"]:
        sums = mine.pop(program["pid"], {})
        for name, kind, count, total, older in program["sums"]:
            key = ("older" if older else "none" if name == sessions.NONE else name, kind)
            if kind in OWN_WORDS or (program["folding"] and key[0] == "none"):
                sums.pop(key, None)
                continue
            got = sums.pop(key, (0, 0, True))
            checked += 1
            exact += got[2]
            if got[:2] != (count, total):
                faults.append(f"{label}: pid {program['pid']} {key}: {got[:2]}, the log has {(count, total)}")
            flagged = name in program["given"] or name in program["got"]
            if key[0] not in ("none", "older") and got[2] == flagged:
                faults.append(f"{label}: pid {program['pid']} {key}: exact is {got[2]}, flags say {flagged}")
        faults += [f"{label}: pid {program['pid']} {key}: {got}, the log has none" for key, got in sums.items()
                   if not (program["folding"] and key[0] == "none")]
    faults += [f"{label}: pid {pid} is in no log" for pid in mine]
    return checked, exact


class Outcome:
    def __init__(self):
        self.faults = []
        self.sums = self.exact = self.channels = self.least = 0

    def look(self, label, logs, truth, channels):
        known = relay.load_truth(truth)
        said = scope.run([scope.SESSIONS_CHECK, logs], limit=LIMIT, data=sessions.ids_of(known)).json()
        result = session("--json", logs=logs, limit=LIMIT)
        if result.code != 0 or result.err:
            self.faults.append(f"{label}: {result!r}")
            return
        checked, exact = compare(result.json(), said, self.faults, label)
        self.sums += checked
        self.exact += exact
        if channels:
            result = session("--json", "*", logs=logs, limit=LIMIT)
            exact, least, faults = check_channels(result.json(), known)
            self.faults += [f"{label}: {fault}" for fault in faults]
            self.channels += exact
            self.least += least


def relays(test, base, runs):
    outcome = Outcome()
    for number in range(runs):
        seed = base + number
        chance = random.Random(seed)
        crowded = number % 3 == 2
        options = relay.Options(seed, sessions="on", **({"cap": 524288, "requests": 1500, "ring": 16384, "parts": 8,
                                                         "size": "0:64", "session-count": 0} if crowded else {}))
        label = f"seed {seed}: relay {options}"
        with scope.workspace() as work:
            logs, truth = relay.directory_of(work, "logs"), relay.directory_of(work, "truth")
            env = scope.environment(logs, NTSCOPE_KEEP="all", TMPDIR=work)
            with scope.Program(options.command(truth), env) as program:
                scope.wait_for(lambda: any(name.endswith(".ntlog") for name in os.listdir(logs)), LIMIT)
                time.sleep(0.05 * chance.random())
                if processes.stop(program.pid):
                    outcome.look(f"{label}, stopped", logs, truth, channels=False)
                    processes.resume(program.pid)
                result = program.finish(LIMIT)
            if result.code != 0:
                outcome.faults.append(f"{label}: {result!r}")
                continue
            outcome.look(label, logs, truth, channels=True)
    test.note(f"{runs} runs: {outcome.sums} sums, {outcome.exact} exact; by channel {outcome.channels} exact, "
              f"{outcome.least} at least")
    test.ok(outcome.sums and not outcome.faults, "sums by session are what the logs hold, and flags too; by channel they "
            "are the truth, or say that they are less", *outcome.faults[:20])
    test.ok(outcome.channels > outcome.least / 10 and (outcome.least or runs < 3),
            "some channels' sums are exact, some are not, as events were overwritten", repr(vars(outcome))[:500])


# ---- Programs that go on ----

def whole(answer):
    """Of each process and kind: what sessions have together, and what objects have; and whether none says that it is all."""
    have, exact = {}, {}
    for one in [*flatten(answer["sessions"]), answer["no_session"], answer["older_sessions"]]:
        for process in one["processes"]:
            for kind, sums in sums_of(process).items():
                before = have.setdefault((process["pid"], kind), [0, 0])
                before[0] += sums[0]
                before[1] += sums[1]
    for process in answer["no_session"]["processes"]:
        exact[process["pid"]] = process["exact"]
    counted = {}

    def visit(pid, objects):
        for said in objects:
            for tallies in (said["tallies"], said["closed"]):
                for kind, tally in tallies.items():
                    before = counted.setdefault((pid, kind), [0, 0])
                    before[0] += tally["count"]
                    before[1] += tally["total"]
            visit(pid, said["objects"])
    for node in answer["nodes"]:
        for process in node["processes"]:
            visit(process["pid"], process["objects"])
    return {key: [one % WORD for one in sums] for key, sums in have.items()}, \
        {key: [one % WORD for one in sums] for key, sums in counted.items()}, exact


def running(test, seed):
    with scope.workspace() as work:
        logs, truth = relay.directory_of(work, "logs"), relay.directory_of(work, "truth")
        command = [scope.SESSION_COUNTER, truth, "3", "16384", str(1 << 24), "300", str(seed)]
        with scope.Program(command, scope.environment(logs)) as program:
            program.process.stdout.readline()
            faults, looks, wholes = [], 0, 0
            for _ in range(scope.scaled(200, 10)):
                result = scope.ntscope("stat", "--json", logs=logs)
                if result.code != 0 or result.err.count(b"\n") > 1:
                    faults.append(repr(result))
                    continue
                have, counted, exact = whole(result.json())
                looks += 1
                for key, sums in counted.items():
                    if have.get(key, [0, 0]) != sums and exact.get(key[0], True):
                        faults.append(f"{key}: sessions have {have.get(key)}, objects {sums}")
                    elif have.get(key, [0, 0]) == sums:
                        wholes += 1
                    elif have[key][0] < sums[0]:
                        faults.append(f"{key}: sessions have {have.get(key)}, objects more: {sums}")
            program.end()
        test.ok(looks and wholes and not faults, "while threads change sessions all the time, sessions add up to what "
                f"objects counted ({wholes} sums, {looks} looks)", *faults[:10])


# ---- Broken logs ----

def broken(test, seed):
    chance = random.Random(seed)
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with told(logs, *NAMES, depth=20):
            pass
        source = os.path.join(logs, next(name for name in os.listdir(logs) if name.endswith(".ntlog")))
        result = session(source, logs=logs)
        test.ok(result.code == 0 and b"plain" in result.out, "a log file is read instead of live logs", repr(result))
        with open(source, "rb") as stream:
            whole_file = bytearray(stream.read())
        faults = []
        copy = os.path.join(work, "copy.ntlog")
        used = [at for at in range(0, len(whole_file), 4096) if any(whole_file[at:at + 4096])]
        for _ in range(scope.scaled(300, 20)):
            data = bytearray(whole_file)
            for _ in range(chance.randint(1, 60)):
                at = chance.choice(used[1:]) + 8 * chance.randrange(512)
                data[at:at + 8] = chance.choice((b"\xff" * 8, os.urandom(8), bytes(8), (1 << 31).to_bytes(8, "little")))
            with open(copy, "wb") as stream:
                stream.write(data)
            for arguments in (["--json"], ["--tree"], ["*"]):
                result = session(*arguments, copy, logs=logs)
                if result.code not in (0, NOTHING, BAD) or result.timed_out or not harmless(result.errors) or \
                        b"runtime error" in result.err:
                    faults.append(f"{arguments}: {result!r}")
        test.ok(not faults, "logs with words that cannot be give an answer or a clear error", *faults[:5])
        shutil.copyfile(source, copy)
        os.truncate(copy, 100000)
        result = session(copy, logs=logs)
        test.ok(result.code == BAD and one_line(result), "a log that was cut: exit 3 and one line", repr(result))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int)
    parser.add_argument("--runs", type=int)
    arguments = parser.parse_args()
    test = tap.Tap()
    seed = scope.base_seed(arguments.seed)
    test.note(f"TEST_SEED={seed}")
    test.attempt("usage", usage, test)
    test.attempt("odd ids and names", odd, test)
    test.attempt("trees", trees, test)
    test.attempt("order", order, test)
    test.attempt("marked", marked, test)
    test.attempt("relays", relays, test, seed, arguments.runs or scope.scaled(RUNS, 3))
    test.attempt("running", running, test, seed)
    test.attempt("broken", broken, test, seed)
    test.done()


if __name__ == "__main__":
    main()
