# SPDX-License-Identifier: BSD-3-Clause
"""What `ntscope session --json` says, against the truth of a relay: of each session in each program, over all programs,
with all sessions below it, and by channel. An exact number is the truth, "at least" is no more, "at most" is no less.
"""
import itertools

import relay
import sessions
from sessions import FEW, NONE, OWN_WORDS, WORD, Process, signed

GIVEN, GOT = ("at least", "about"), ("at most", "about")


def sums_of(said):
    return {kind: (one["count"], one["total"]) for kind, one in said["kinds"].items()}


def bound_of(said):
    return "exact" if said["exact"] else said["bound"]


def all_of(answer):
    """All sessions, what is in none, and what is older, by id."""
    return {**{one["id"]: one for one in answer["sessions"]}, NONE: answer["no_session"],
            "older": answer["older_sessions"]}


def programs_of(answer, said):
    """The answer in the words of sessions_check: its sums and flags, and what it says of sessions that were made; what
    the program had no room for, as that found it."""
    programs = {one["pid"]: {**one, "sums": [], "given": [], "got": [], "sessions": []} for one in said["programs"]}
    ended = {(one["pid"], made["id"]): made["ended"] for one in said["programs"] for made in one["sessions"]}
    told = set()
    for session, one in all_of(answer).items():
        for share in one["processes"]:
            pid = share["pid"]
            program = programs.setdefault(pid, {"pid": pid, "sums": [], "given": [], "got": [], "sessions": []})
            told.add((pid, session))
            program["sums"] += [[NONE if session == "older" else session, kind, *sums, session == "older"]
                                for kind, sums in sums_of(share).items()]
            if session in (NONE, "older"):
                continue
            for which, bounds in (("given", GIVEN), ("got", GOT)):
                if bound_of(share) in bounds:
                    program[which].append(session)
            if share["made"]:
                # Others may have ended it: the answer does not say who did.
                program["sessions"].append({"id": session, "name": one.get("name", ""), "parent": one.get("parent", NONE),
                                            "stands": one["standing"], "ended": ended.get((pid, session), False)})
    for one in said["programs"]:  # nothing is said of these in this program; over all it must not be called exact
        programs[one["pid"]]["given"] += [session for session in one["given"] if (one["pid"], session) not in told]
    return {**said, "programs": list(programs.values())}


class Answer:
    """Differences between an answer and the truth. Where an operation is in flight, a number may have it or not."""

    def __init__(self, answer, said, truth, doubts=0):
        self.answer = answer
        self.differences = []
        self.exact = self.bounded = self.trees = self.channels = self.least = 0
        programs = sessions.Comparison(programs_of(answer, said), truth, doubts)
        self.differences += programs.differences
        known = {one["pid"]: one for one in said["programs"]}
        self.processes = [Process(process) for pid, process in truth.items() if pid in known]
        if any(one["refused_tallies"] for one in known.values()):  # counts that are in no sum
            self.differences += [f"session {one['id']} is called exact beside counts that had no room"
                                 for one in all_of(answer).values() if one["exact"]]
        self.sessions(said)

    def limits(self):
        """By session and kind: the least and the most that all programs counted."""
        limits = {}
        for process in self.processes:
            for session, kind in {*process.sums, *process.doubts}:
                before = limits.setdefault(session, {}).get(kind, (0, 0, 0, 0))
                both = (*process.least((session, kind)), *process.most((session, kind)))
                limits[session][kind] = tuple(one + more for one, more in zip(before, both))
        return limits

    def check(self, what, sums, bound, limits):
        for kind in {*sums, *limits} - set(OWN_WORDS):
            known = limits.get(kind, (0, 0, 0, 0))
            said = [signed(one) for one in sums.get(kind, (0, 0))]
            if bound in ("exact", "at most") and (said[0] < known[0] or said[1] < known[1]) or \
                    bound in ("exact", "at least") and (said[0] > known[2] or said[1] > known[3]):
                self.differences.append(f"{what} {kind}: {bound} {said}, the truth is from {known[:2]} to {known[2:]}")

    def sessions(self, said):
        children, given = {}, {session for one in said["programs"] for session in one["given"]}
        for process in self.processes:
            for parent, ids in process.children.items():
                children.setdefault(parent, []).extend(ids)
        limits = self.limits()
        for one in self.answer["sessions"]:
            self.session(one, limits.get(one["id"], {}))
            self.tree(one, limits, children)
            if one["id"] in given and bound_of(one) not in GIVEN:
                self.differences.append(f"session {one['id']} gave something up, and is called {bound_of(one)}")

    def session(self, one, limits):
        sums = sums_of(one)
        parts = {}
        for share in one["processes"]:
            for kind, (count, total) in sums_of(share).items():
                before = parts.get(kind, (0, 0))
                parts[kind] = ((before[0] + count) % WORD, (before[1] + total) % WORD)
        if parts != sums:
            self.differences.append(f"session {one['id']}: {sums}, its processes together {parts}")
        self.exact += one["exact"]
        self.bounded += not one["exact"]
        self.check(f"session {one['id']}", sums, bound_of(one), limits)

    def tree(self, one, limits, children):
        below, together = [one["id"]], {}
        for session in below:
            below += children.get(session, ())
            for kind, known in limits.get(session, {}).items():
                before = together.get(kind, (0, 0, 0, 0))
                together[kind] = tuple(a + b for a, b in zip(before, known))
        self.trees += len(below) > 1 and one["all"]["exact"]
        self.check(f"session {one['id']} and all below", sums_of(one["all"]), bound_of(one["all"]), together)


def channels_of(process):
    """(object, kind, session): what was counted there, and what is in flight."""
    handles = {}
    for life in process["objects"]:
        slot, generation = relay.slot_and_generation(int(life["handle"], 16))
        handles[life["number"]] = f"{generation:08x}{slot:08x}"
    known = {(handles[one["object"]], one["kind"], one["session"]): (one["count"], one["total"])
             for one in process["session_sums"]}
    doubts = {}
    for one in process["in_flight"]:
        item = handles.get(one["object"])
        for session in {one["session"], one["own"]}:
            doubts.setdefault((item, one["kind"], session), []).append((1, one["value"]))
        if "read" in one:
            value = one["read"]["value"]
            doubts.setdefault((item, "read", one["session"]), []).append((1, value))
            doubts.setdefault((item, "read", one["read"]["session"]), []).append((-1, -value))
    return known, doubts


def channel_fits(got, exact, known, doubts):
    sizes = range(len(doubts[:FEW]) + 1) if exact else ()
    fits = any((known[0] + sum(one[0] for one in some), known[1] + sum(one[1] for one in some)) == got
               for size in sizes for some in itertools.combinations(doubts[:FEW], size))
    most = [known[at] + sum(one[at] for one in doubts if one[0] > 0) for at in (0, 1)]
    return fits if exact else got[0] <= most[0] and got[1] <= most[1]


def check_channels(answer, truth):
    """What each session did on each object is the truth, or less and says so. Returns how many are exact, how many are
    not, and differences."""
    exact = least = 0
    differences = []
    known = {pid: channels_of(process) for pid, process in truth.items()}
    pids = {process["id"]: process["pid"] for one in answer["sessions"] for process in one["processes"]}
    for one in answer["sessions"]:
        for channel in one["channels"]:
            pid = pids.get(channel["process"])
            if pid not in known or channel["kind"] in OWN_WORDS:
                continue
            key = channel["object"], channel["kind"], one["id"]
            got = channel["count"], channel["total"]
            exact += channel["exact"]
            least += not channel["exact"]
            wanted, doubts = known[pid][0].get(key, (0, 0)), known[pid][1].get(key, ())
            if not channel_fits(got, channel["exact"], wanted, doubts):
                differences.append(f"pid {pid} {key}: {'exact' if channel['exact'] else 'at least'} {got}, the truth is "
                                   f"{wanted}, in flight {doubts}")
    return exact, least, differences
