#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Law 1 on random relays: real processes, tiny rings, a starved reader, drops, doubles, other orders.

law1_relay.py [--seed N] [--runs N] [--kind plain|starved]: a run's seed alone repeats it.
"""
import argparse
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import relay  # noqa: E402
import scope  # noqa: E402
import tap  # noqa: E402

RUNS = 1000     # at TEST_SCALE 1
STARVED = 40
SHOWN = 5       # differences of a run
RUN_LIMIT = 60  # seconds


class Tally:
    """What all runs met: a property test that never meets anything shows nothing."""

    def __init__(self):
        self.table_faults, self.event_faults, self.run_faults = [], [], []
        self.runs = self.sums = self.lives = self.folded = self.refused = self.helpers = 0
        self.events = self.lost = self.checked_events = self.checked_sums = self.epochs = 0

    def note(self):
        return f"{self.runs} runs: {self.lives} lives shown, {self.folded} folded, {self.epochs} successors, " \
               f"{self.helpers} forked, {self.refused} refused, {self.sums} sums; {self.events} events read, " \
               f"{self.lost} lost, {self.checked_events} held against the series, {self.checked_sums} sums of them"


def follow(logs, truth, seed, pause):
    return scope.Program([scope.EVENTS_CHECK, "--live", "--pause", str(pause), "--seed", str(seed), logs, truth],
                         stdin=-1)


def one_run(tally, seed, options, pause, limit=RUN_LIMIT):
    """One relay, watched while it runs and after."""
    label = f"seed {seed}: relay {options}"
    with scope.workspace() as work:
        logs, truth = relay.directory_of(work, "logs"), relay.directory_of(work, "truth")
        with follow(logs, truth, seed, pause) as reader:
            result = scope.run(options.command(truth), scope.environment(logs, NTSCOPE_KEEP="all", TMPDIR=work), limit)
            if result.code != 0 or result.err:
                tally.run_faults.append(f"{label}: {result!r}")
                return
            events = reader.finish(limit, b"")
        stat = scope.ntscope("stat", "--json", logs=logs)
        check_tables(tally, label, stat, relay.load_truth(truth))
        check_events(tally, label, events)
    tally.runs += 1


def check_tables(tally, label, stat, truth):
    if stat.code != 0:
        tally.table_faults.append(f"{label}: stat --json: {stat!r}")
        return
    comparison = relay.Comparison(stat.json(), truth)
    faults = comparison.differences
    faults += [f"the log of {process['name']}.{process['pid']} is missing"
               for process in comparison.missing]
    for process in comparison.seen.values():
        if process["state"] != "exited":
            faults.append(f"{process['name']}.{process['pid']}: {process['state']}")
    tally.table_faults += [f"{label}: {fault}" for fault in faults[:SHOWN]]
    tally.sums += comparison.sums
    tally.lives += comparison.lives
    tally.folded += comparison.folded
    tally.refused += comparison.refused
    tally.helpers += sum(process["helper"] for process in truth.values())
    tally.epochs += sum(life["epoch"] > 0 for process in truth.values() for life in process["objects"])


def check_events(tally, label, events):
    if events.code not in (0, 1) or not events.out:
        tally.event_faults.append(f"{label}: events_check: {events!r}")
        return
    outcome = events.json()
    if events.code != 0:
        tally.event_faults.append(f"{label}: {outcome['errors']} errors")
        tally.event_faults += events.errors.splitlines()[:SHOWN]
    tally.events += outcome["events"]
    tally.lost += outcome["lost"]
    tally.checked_events += outcome["checked_events"]
    tally.checked_sums += outcome["checked_sums"]


def report(test, tally, what):
    test.note(tally.note())
    test.ok(not tally.run_faults, f"{what}: every relay does its work with a log", *tally.run_faults[:20])
    test.ok(tally.runs and not tally.table_faults,
            f"{what}: each count, total and maximum of stat --json is the relay's own, to the byte",
            *tally.table_faults[:40])
    test.ok(tally.runs and not tally.event_faults,
            f"{what}: each event that was read, and any two of them, say what was counted; none twice, none missing "
            "without a word", *tally.event_faults[:40])


def plain(test, base, runs):
    tally = Tally()
    for seed in range(base, base + 2 * runs):
        if tally.runs >= runs and 1000 * tally.refused <= tally.lives:
            break  # how full a small log is hangs on the machine too: more runs until they are as the last condition asks
        pause = random.Random(seed).choice((0, 0, 5, 50))
        one_run(tally, seed, relay.Options(seed), pause)
    report(test, tally, "random relays")
    if runs >= 20:
        test.ok(tally.lost and tally.folded and tally.epochs and tally.helpers and 1000 * tally.refused <= tally.lives,
                "the random relays met overruns, reused slots, reconnects and forks, and hardly a refusal", tally.note())


def starved(test, base, runs):
    """A reader that sleeps for up to two seconds while rings of 256 slots go round."""
    tally = Tally()
    for seed in range(base, base + runs):
        options = relay.Options(seed, requests=0, seconds=3, rate=3000, ring=16384, workers=2)
        one_run(tally, seed, options, 2000)
    report(test, tally, "a reader starved for seconds")
    test.ok(tally.lost > 0, "the starved reader lost events", tally.note())


def crowded(test, base, runs):
    """So little room that objects are refused: what is there is exact, what is not is counted."""
    tally = Tally()
    for seed in range(base, base + runs):
        options = relay.Options(seed, cap=524288, ring=16384, threads=16, churn=1, requests=400, idle=2000)
        one_run(tally, seed, options, 5)
    report(test, tally, "relays with hardly any room")
    test.ok(tally.refused > 0, "relays with hardly any room were refused objects", tally.note())


def hammered(test, base, runs):
    """Threads that count a few nanoseconds apart on a shared object, and a reader that is overtaken all the time."""
    faults, events, lost = [], 0, 0
    for seed in range(base, base + runs):
        chance = random.Random(seed)
        command = [scope.BARE_COUNT, str(chance.randint(1, 3)), str(chance.choice((16384, 16384, 262144))), "100"]
        with scope.workspace() as work:
            logs = relay.directory_of(work, "logs")
            with scope.Program([scope.BARE_CHECK, "--live", logs], stdin=-1) as reader:
                result = scope.run(command, scope.environment(logs), RUN_LIMIT)
                found = reader.finish(RUN_LIMIT, b"")
            counted = dict(line.split() for line in result.text.splitlines()[1:])
            stat = scope.ntscope("stat", "**/write/count", logs=logs)
            said = {line.split("/")[-3]: line.split("\t")[1] for line in stat.text.splitlines()}
        if found.code != 0 or not found.out:
            faults.append(f"seed {seed}: {' '.join(command[1:])}: {found!r}")
        else:
            events += found.json()["events"]
            lost += found.json()["lost"]
        if said != counted:
            faults.append(f"seed {seed}: {' '.join(command[1:])}: stat says {said}, counted was {counted}")
    test.note(f"{runs} runs: {events} events read, {lost} lost")
    test.ok(not faults, "counts a few nanoseconds apart, of several threads on one object, read by one that is overtaken "
            "all the time: no event is torn, no count lost", *faults[:20])
    test.ok(events > 0 and lost > 0, "that reader got events and lost some", f"{events} {lost}")


def picked(test, seed):
    """The number that the README picks."""
    with scope.workspace() as work:
        logs, truth = relay.directory_of(work, "logs"), relay.directory_of(work, "truth")
        options = relay.Options(seed, workers=2, **{"reconnect-every": 0, "fork-every": 0})
        result = scope.run(options.command(truth), scope.environment(logs), RUN_LIMIT)
        number = scope.ntscope("stat", "*/worker-1/**/orders/read/total", logs=logs)
        known = [tally["done"]["total"] for process in relay.load_truth(truth).values()
                 if process["name"] == "worker-1" for life in process["objects"]
                 if life["path"] == "tcp/inbox/orders" for kind, tally in life["tallies"].items() if kind == "read"]
        test.ok(result.code == 0 and number.code == 0 and number.text == f"{sum(known)}\n",
                "stat '*/worker-1/**/orders/read/total' prints one number, the bytes that worker-1 read",
                repr(result), repr(number), f"the truth is {known}")


def alike(test, seed):
    """Whatever becomes of its log, the relay prints and does the same."""
    options = relay.Options(seed, **{"fork-every": 0})
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        results = {"with a log": scope.run(options.command(), scope.environment(logs), RUN_LIMIT),
                   "with --log=off": scope.run(options.command() + ["--log=off"], scope.environment(logs), RUN_LIMIT),
                   "with NTSCOPE=off": scope.run(options.command(), scope.environment(logs, NTSCOPE="off"), RUN_LIMIT),
                   "where no log can be made": scope.run(options.command(), scope.environment("/proc/none"), RUN_LIMIT)}
        first = results["with a log"]
        for what, result in results.items():
            test.ok(result.code == 0 and not result.err and relay.steady(result.text) == relay.steady(first.text),
                    f"the relay prints the same {what}, and exits 0", str(options), repr(result), relay.steady(first.text),
                    relay.steady(result.text))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int)
    parser.add_argument("--runs", type=int)
    parser.add_argument("--kind", choices=("plain", "starved", "crowded", "hammered"))
    arguments = parser.parse_args()
    test = tap.Tap()
    base = scope.base_seed(arguments.seed)
    test.note(f"TEST_SEED={base}")
    start = time.monotonic()
    kinds = {"plain": (plain, scope.scaled(RUNS, 3)), "crowded": (crowded, scope.scaled(RUNS / 10, 2)),
             "starved": (starved, scope.scaled(STARVED)), "hammered": (hammered, scope.scaled(RUNS / 10, 2))}
    for name, (function, runs) in kinds.items():
        if arguments.kind in (None, name):
            test.attempt(name, function, test, base, arguments.runs or runs)
    if arguments.kind is None:
        test.attempt("picked", picked, test, base)
        test.attempt("alike", alike, test, base)
    test.note(f"{time.monotonic() - start:.1f} s")
    test.done()


if __name__ == "__main__":
    main()
