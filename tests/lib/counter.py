# SPDX-License-Identifier: BSD-3-Clause
"""Programs that count as they are told (tests/counter.c), and what `ntscope events --json` says of them."""
import contextlib
import json
import subprocess

import scope

KINDS = {"write": 1, "read": 2, "ping": 3, "poll": 4, "wait": 5, "error": 10, "queue": 11}


class Counter:
    """A running one; it ends, and closes its log, with the block."""

    def __init__(self, logs, log="counter", node="node-1", ring=0):
        self.program = scope.Program([scope.COUNTER, log, node, str(ring)], scope.environment(logs),
                                     stdin=subprocess.PIPE)
        if self.program.process.stdout.readline() != b"ready\n":
            raise RuntimeError(f"counter: {self.program.finish()!r}")

    @property
    def pid(self):
        return self.program.pid

    def tell(self, *words):
        """Has a command done, and gives the answer."""
        process = self.program.process
        process.stdin.write((" ".join(str(word) for word in words) + "\n").encode())
        process.stdin.flush()
        answer = process.stdout.readline().decode().strip()
        if answer in ("", "unknown", "-1"):
            raise RuntimeError(f"counter: {words}: {answer!r}")
        return answer

    def object(self, name, parent="-", discipline="exclusive"):
        name = name if isinstance(name, bytes) else name.encode()
        return int(self.tell("object", parent, discipline, name.hex()))

    def count(self, number, kind, value, times=1):
        self.tell("count", number, KINDS.get(kind, kind), value, times)

    def tally(self, number, kind):
        count, total = self.tell("tally", number, KINDS.get(kind, kind)).split()
        return int(count), int(total)

    def leave(self):
        """Ends without closing the log."""
        with contextlib.suppress(BrokenPipeError, OSError):
            self.program.process.stdin.write(b"leave\n")
            self.program.process.stdin.flush()
        self.program.process.wait(10)

    def end(self):
        with contextlib.suppress(BrokenPipeError, ProcessLookupError):
            self.program.process.stdin.close()
        self.program.process.wait(20)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        with contextlib.suppress(Exception):
            self.end()
        self.program.__exit__(*exception)


def parse(result):
    """The lines of `events --json`."""
    return [json.loads(line) for line in result.out.decode("utf-8").splitlines()]


def events_of(lines, path=None, kind=None):
    return [line for line in lines if "reason" not in line and (path is None or line["path"].endswith(path)) and
            (kind is None or line["kind"] == kind)]


def losses_of(lines, reason=None):
    return [line for line in lines if "reason" in line and (reason is None or line["reason"] == reason)]


def account(lines):
    """Of each life and kind: events, counts told as missing, and the first and last count that an event has."""
    said = {}
    for line in lines:
        if line["kind"] == "mask":
            continue
        if "reason" not in line:
            key = line["log"], line["object"], line["kind"]
            entry = said.setdefault(key, {"events": 0, "lost": 0, "not logged": 0, "found": 0,
                                          "first": line["count"], "last": line["count"], "counts": set()})
            entry["events"] += 1
            entry["counts"].add(line["count"])
            entry["first"] = min(entry["first"], line["count"])
            entry["last"] = max(entry["last"], line["count"])
        elif line["reason"] != "overwritten":
            key = line["log"], line["object"], line["of"]
            entry = said.setdefault(key, {"events": 0, "lost": 0, "not logged": 0, "found": 0,
                                          "first": line["first"], "last": line["first"], "counts": set()})
            entry[line["reason"]] += line["count"]
    return said


def unaccounted(lines):
    """Lives and kinds of which events and gaps are not as many as there are counts from the first to the last."""
    return [(key, {name: value for name, value in entry.items() if name != "counts"})
            for key, entry in account(lines).items()
            if entry["events"] != len(entry["counts"]) or
            entry["events"] + entry["lost"] + entry["not logged"] - entry["found"] != entry["last"] - entry["first"] + 1]


def disorder(lines):
    """What is wrong with the order: time that goes back unmarked, an identity twice."""
    wrong, seen, latest = [], set(), 0
    for line in lines:
        if "reason" in line:
            continue
        identity = line["log"], line["ring"], line["position"]
        if identity in seen:
            wrong.append(f"twice: {identity}")
        seen.add(identity)
        if line["time"] < latest and "late" not in line["flags"]:
            wrong.append(f"{line['time']} after {latest}: {line}")
        if "ahead" not in line["flags"]:
            latest = max(latest, line["time"])
    return wrong
