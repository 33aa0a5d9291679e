#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Law 9: kill -9 at random moments of processes of random relays; what they leave behind reads back whole.

law9_kill.py [--seed N] [--kills N]: a round's seed repeats its relay, not the instruction that a kill meets.
"""
import argparse
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import processes  # noqa: E402
import relay  # noqa: E402
import scope  # noqa: E402
import tap  # noqa: E402

KILLS = 500  # at TEST_SCALE 1
LIMIT = 60   # seconds
SHOWN = 5


class Outcome:
    def __init__(self):
        self.kills = self.crashed = self.unlogged = self.rounds = self.events = self.sums = self.in_flight = 0
        self.read, self.state, self.table, self.event, self.survivors = [], [], [], [], []
        self.slowest = 0.0

    def note(self):
        return f"{self.kills} kills in {self.rounds} relays, {self.crashed} logs crashed, {self.unlogged} died before " \
               f"they had one, {self.in_flight} operations were in flight; {self.events} events and {self.sums} sums " \
               f"checked; the slowest relay ended {self.slowest:.2f} s after the kill"


def relay_round(outcome, seed):
    chance = random.Random(seed ^ 0x5EED)
    options = relay.Options(seed, requests=chance.randint(300, 3000), seconds=1, rate=chance.choice((0, 2000, 20000)))
    label = f"seed {seed}: relay {options}"
    with scope.workspace() as work:
        logs, truth = relay.directory_of(work, "logs"), relay.directory_of(work, "truth")
        env = scope.environment(logs, NTSCOPE_KEEP="all", TMPDIR=work)
        with scope.Program(options.command(truth), env) as program:
            scope.wait_for(lambda: processes.of_truth(truth), LIMIT)
            time.sleep(chance.choice((0.02, 0.12)) * chance.random())
            pids = processes.of_truth(truth)
            killed = [pid for pid in processes.choose(chance, pids) if processes.kill(pid, program.pid)]
            if chance.random() < 0.5:  # the rest at once, too, or it ends by itself
                killed += [pid for pid in processes.of_truth(truth)
                           if pid not in killed and processes.kill(pid, program.pid)]
            start = time.monotonic()
            result = program.finish(LIMIT)
            outcome.slowest = max(outcome.slowest, time.monotonic() - start)
        if result.timed_out:
            outcome.survivors.append(f"{label}: {result!r}")
            return
        judge(outcome, label, seed, logs, truth, killed)
    outcome.rounds += 1
    outcome.kills += len(killed)


def counter_round(outcome, seed):
    """A program that does nothing but count: most kills meet an operation in flight."""
    chance = random.Random(seed ^ 0xC0FFEE)
    with scope.workspace() as work:
        logs, truth = relay.directory_of(work, "logs"), relay.directory_of(work, "truth")
        command = [scope.KILL_COUNTER, truth, str(chance.randint(1, 4)), str(chance.choice((16384, 65536, 1048576))),
                   str(seed)]
        label = f"seed {seed}: " + " ".join(command[2:])
        with scope.Program(command, scope.environment(logs)) as program:
            scope.wait_for(lambda: processes.of_truth(truth), LIMIT)
            time.sleep(chance.choice((0.002, 0.03)) * chance.random())
            killed = [program.pid] if processes.kill(program.pid, program.pid) else []
            result = program.finish(LIMIT)
        if not killed:
            outcome.read.append(f"{label}: {result!r}")
            return
        judge(outcome, label, seed, logs, truth, killed)
    outcome.rounds += 1
    outcome.kills += len(killed)


def bare_round(outcome, seed):
    """Threads that count a few nanoseconds apart, so that a kill meets any instruction of a count."""
    chance = random.Random(seed ^ 0xBA5E)
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        command = [scope.BARE_COUNT, str(chance.randint(1, 3)), str(chance.choice((16384, 1048576))), "0"]
        with scope.Program(command, scope.environment(logs)) as program:
            program.process.stdout.readline()
            time.sleep(0.004 * chance.random())
            killed = processes.kill(program.pid, program.pid)
            result = program.finish(LIMIT)
        label = f"seed {seed}: bare_count {' '.join(command[1:])}"
        states = [process["state"] for process in
                  scope.ntscope("ps", "--json", logs=logs).json()["processes"]] if killed else []
        if not killed or states != ["crashed"]:
            outcome.state.append(f"{label}: {states} {result!r}")
            return
        outcome.crashed += 1
        check_bare(outcome, label, ["--killed", logs])
    outcome.rounds += 1
    outcome.kills += 1


def check_bare(outcome, label, arguments):
    result = scope.run([scope.BARE_CHECK, *arguments], limit=LIMIT)
    if result.code not in (0, 1) or not result.out:
        outcome.event.append(f"{label}: bare_check: {result!r}")
        return
    found = result.json()
    outcome.events += found["events"]
    outcome.sums += found["sums"]
    if result.code:
        outcome.event.append(f"{label}: {found['errors']} errors")
        outcome.event += result.errors.splitlines()[:SHOWN]


def judge(outcome, label, seed, logs, truth, killed):
    known = relay.load_truth(truth)
    stat = scope.ntscope("stat", "--json", logs=logs)
    ps = scope.ntscope("ps", logs=logs)
    logged = [name for name in os.listdir(logs) if name.endswith(".ntlog")]
    if stat.code != (0 if logged else 1) or ps.code != stat.code:
        outcome.read.append(f"{label}: {len(logged)} logs; stat {stat!r}; ps {ps!r}")
        return
    comparison = relay.Comparison(stat.json() if logged else {"nodes": []}, known, killed=True)
    outcome.table += [f"{label}: {fault}" for fault in comparison.differences[:SHOWN]]
    outcome.sums += comparison.sums
    for pid, process in known.items():
        fault = state_fault(outcome, process, comparison.seen.get(pid), pid in killed and not process["complete"])
        if fault:
            outcome.state.append(f"{label}: {process['name']}.{pid} {fault}")
    check_events(outcome, label, seed, logs, truth)


def state_fault(outcome, process, seen, was_killed):
    lives = process["objects"]
    outcome.in_flight += sum(tally["done"]["count"] != tally["begun"]["count"]
                             for life in lives for tally in life["tallies"].values())
    if seen is None:
        outcome.unlogged += 1
        # It kept a truth before it opened a log; afterwards there is one.
        return None if was_killed and not any(int(life["handle"], 16) for life in lives) else "left no log"
    if was_killed:
        outcome.crashed += 1
        closed = seen["state"] == "exited" and process["ending"]  # before the kill, or in the middle of it
        return None if seen["state"] == "crashed" or closed else f"was killed and is {seen['state']}"
    return None if seen["state"] == "exited" else f"ended and is {seen['state']}"


def check_events(outcome, label, seed, logs, truth):
    result = scope.run([scope.EVENTS_CHECK, "--killed", "--seed", str(seed), logs, truth], limit=LIMIT)
    if result.code not in (0, 1) or not result.out:
        outcome.event.append(f"{label}: events_check: {result!r}")
        return
    found = result.json()
    outcome.events += found["checked_events"]
    if result.code:
        outcome.event.append(f"{label}: {found['errors']} errors")
        outcome.event += result.errors.splitlines()[:SHOWN]


def judged(test, outcome, wanted, what):
    test.note(outcome.note())
    test.ok(outcome.kills >= wanted, f"{what}: {wanted} kills", outcome.note())
    test.ok(not outcome.survivors, f"{what}: those that are left end by themselves", *outcome.survivors[:10])
    test.ok(outcome.kills and not outcome.read, f"{what}: ps and stat --json read every log that was left behind",
            *outcome.read[:20])
    test.ok(outcome.kills and not outcome.state, f"{what}: who was killed has crashed, who came to its end has exited",
            *outcome.state[:20])
    test.ok(outcome.sums and not outcome.table,
            f"{what}: no count, total or maximum is behind what was done or ahead of what was begun",
            *outcome.table[:40])
    test.ok(outcome.events and not outcome.event,
            f"{what}: no event is torn, none says more than the table, none is missing without a word",
            *outcome.event[:40])


def kill_many(test, base, wanted, function, what):
    outcome = Outcome()
    seed = base
    while outcome.kills < wanted and seed < base + 4 * wanted:
        function(outcome, seed)
        seed += 1
    judged(test, outcome, wanted, what)
    return outcome


def counters(test, base, wanted):
    outcome = kill_many(test, base, wanted, counter_round, "a program that only counts")
    if wanted >= 20:
        test.ok(outcome.in_flight > 0, "some of its kills met an operation in flight", outcome.note())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int)
    parser.add_argument("--kills", type=int)
    parser.add_argument("--kind", choices=("relay", "counter", "bare"))
    arguments = parser.parse_args()
    test = tap.Tap()
    base = scope.base_seed(arguments.seed)
    test.note(f"TEST_SEED={base}")
    start = time.monotonic()
    wanted = arguments.kills or scope.scaled(KILLS, 5)
    if arguments.kind in (None, "relay"):
        test.attempt("relays", kill_many, test, base, wanted, relay_round, "relays")
    if arguments.kind in (None, "counter"):
        test.attempt("counters", counters, test, base, wanted)
    # The thread sanitizer makes a 16-byte store of two behind a lock: who is killed inside leaves it torn.
    if arguments.kind in (None, "bare") and os.environ.get("NTSCOPE_SANITIZE") != "thread":
        test.attempt("bare", kill_many, test, base, 4 * wanted, bare_round, "counts a few nanoseconds apart")
    test.note(f"{time.monotonic() - start:.1f} s")
    test.done()


if __name__ == "__main__":
    main()
