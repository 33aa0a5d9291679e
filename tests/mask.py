#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`ntscope mask` on running programs: what it changes and what not, that it is seen among the events, and that what was
not logged is never told as lost."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import relay  # noqa: E402
import scope  # noqa: E402
import tap  # noqa: E402
from counter import Counter, disorder, events_of, losses_of, parse, unaccounted  # noqa: E402

NOTHING, USAGE, BAD = 1, 2, 3


def one_line(result):
    return result.out == b"" and result.err.count(b"\n") == 1 and result.err.startswith(b"ntscope: ")


def mask(*arguments, logs, **options):
    return scope.ntscope("mask", *arguments, logs=logs, **options)


def usage(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        for arguments in (["+read"], ["--nonsense"], ["--", "x"], ["--dir"]):
            result = mask(*arguments, logs=logs)
            test.ok(result.code == USAGE and one_line(result), f"'mask {' '.join(arguments)}' is wrong usage: exit 2",
                    repr(result))
        result = mask("orders", "+read", logs=logs)
        test.ok(result.code == NOTHING and one_line(result), "without logs: exit 1 and one line", repr(result))
        with Counter(logs) as counter:
            counter.count(counter.object("orders"), "read", 5)
            for word in ("+", "-reads", "=read,", "+all,nothing", "-\x1b[31m"):
                result = mask("orders", word, logs=logs)
                test.ok(result.code == USAGE and one_line(result) and b"\x1b" not in result.err,
                        f"'mask orders {word!r}' is wrong usage: exit 2", repr(result))
            for path in ("nonsense", "counter/orders/read"):
                result = mask(path, "-read", logs=logs)
                test.ok(result.code == NOTHING and one_line(result), f"'mask {path} -read': exit 1 and one line",
                        repr(result))
            result = mask("orders", "read", logs=logs)
            test.ok(result.code == 0 and result.errors.count("\n") == 1 and "'read' names kinds of events" in result.errors,
                    "a kind without + or - is no path of an object, which is said", repr(result))
            test.equal(mask("orders", logs=logs).text, "node-1/counter/orders  +all -poll\n", "and nothing was changed")


def words(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with Counter(logs) as counter:
            inbox = counter.object("inbox")
            counter.object("orders", inbox)
            counter.object("other")
            for arguments, wanted in ((["orders", "-read"], ["+all -poll  ->  +all -read,poll"]),
                                      (["orders", "-read", "-read"], []),
                                      (["orders", "=read", "+write", "-read"], ["+all -read,poll  ->  =write"]),
                                      (["inbox", "+all"], ["+all -poll  ->  +all", "=write  ->  +all"]),
                                      (["-all", "orders", "other"], ["+all  ->  -all", "+all -poll  ->  -all"]),
                                      (["-d", logs, "inbox", "=poll,read"], ["+all  ->  =read,poll",
                                                                              "-all  ->  =read,poll"]),
                                      (["orders", "+user"], ["=read,poll  ->  =read,poll,user"])):
                result = mask(*arguments, logs=logs)
                test.ok(result.code == 0 and [line.split("  ", 1)[1] for line in result.text.splitlines()] == wanted and
                        not result.err, f"mask {' '.join(arguments)}", repr(result))
            result = mask("orders", "-order", logs=logs)
            test.ok(result.code == 0 and "->  =read,poll\n" in result.text and "share one bit" in result.errors,
                    "a user-defined kind is switched with the others, and that is said", repr(result))
            test.equal(mask(logs=logs).text.splitlines(),
                       ["node-1/counter  +all -poll", "node-1/counter/inbox  =read,poll",
                        "node-1/counter/inbox/orders  =read,poll", "node-1/counter/other  -all"],
                       "without words it shows the masks")
            said = mask("--json", "inbox", "=error", logs=logs).json()
            test.equal([(one["path"], one["before"], one["after"]) for one in said],
                       [("node-1/counter/inbox", ["read", "poll"], ["error"]),
                        ("node-1/counter/inbox/orders", ["read", "poll"], ["error"])], "--json says the same")
            said = mask("--json", "other", logs=logs).json()
            test.equal([(one["path"], one["mask"]) for one in said], [("node-1/counter/other", [])], "and shows masks")
            counter.object("later", inbox)
            test.ok(mask("later", logs=logs).text.endswith("later  =error\n"), "later objects inherit it")


class Follower:
    """`events -f --json` into a file; what it said is read at its end."""

    def __init__(self, logs, path):
        self.path = path
        with open(path, "wb") as stream:
            self.program = scope.Program([scope.NTSCOPE, "events", "-f", "--json"], scope.environment(logs),
                                         stdout=stream)

    def wait(self, text, times):
        """Until a text was written that often. Whether it was."""
        return scope.wait_for(lambda: read(self.path).count(text) >= times, 20)

    def end(self):
        result = self.program.finish(30)
        return result, parse(scope.Result(0, read(self.path), b"", False))

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.program.__exit__(*exception)


def change_and_count(test, logs, counter, numbers, follower=None):
    """Four changes of the mask of `orders`, with counts between. The pids of who made them."""
    made, other = numbers
    setters = []
    for number in numbers:
        counter.count(number, "read", 1, 10)
    for number, word in enumerate(("-read", "+read", "-read", "+read")):
        with scope.Program([scope.NTSCOPE, "mask", "orders", word], scope.environment(logs)) as program:
            setters.append(program.pid)
            result = program.finish()
        test.ok(result.code == 0 and result.text.count("\n") == 1, f"mask orders {word}", repr(result))
        for kind in ("read", "write"):
            counter.count(made, kind, 1, 10 + number)
        counter.count(other, "read", 1, 5)
        if follower:
            follower.wait(b'"kind":"mask"', number + 1)
    return setters


def check_counts(test, counter, made, lines):
    counts = [line["count"] for line in events_of(lines, path="/orders", kind="read")]
    test.equal(counts, list(range(1, 11)) + list(range(21, 32)) + list(range(44, 57)),
               "what was masked off is not there, all else is")
    test.equal([(loss["first"], loss["last"], loss["count"]) for loss in losses_of(lines, "not logged")],
               [(11, 20, 10), (32, 43, 12)], "it is told as not logged")
    test.ok(not losses_of(lines, "lost") and not losses_of(lines, "overwritten"), "and never as lost",
            repr(losses_of(lines)))
    test.ok(not unaccounted(lines) and not disorder(lines), "accounts and order hold", *unaccounted(lines),
            *disorder(lines))
    test.equal(counter.tally(made, "read"), (56, 56), "counting went on")
    test.equal(len(events_of(lines, path="/orders", kind="write")), 46, "other kinds are not touched")
    test.equal(len(events_of(lines, path="/other", kind="read")), 30, "nor are other objects")


def effect(test):
    """Nothing of a kind is logged from the change on, all is counted, and events tell of it as not logged."""
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with Counter(logs) as counter, Follower(logs, work + "/out") as follower:
            numbers = counter.object("orders"), counter.object("other")
            follower.wait(b'"kind":"open"', 2)
            setters = change_and_count(test, logs, counter, numbers, follower)
            follower.wait(b'"count":56', 1)
            text = scope.ntscope("events", "--where", "kind = 'mask' OR kind = 'read'", logs=logs).text
            follower.program.process.terminate()
            _, lines = follower.end()
            changes = events_of(lines, path="/orders", kind="mask")
            test.equal([line["data"]["setter"] for line in changes], setters, "each change is an event, with its setter",
                       repr(changes))
            test.equal(["read" in line["data"]["after"] for line in changes], [False, True, False, True],
                       "with what the mask became")
            check_counts(test, counter, numbers[0], lines)
            test.ok(re.search(r"  mask +\+all -read,poll  ->  \+all -poll  by process %d\n" % setters[3], text) and
                    re.search(r"  read +-- 12 not logged: #32 to #43 --\n", text), "text shows both", text[:1500])


def unseen(test):
    """The same if nobody looked in between: only the last change of an object is told of, but nothing as lost."""
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with Counter(logs) as counter:
            numbers = counter.object("orders"), counter.object("other")
            setters = change_and_count(test, logs, counter, numbers)
            lines = parse(scope.ntscope("events", "--json", logs=logs))
            changes = events_of(lines, path="/orders", kind="mask")
            test.ok(changes and changes[-1]["data"]["setter"] == setters[3], "the last change is an event", repr(changes))
            check_counts(test, counter, numbers[0], lines)


def racing(test):
    """While threads count as fast as they can: nothing is told as lost but what rings lose."""
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with Counter(logs, ring=1 << 22) as counter, Follower(logs, work + "/out") as follower:
            made, shared = counter.object("orders"), counter.object("all", discipline="shared")
            counter.tell("start", made, 2, 200)
            counter.tell("start", shared, 2, 200)
            counter.tell("start", shared, 2, 200)
            turns = scope.scaled(200, 10)
            codes, seen = [], True
            for turn in range(turns):
                before = counter.tally(made, "read")[0]
                codes.append(mask("counter", "-read" if turn % 2 == 0 else "+read", logs=logs).code)
                scope.wait_for(lambda before=before: counter.tally(made, "read")[0] > before + 20)
                seen = seen and follower.wait(b'"kind":"mask"', 3 * (turn + 1)) # the program's own object too
            counter.tell("stop")
            counter.count(made, "read", 1)
            counter.count(shared, "read", 1)
            counted = counter.tally(made, "read")[0], counter.tally(shared, "read")[0]
            counter.end()
            result, lines = follower.end()
        test.ok(codes == [0] * turns and result.code == 0 and seen, f"{turns} changes while three threads count",
                repr(codes), repr(result))
        test.ok(not unaccounted(lines) and not disorder(lines), "accounts and order hold", *unaccounted(lines)[:5],
                *disorder(lines)[:5])
        test.ok(not losses_of(lines, "lost") and not losses_of(lines, "overwritten"), "nothing is told as lost",
                *losses_of(lines, "lost")[:5])
        test.ok(len(losses_of(lines, "not logged")) >= turns // 2, "but as not logged",
                len(losses_of(lines, "not logged")))
        test.equal(tuple(max(line["count"] for line in events_of(lines, path=name, kind="read"))
                         for name in ("/orders", "/all")), counted, "up to the last count")
        changes = events_of(lines, path="/orders", kind="mask")
        test.equal(len(changes), turns, "each change of an object is one event")
        # What is logged behind a change that switches off: the one event that was on its way then, and those between
        # the change's time and the change.
        spans = []  # of each such change, the last
        for change, following in zip(changes, changes[1:]):
            if "read" not in change["data"]["after"]:
                spans.append(max([line["time"] - change["time"] for line in events_of(lines, path="/orders", kind="read")
                                  if change["time"] < line["time"] < following["time"]], default=0))
        test.note(f"{sum(span > 0 for span in spans)} of {len(spans)} changes had reads logged behind them, at most "
                  f"{max(spans, default=0)} ns behind")
        # A thread that the machine stops between its look at the mask and its clock may be later.
        test.ok(spans and sorted(spans)[len(spans) // 2] <= 1000000, "a mask takes effect within a millisecond",
                repr(sorted(spans)))


def lives(test):
    """Only open lives of running programs are changed; a closed one and its successor are two."""
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with Counter(logs, log="lives") as counter, Counter(logs, log="dies") as dies, Counter(logs, log="ends") as ends:
            for program in (counter, dies, ends):
                made = program.object("orders")
                program.count(made, "read", 1)
            closed = counter.object("closed")
            counter.tell("close", closed)
            counter.tell("succeed", 0)
            dies.leave()
            ends.end()
            result = mask("closed", "-read", logs=logs)
            test.ok(result.code == NOTHING and one_line(result), "a closed object: exit 1 and one line", repr(result))
            for name in ("dies", "ends"):
                result = mask(f"{name}/orders", "-read", logs=logs)
                test.ok(result.code == NOTHING and one_line(result) and "ended" in result.errors,
                        f"a program that has ended ({name}): exit 1 and one line", repr(result))
            before = {name: read(os.path.join(logs, name)) for name in os.listdir(logs) if not name.startswith("lives")}
            result = mask("**/orders", "-read", logs=logs)
            test.ok(result.code == 0 and result.text.count("\n") == 1 and "node-1/lives/orders" in result.text and
                    result.err.count(b"\n") == 1, "the living one is changed, the others are told of", repr(result))
            after = {name: read(os.path.join(logs, name)) for name in before}
            test.ok(before == after, "logs of the dead stay as they are")
            counter.tell("succeed", 0)
            test.ok(mask("lives/orders", logs=logs).text.endswith("+all -read,poll\n"), "a successor inherits the mask")
            log = next(os.path.join(logs, name) for name in os.listdir(logs) if name.startswith("lives."))
            with open(work + "/copy.ntlog", "wb") as copy:
                copy.write(read(log))
            whole = read(work + "/copy.ntlog")
            result = mask(work + "/copy.ntlog", "orders", "+read", logs=work + "/none")
            test.ok(result.code == NOTHING and one_line(result) and read(work + "/copy.ntlog") == whole,
                    "a copied log is not changed", repr(result))


def read(path):
    with open(path, "rb") as stream:
        return stream.read()


def privileges(test):
    """Who may read a log but not write it changes nothing."""
    if os.geteuid() != 0:
        test.skip("another user's log", "only root can be somebody else")
        return
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with Counter(logs) as counter:
            counter.object("orders")
            os.chmod(work, 0o755)
            os.chmod(logs, 0o755)
            for name in os.listdir(logs):
                os.chmod(os.path.join(logs, name), 0o644)

            def nobody():
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)

            try:
                result = mask("orders", "-read", logs=logs, preexec=nobody)
            except (PermissionError, subprocess.SubprocessError):
                test.skip("another user's log", "the build cannot be run by others")
                return
            if b"Permission denied" in result.err or result.code == BAD:
                test.ok(result.code == BAD and result.out == b"" and result.err.count(b"\n") == 1,
                        "another user's log: exit 3 and one line", repr(result))
            test.equal(mask("orders", logs=logs).text, "node-1/counter/orders  +all -poll\n", "and it is as it was")


def main():
    test = tap.Tap()
    for function in (usage, words, effect, unseen, racing, lives, privileges):
        test.attempt(function.__name__, function, test)
    test.done()


if __name__ == "__main__":
    main()
