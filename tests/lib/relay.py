# SPDX-License-Identifier: BSD-3-Clause
"""Random relays, and their truth against `ntscope stat --json`.

A life is one object from its making to its end; the log names it by slot and generation, and so does the truth
(the handle that the library gave). What `stat` no longer shows of a life stands in its parent's `closed`.
"""
import json
import os
import random

import scope

OWN_WORDS = ("open", "close", "epoch")  # counted by the log itself, values its own


class Options:
    """Parameters of a relay: small, odd, reproducible by the seed."""

    def __init__(self, seed, **fixed):
        chance = random.Random(seed)
        self.values = {
            "seed": seed,
            "requests": chance.randint(60, 500),
            "workers": chance.randint(1, 3),
            "threads": chance.randint(1, 4),
            "size": chance.choice(("0:64", "16:1024", "0:4096")),
            "ring": chance.choice((16384, 16384, 16384, 65536, None)),
            "cap": chance.choice((524288, 524288, 1048576, None)),
            "churn": chance.choice((0, 0, 1, 2, 5)),
            "reconnect-every": chance.choice((0, 0, 2, 10, 50)),
            "fork-every": chance.choice((0, 0, 0, 60)),
            "node-per-process": chance.random() < 0.3,
            "sessions": chance.choice(("on", "on", "on", "off")),
            "session-count": chance.choice((0, 0, 0, 1, 3, 40)),
            "parts": chance.choice((0, 1, 1, 2, 8)),
        }
        self.values.update(fixed)

    def __getitem__(self, name):
        return self.values[name]

    def command(self, truth=None):
        words = [scope.RELAY]
        for name, value in self.values.items():
            if value is True:
                words.append(f"--{name}")
            elif value is not None and value is not False:
                words.append(f"--{name}={value}")
        return words + ([f"--truth={truth}"] if truth else [])

    def __str__(self):
        return " ".join(self.command()[1:])


def load_truth(directory):
    """The truth of each process, by pid."""
    result = scope.run([scope.RELAY, "--print-truth", directory], limit=60)
    if result.code != 0:
        raise RuntimeError(f"relay --print-truth: {result!r}")
    return {process["pid"]: process for process in result.json()["processes"]}


def slot_and_generation(number):
    return number & ((1 << 28) - 1), number >> 32 & 0x7FFFFFFF


NOTHING = ({"count": 0, "total": 0}, {"count": 0, "total": 0})


def add_up(before, tallies):
    """Sums by kind, (done, begun) each, of a life and all before it; of the one before they are known."""
    sums = dict(before)
    for kind, tally in tallies.items():
        done, begun = sums.get(kind, NOTHING)
        sums[kind] = ({field: done[field] + tally["done"][field] for field in done},
                      {field: begun[field] + tally["begun"][field] for field in begun})
    return sums


class Comparison:
    """Differences between a `stat --json` and the truth of its processes."""

    def __init__(self, stat, truth, killed=False):
        self.differences = []
        self.killed = killed
        self.sums = self.folded = self.lives = self.refused = self.without_room = self.lacking = 0
        self.seen = {}
        for node in stat["nodes"]:
            for process in node["processes"]:
                if process["pid"] in self.seen:
                    self.differ(f"pid {process['pid']} stands there twice")
                self.seen[process["pid"]] = process
        for pid, process in self.seen.items():
            if pid in truth:
                self.process(process, truth[pid])
            else:
                self.differ(f"pid {pid} ({process['name']}) keeps no truth")
        for process in self.seen.values():
            if "origin" in process:
                self.inheritance(process, truth)
        self.missing = [process for pid, process in truth.items() if pid not in self.seen]

    def differ(self, text):
        self.differences.append(text)

    # ---- sums ----

    def check(self, where, said, bounds, fields=("count", "total", "max"), own=True):
        """One sum, {count, total, max}, against a list of (done, begun) that add up. Where counts found no room for
        a tally of their own, sums lack them, and nothing else."""
        self.sums += 1
        lacking = own and sum(done["count"] for done, _ in bounds) - said.get("count", 0)
        if self.without_room and lacking > 0:
            self.lacking += lacking
        for field in fields:
            join = max if field == "max" else sum
            low = join([done[field] for done, _ in bounds] or [0])
            high = join([begun[field] for _, begun in bounds] or [0])
            if self.without_room and (not own or lacking > 0):
                low = 0
            if not low <= said.get(field, 0) <= high:
                wanted = low if low == high else f"{low} to {high}"
                self.differ(f"{where}: {field} {said.get(field, 0)}, the truth is {wanted}")

    def check_kinds(self, where, said, lives, fields=("count", "total", "max"), words=True):
        """Sums by kind against the lives that they are of. words: whether the log's own must be told."""
        kinds = {kind for life in lives for kind in life["tallies"]} | set(said)
        for kind in sorted(kinds):
            if kind in OWN_WORDS:
                if kind in said or (words and kind != "epoch"):
                    self.check_word(where, kind, said, lives)
                continue
            bounds = [(life["tallies"][kind]["done"], life["tallies"][kind]["begun"])
                      for life in lives if kind in life["tallies"]]
            self.check(f"{where}/{kind}", said.get(kind, {}), bounds, fields)

    def check_word(self, where, kind, said, lives):
        """Open and close: once a life. Epoch: once a successor."""
        none = {"done": {"count": 0}, "begun": {"count": 0}}
        once = {"done": {"count": 1}, "begun": {"count": 1}}
        bounds = []
        for life in lives:
            tally = life["tallies"].get(kind, once if kind == "open" else none)
            bounds.append((tally["done"], tally["begun"]))
        self.check(f"{where}/{kind}", said.get(kind, {}), bounds, ("count",))

    # ---- one process ----

    def process(self, process, truth):
        name = f"{truth['name']}.{truth['pid']}"
        if truth["overflow"]:
            self.differ(f"{name}: its truth had no room")
        self.without_room, self.lacking = process["refused_tallies"], 0
        lives = {}
        lineages = {}  # by the number of the life
        for life in truth["objects"]:
            life["found"] = False
            life["lineage"] = add_up(lineages.get(life.get("previous"), {}), life["tallies"])
            lineages[life["number"]] = life["lineage"]
            if int(life["handle"], 16):
                lives[slot_and_generation(int(life["handle"], 16))] = life
        self.refused += sum(life["refused"] for life in truth["objects"])
        self.walk(name, "", process["objects"], lives, truth)
        gone = [life for life in lives.values() if not life["found"]]
        self.folded += len(gone)
        self.check_gone(name, process["objects"], gone)
        if not self.killed and self.lacking != self.without_room:
            self.differ(f"{name}: {self.lacking} counts are lacking, the log says {self.without_room}")

    def walk(self, name, path, objects, lives, truth):
        for said in objects:
            if said["kind"] == "process":
                self.program(name, said, lives)
                self.walk(name, path, said["objects"], lives, truth)
                continue
            below = f"{path}/{said['name']}" if path else said["name"]
            life = lives.get(slot_and_generation(int(said["id"], 16)))
            if life:
                self.life(name, below, said, life, truth)
            elif not said.get("forked") and not self.killed:
                self.differ(f"{name} {below}: nobody made it")
            self.walk(name, below, said["objects"], lives, truth)

    def program(self, name, said, lives):
        """The log's own object of the process, on which it counts what becomes of sessions."""
        life = lives.get(slot_and_generation(int(said["id"], 16)))
        if life:
            life["found"] = True
            self.check_kinds(name, said["tallies"], [life], words=False)

    def life(self, name, path, said, life, truth):
        self.lives += 1
        where = f"{name} {path} #{said['id']}"
        if life["found"]:
            self.differ(f"{where}: stands there twice")
        life["found"] = True
        whole = life["path"]
        if path != whole and not (self.refused and whole.endswith("/" + path)):
            self.differ(f"{where}: its path is {whole}")
        self.check_kinds(where, said["tallies"], [life], words=False)
        if said["epoch"] != life["epoch"]:
            self.differ(f"{where}: epoch {said['epoch']}, the truth is {life['epoch']}")
        if said["discipline"] != ("shared" if life["shared"] else "exclusive"):
            self.differ(f"{where}: {said['discipline']}")
        if (said["state"] != "open") != life["closed"] and not self.killed:
            self.differ(f"{where}: {said['state']}")
        if life["epoch"] and not life["inherited"]:
            self.lineage(where, said, life)

    def lineage(self, where, said, life):
        """Its own sums and those of all before it. Without a word of it there is nothing but its own."""
        known = said.get("lineage", said["tallies"])
        for kind in sorted(set(known) | set(life["lineage"])):
            if kind in OWN_WORDS:
                # Each of them was opened and all but the last closed; epoch is told or not.
                continue
            self.check(f"{where} lineage/{kind}", known.get(kind, {}), [life["lineage"].get(kind, NOTHING)],
                       ("count", "total"), own=False)
        for kind, count in (("open", life["epoch"] + 1), ("close", life["epoch"] + life["closed"])):
            if "lineage" in said and kind in known and not self.killed:
                bound = {"count": count}
                self.check(f"{where} lineage/{kind}", known[kind], [(bound, bound)], ("count",), own=False)

    def inheritance(self, process, truth):
        """What a forked child took over: no more than its parent ever counted, of the same object."""
        parents = [seen for seen in self.seen.values() if seen["id"] == process["origin"]]
        if len(parents) != 1 or truth[parents[0]["pid"]]["name"] != truth[process["pid"]]["name"]:
            self.differ(f"{process['name']}.{process['pid']}: its parent's log is {process['origin']}, which is none")
            return
        lives = {slot_and_generation(int(life["handle"], 16)): life for life in truth[parents[0]["pid"]]["objects"]}

        def visit(objects):
            for said in objects:
                life = lives.get(slot_and_generation(int(said["id"], 16)))
                for kind, base in said.get("base", {}).items():
                    most = life["tallies"].get(kind, {}).get("begun") if life else None
                    if kind in OWN_WORDS or (most and base["count"] <= most["count"] and base["total"] <= most["total"]):
                        self.sums += 1
                        continue
                    self.differ(f"{process['name']}.{process['pid']} {said['name']}/{kind}: base {base}, the parent's "
                                f"truth is {most}")
                visit(said["objects"])

        visit(process["objects"])

    def check_gone(self, name, objects, gone):
        """What is no longer shown was added to its parent's `closed`, whoever that is."""
        parents = {}
        for life in gone:
            path = "" if life["orphan"] else life["path"].rpartition("/")[0]
            parents.setdefault(path, []).append(life)

        def visit(path, objects):
            for said in objects:
                root = said["kind"] == "process"
                below = "" if root else (f"{path}/{said['name']}" if path else said["name"])
                if said["closed"] or below in parents:
                    self.check_kinds(f"{name} {below or 'process'} closed", said["closed"], parents.pop(below, []))
                visit(below, said["objects"])

        visit("", objects)
        for path, lives in parents.items():
            self.differ(f"{name}: {len(lives)} lives below '{path}' are nowhere, such as {lives[0]['path']} "
                        f"#{lives[0]['handle']}")


def directory_of(logs, name):
    path = os.path.join(logs, name)
    os.mkdir(path, 0o700)
    return path


def steady(text):
    """A relay's output without what differs from run to run: pids, times, waits."""
    lines = []
    for line in text.splitlines():
        value = json.loads(line)
        value.pop("pid", None)
        for channel in value.get("channels", {}).values():
            for kind in ("poll", "wait"):
                channel.pop(kind, None)
            for kind in ("ping", "connect", "accept", "reconnect", "request-done", "queue"):
                if kind in channel:
                    channel[kind] = channel[kind]["count"]
        lines.append(json.dumps(value))
    return "\n".join(lines)
