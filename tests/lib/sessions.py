# SPDX-License-Identifier: BSD-3-Clause
"""What the logs of a relay say of sessions, against what its processes counted themselves.

`said` is what sessions_check prints: sums by session and kind, found in the files by their layout alone. The truth is
`relay --print-truth`. A sum is exact, or the log says that some of it was given up, to its parent's sum or to `older`,
or that it got such. An operation that a kill met may be in the log or not; nothing else may differ by a byte.
"""
import itertools

OWN_WORDS = ("open", "close", "epoch")  # once a life, counted by the log itself
NONE = "0" * 16
WORD = 1 << 64
FEW = 10  # operations in flight on one sum: all subsets are tried


def signed(number):
    return number - WORD if number >= WORD // 2 else number


def ids_of(truth):
    """All sessions that anybody counted in, made, or made others below, for sessions_check."""
    ids = {one["session"] for process in truth.values() for one in process["session_sums"]}
    ids |= {one["session"] for process in truth.values() for one in process["in_flight"]}
    ids |= {one[which] for process in truth.values() for one in process["sessions"] for which in ("id", "parent")}
    return "".join(f"{one}\n" for one in sorted(ids - {NONE})).encode()


class Process:
    """The truth of one process, by (session, kind)."""

    def __init__(self, truth):
        self.truth = truth
        self.name = f"{truth['name']}.{truth['pid']}"
        logged = {life["number"] for life in truth["objects"] if int(life["handle"], 16)}
        self.sums, self.doubts, self.objects = {}, {}, {}
        for one in truth["session_sums"]:
            if one["object"] in logged and one["kind"] not in OWN_WORDS:
                self.add(self.sums, one["session"], one["kind"], one["count"], one["total"])
        for one in truth["in_flight"]:
            if one["kind"] not in OWN_WORDS:
                self.doubt(one)
        self.made = {one["id"]: one for one in truth["sessions"] if one["id"] != NONE}
        self.children = {}
        for one in self.made.values():
            self.children.setdefault(one["parent"], []).append(one["id"])
        self.making = [one for one in truth["sessions"] if one["id"] == NONE]
        self.in_flight = sum(one["kind"] not in OWN_WORDS for one in truth["in_flight"])

    @staticmethod
    def add(sums, session, kind, count, total):
        have = sums.get((session, kind), (0, 0))
        sums[session, kind] = (have[0] + count, (have[1] + total) % WORD)

    def doubt(self, one):
        """What the operation may have changed already."""
        for session in {one["session"], one["own"]}:
            self.doubts.setdefault((session, one["kind"]), []).append((1, one["value"]))
        if "read" in one:
            value = one["read"]["value"]
            self.doubts.setdefault((one["session"], "read"), []).append((1, value))
            self.doubts.setdefault((one["read"]["session"], "read"), []).append((-1, -value))

    def fits(self, key, said):
        """Whether the sum is the truth and some of what is in doubt."""
        known, doubts = self.sums.get(key, (0, 0)), self.doubts.get(key, ())[:FEW]
        for size in range(len(doubts) + 1):
            for some in itertools.combinations(doubts, size):
                count = known[0] + sum(one[0] for one in some)
                total = known[1] + sum(one[1] for one in some)
                if (count % WORD, total % WORD) == said:
                    return True
        return False

    def below(self, session):
        """It and all below it."""
        found = [session]
        for one in found:
            found += self.children.get(one, ())
        return found

    def most(self, key):
        known, doubts = self.sums.get(key, (0, 0)), [one for one in self.doubts.get(key, ()) if one[0] > 0]
        return known[0] + sum(one[0] for one in doubts), known[1] + sum(one[1] for one in doubts)

    def least(self, key):
        known, doubts = self.sums.get(key, (0, 0)), [one for one in self.doubts.get(key, ()) if one[0] < 0]
        return known[0] + sum(one[0] for one in doubts), known[1] + sum(one[1] for one in doubts)


class Comparison:
    """Differences between the logs and the truth. doubts: operations of a process that may be in flight, one a thread."""

    def __init__(self, said, truth, doubts=0):
        self.doubts = doubts
        self.differences, self.missing = [], []
        self.exact = self.at_least = self.whole_trees = self.in_flight = self.sessions = 0
        self.unsettled = self.refused = 0
        self.met = dict.fromkeys(("waiting", "holes", "busy", "half", "folding", "given_parent", "given_older",
                                  "settlers", "cells"), 0)
        programs = {}
        for program in said["programs"]:
            if program["pid"] in programs:
                self.differences.append(f"two logs of pid {program['pid']}")
            programs[program["pid"]] = program
        for pid, process in truth.items():
            if pid in programs:
                self.process(Process(process), programs.pop(pid))
            else:
                self.missing.append(process)
        self.differences += [f"pid {pid} keeps no truth" for pid in programs]

    def differ(self, process, text):
        self.differences.append(f"{process.name}: {text}")

    def process(self, process, program):
        for name in self.met:
            self.met[name] += program[name]
        self.in_flight += process.in_flight
        if process.in_flight > self.doubts:
            self.differ(process, f"{process.in_flight} operations are in flight, of {self.doubts} threads at most")
        if process.truth["overflow"]:
            self.differ(process, "its truth had no room")
        sums, given, got = {}, set(program["given"]), set(program["got"])
        for session, kind, count, total, older in program["sums"]:
            if kind not in OWN_WORDS:
                sums["older" if older else session, kind] = (count, total)
        self.made(process, program)
        self.wholes(process, program, sums)
        self.unsettled += program["unsettled"]
        if program["refused_tallies"]:
            self.refused += 1  # counts that are in no sum
            return
        self.sums(process, sums, given, got, program["unsettled"])
        if program["made"] <= program["room"] and not program["full"] and not program["unsettled"]:
            self.trees(process, sums, given)

    # ---- the table of sessions ----

    def made(self, process, program):
        known = {one["id"]: one for one in program["sessions"]}
        making = [(one["parent"], one["name"]) for one in process.making]
        for session, one in known.items():
            self.sessions += 1
            wanted = process.made.get(session)
            if wanted is None:
                described = (one["parent"], one["name"])
                if described in making:
                    making.remove(described)
                else:
                    self.differ(process, f"session {session}, {one['name']!r}, that nobody made")
            elif (one["parent"], one["name"]) != (wanted["parent"], wanted["name"]):
                self.differ(process, f"session {session} is {one['name']!r} below {one['parent']}, the truth is "
                                     f"{wanted['name']!r} below {wanted['parent']}")
            else:
                self.flags(process, one, wanted)
        gone = [one for session, one in process.made.items() if session not in known]
        if gone and program["made"] <= program["room"] and not program["full"]:
            self.differ(process, f"session {gone[0]['id']}, {gone[0]['name']!r}, is not in the log")

    def flags(self, process, one, wanted):
        for said, begun, done in (("stands", "standing", "stands"), ("ended", "ending", "ended")):
            if not wanted[done] <= bool(one[said]) <= wanted[begun]:
                self.differ(process, f"session {one['id']}, {one['name']!r}: {said} {one[said]}")

    # ---- sums ----

    def wholes(self, process, program, sums):
        """All sessions of a kind together are what the objects counted."""
        kinds = {kind for _, kind in sums} | {kind for _, kind in process.sums}
        for kind in sorted(kinds):
            said = [sum(one[at] for (_, other), one in sums.items() if other == kind) % WORD for at in (0, 1)]
            known = [sum(one[at] for (_, other), one in process.sums.items() if other == kind) for at in (0, 1)]
            counts = [one["value"] for one in process.truth["in_flight"] if one["kind"] == kind]
            doubts = [((size, sum(some))) for size in range(len(counts[:FEW]) + 1)
                      for some in itertools.combinations(counts[:FEW], size)]
            wanted = {((known[0] + count) % WORD, (known[1] + total) % WORD) for count, total in doubts}
            if program["refused_tallies"]:
                continue
            if tuple(said) not in wanted:
                self.differ(process, f"all sessions' {kind} {said[0]} sum {said[1]}, the truth is {known[0]} sum "
                                     f"{known[1]}{', in flight ' + str(counts) if counts else ''}")

    def sums(self, process, sums, given, got, unsettled):
        for key in sorted(set(sums) | set(process.sums)):
            session, kind = key
            said = sums.get(key, (0, 0))
            if session == "older":
                self.older(process, kind, said, given)
            elif process.fits(key, said):
                self.exact += 1
            elif session == NONE and unsettled:
                self.unsettled_none(process, kind, said, given)
            elif session in given or session in got:
                self.at_least += 1
                self.bounds(process, key, said, session in given, session in got)
            else:
                known = process.sums.get(key, (0, 0))
                self.differ(process, f"session {session} {kind} {said[0]} sum {said[1]}, the truth is {known[0]} sum "
                                     f"{known[1]}, in doubt {process.doubts.get(key, [])}")

    def bounds(self, process, key, said, given, got):
        """No more than it counted, and all below it if it got something of those; no less if it gave nothing."""
        each = [process.most((one, key[1])) for one in (process.below(key[0]) if got else [key[0]])]
        most = [sum(one[at] for one in each) for at in (0, 1)]
        least = [signed(said[at]) if given else process.least(key)[at] for at in (0, 1)]
        if not all(least[at] <= signed(said[at]) <= most[at] for at in (0, 1)):
            self.differ(process, f"session {key[0]} {key[1]} {said[0]} sum {said[1]}{', gave' if given else ''}"
                                 f"{', got' if got else ''}; the truth is {process.sums.get(key, (0, 0))}, with all below "
                                 f"{most}")

    def older(self, process, kind, said, given):
        """What was given up, and no more than that."""
        most = [process.most((session, kind)) for session in given]
        if signed(said[0]) > sum(one[0] for one in most) or signed(said[1]) > sum(one[1] for one in most):
            self.differ(process, f"older {kind} {said[0]} sum {said[1]}, more than those at least counted")

    def unsettled_none(self, process, kind, said, given):
        """What found no room is none's, too."""
        known = process.sums.get((NONE, kind), (0, 0))
        most = [process.most((session, kind)) for session in {NONE} | given]
        if not (known[0] <= said[0] <= sum(one[0] for one in most) and
                known[1] <= said[1] <= sum(one[1] for one in most)):
            self.differ(process, f"none's {kind} {said[0]} sum {said[1]}, the truth is {known[0]} sum {known[1]}, and "
                                 "what those at least counted")

    def trees(self, process, sums, given):
        """Where none of the parents was given up, one that was is in them: together they are exact."""
        doubted = {session for session, _ in process.doubts}
        for parent in process.children:
            tree = process.below(parent)
            inner = [one for one in tree if one in process.children]
            root = process.made.get(parent, {"parent": NONE})["parent"] == NONE
            if parent == NONE or not root or given.intersection(inner) or doubted.intersection(tree):
                continue
            if not given.intersection(tree):
                continue
            self.whole_trees += 1
            for kind in {kind for _, kind in process.sums if ("older", kind) not in sums}:
                said = [sum(signed(sums.get((one, kind), (0, 0))[at]) for one in tree) for at in (0, 1)]
                known = [sum(process.sums.get((one, kind), (0, 0))[at] for one in tree) for at in (0, 1)]
                if said != known:
                    self.differ(process, f"session {parent} and all below it: {kind} {said}, the truth is {known}")
