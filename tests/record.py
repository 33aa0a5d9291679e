#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`ntscope record`: what a recording says is what the logs say, to the byte, for every command that reads; a recorder that
is killed, stopped, out of room or told to end leaves what it wrote; and what it is told wrongly is said in one line.

record.py [--seed N] [--runs N] [--update]
"""
import argparse
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import relay  # noqa: E402
import scope  # noqa: E402
import tap  # noqa: E402

NOTHING, USAGE, BAD = 1, 2, 3
RUNS, KILLS = 40, 200  # at TEST_SCALE 1
LIMIT = 60
BOOT_AT = 88  # of the boot id in a log
EVENTS_BLOCK = b"\xf1NTBLK\r\n\x01\x00"  # what a block of events begins with
AGE = re.compile(rb" *(-|AGE|LAST|\b\d+(\.\d+)?(ns|us|ms|s|m|h|d))$", re.MULTILINE)  # the time since, at the end of a line
READING = (["ps"], ["ps", "--json"], ["stat"], ["stat", "--json"], ["stat", "--all", "--json"], ["session"],
           ["session", "--json"], ["events"], ["events", "--json"], ["events", "--json", "--where", "value > 100"],
           ["stat", "**/orders/read/total"])


def run_relay(logs, seed, **fixed):
    options = relay.Options(seed, **fixed)
    result = scope.run(options.command(), scope.environment(logs, NTSCOPE_KEEP="all"), limit=LIMIT)
    if result.code != 0:
        raise RuntimeError(f"relay {options}: {result!r}")
    return options


def only_logs(logs):
    return sorted(os.path.join(logs, name) for name in os.listdir(logs) if name.endswith(".ntlog"))


def freeze(logs):
    """Logs of another boot: their clocks are not looked at any more, so that a time is the same at each look."""
    for path in only_logs(logs):
        with open(path, "r+b") as stream:
            stream.seek(BOOT_AT)
            stream.write(b"another boot id.")


def record(path, *arguments, logs=None, **options):
    return scope.ntscope("record", "-o", path, *arguments, logs=logs, limit=LIMIT, **options)


def said(result):
    """What the line at the end of recording says."""
    words = re.search(r"(\d+) events, (\d+) lost, (\d+) bytes in ", result.errors)
    return tuple(map(int, words.groups())) if words else None


def without_age(text):
    return AGE.sub(b"", text)


def one_line(result):
    return result.out == b"" and result.err.count(b"\n") == 1 and result.err.startswith(b"ntscope: ")


def events_of(result):
    """Events by identity, without what is converted anew at each look, and lines of what is missing."""
    events, missing = {}, []
    for line in result.out.splitlines():
        event = json.loads(line)
        if event["kind"] == "loss" and "reason" in event:
            missing.append({key: value for key, value in event.items() if "time" not in key})
        else:
            for key in ("time", "time_raw", "flags"):
                event.pop(key)
            events[(event["log"], event["ring"], event["position"])] = event
    return events, missing


def processes_of(path):
    return scope.ntscope("ps", "--json", path).json()["processes"]


def equal_answers(test, seed, runs):
    """Every command that reads, of what has ended: from the logs and from their recording."""
    chance = random.Random(seed)
    wrong = []
    for number in range(runs):
        with scope.workspace() as logs:
            options = run_relay(logs, chance.getrandbits(32))
            freeze(logs)
            path = os.path.join(logs, "a.ntrec")
            made = record(path, logs=logs)
            if made.code != 0 or made.err.count(b"\n") != 1 or said(made) is None:
                wrong.append(f"{options}: {made!r}")
            for command in READING:
                live, kept = scope.ntscope(*command, logs=logs), scope.ntscope(*command, path)
                if (without_age(live.out), live.err, live.code) != (without_age(kept.out), kept.err, kept.code):
                    wrong.append(f"{options}: {command}:\n{live!r}\n{kept!r}")
            again = os.path.join(logs, "b.ntrec")
            made = record(again, path)
            if scope.ntscope("events", again).out != scope.ntscope("events", path).out or made.code != 0:
                wrong.append(f"{options}: a recording of the recording is another: {made!r}")
    test.ok(not wrong, f"{runs} relays: recordings answer as their logs do", *wrong[:2])


def several_files(test, seed):
    """A recording of each log, read together: what one of all of them says."""
    with scope.workspace() as logs:
        run_relay(logs, seed, ring=None, cap=None)
        freeze(logs)
        paths = []
        for number, log in enumerate(only_logs(logs)):
            paths.append(os.path.join(logs, f"{number}.ntrec"))
            made = record(paths[-1], log)
            test.ok(made.code == 0, f"recording {number} of a log file", repr(made))
        live, kept = scope.ntscope("events", "--json", logs=logs), scope.ntscope("events", "--json", *paths)
        test.equal((events_of(kept), kept.code), (events_of(live), 0), "events of several recordings are those of all logs")
        times = [event["time"] for event in map(json.loads, kept.out.splitlines())
                 if "reason" not in event and "late" not in event["flags"]]
        test.ok(times == sorted(times), "and in order, but for what is marked")
        live, kept = (scope.ntscope("stat", "**/count", logs=logs), scope.ntscope("stat", "**/count", *paths))
        test.equal((kept.out, kept.code), (live.out, 0), "likewise statistics")
        mixed = scope.ntscope("events", paths[0], only_logs(logs)[0])
        test.ok(mixed.code == BAD and one_line(mixed), "logs and recordings are not mixed", repr(mixed))


def while_it_runs(test, seed):
    """A command is recorded from its first event on; what is written at the end is all of it."""
    with scope.workspace() as logs:
        path, keep = os.path.join(logs, "a.ntrec"), os.path.join(logs, "keep")
        os.mkdir(keep)
        options = relay.Options(seed, requests=400, ring=None, cap=None, **{"fork-every": 0, "churn": 0})
        made = record(path, "--", *options.command(), logs=keep)
        test.ok(made.code == 0 and said(made) is not None and said(made)[1] == 0, "a command's events: none lost",
                f"exit {made.code}", made.errors)
        events, missing = events_of(scope.ntscope("events", "--json", path))
        test.equal((len(events), missing), (said(made)[0], []), "as many as it said, nothing missing")
        programs = processes_of(path)
        test.ok(len(programs) == 2 + 1 + options["workers"] and all(program["state"] == "exited" for program in programs),
                "all programs are there, and have ended", programs)
        test.equal(os.listdir(keep), [], "its logs are gone")
        made = record(path, "--", "sh", "-c", "exit 7", logs=keep)
        test.ok(made.code == 7, "the exit code is the command's", repr(made))
        made = record(path, "--", "/nonexistent", logs=keep)
        test.ok(made.code == 127, "no such command: 127", repr(made))


def whole_blocks(path):
    """Blocks of events that are whole in any case: all but the last."""
    with open(path, "rb") as stream:
        return stream.read().count(EVENTS_BLOCK) - 1


def killed(test, seed, kills):
    """Killed at any time it leaves whole blocks, of events that there were."""
    chance = random.Random(seed)
    wrong, cut, read = [], 0, 0
    for number in range(kills):
        with scope.workspace() as logs:
            path = os.path.join(logs, "a.ntrec")
            long = number == 0  # until some events are in whole blocks, so that something is read in any case
            options = relay.Options(chance.getrandbits(32), requests=20000 if long else 500, ring=None, cap=None,
                                    **{"fork-every": 0})
            env = scope.environment(logs, NTSCOPE_KEEP="all")
            with scope.Program(options.command(), env) as program:
                scope.wait_for(lambda: only_logs(logs) or program.process.poll() is not None)
                with scope.Program([scope.NTSCOPE, "record", "-o", path], env) as recorder:
                    scope.wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > 64)
                    if long:
                        scope.wait_for(lambda: whole_blocks(path) > 0, LIMIT)
                    time.sleep(chance.random() * 0.4)
                    recorder.end(signal.SIGKILL)
                program.finish(LIMIT)
            size = os.path.getsize(path)
            with open(path, "r+b") as stream:  # what a power failure leaves
                stream.truncate(chance.randint(64, size) if chance.random() < 0.7 and not long else size)
            kept = scope.ntscope("events", "--json", path)
            whole = scope.ntscope("events", "--json", logs=logs)
            events, _ = events_of(kept)
            all_events, _ = events_of(whole)
            for key, event in events.items():
                there = all_events.get(key)
                if there is None and long:
                    continue  # overwritten since
                if there is None or any(event[name] != there[name] for name in ("count", "value", "total", "session",
                                                                              "argument", "object", "thread")):
                    wrong.append(f"{options}: {event} is {there}")
            named = re.search(r" offset \d+", kept.errors)
            if kept.timed_out or kept.code < 0 or (kept.code != BAD) != (kept.err == b"") or \
                    (kept.code == BAD and not named):
                wrong.append(f"{options}: {kept!r}")
            cut += kept.code == BAD
            read += len(events)
    test.ok(not wrong, f"{kills} recorders killed: what is read was there, the rest is named", *wrong[:3])
    test.ok(cut > 0 and read > 0, "some was cut, some was read", f"{cut} cut, {read} events read")


def ended_by_signals(test, seed):
    with scope.workspace() as logs:
        path = os.path.join(logs, "a.ntrec")
        with scope.Program([scope.COUNTER, "counting", "node-1", "0"], scope.environment(logs),
                           stdin=subprocess.PIPE) as program:
            for line in (b"object - exclusive 61\n", b"start 0 1 1000\n"):
                program.process.stdin.write(line)
                program.process.stdin.flush()
                program.process.stdout.readline()
            for number in (signal.SIGINT, signal.SIGTERM):
                with scope.Program([scope.NTSCOPE, "record", "-o", path], scope.environment(logs)) as recorder:
                    scope.wait_for(lambda: os.path.exists(path) and os.path.getsize(path) > 0)
                    time.sleep(0.3)
                    os.kill(recorder.pid, number)
                    result = recorder.finish()
                kept = scope.ntscope("events", path)
                test.ok(result.code == 0 and said(result) is not None and kept.code == 0 and kept.err == b"",
                        f"signal {number} ends it, and the recording is whole", repr(result), repr(kept))
            result = record(path, "--for", "300ms", logs=logs)
            test.ok(result.code == 0 and said(result)[0] > 0, "--for ends it", repr(result))
            state = processes_of(path)[0]["state"]
            test.equal(state, "unknown", "whether a program that lived then lives now is not known")
            followed = scope.ntscope("events", "-f", path)
            test.ok(followed.code == 0 and not followed.timed_out, "following a recording ends", repr(followed))


def conditions(test, seed):
    """--where keeps what `events --where` shows, and what was left out is not called lost."""
    with scope.workspace() as logs:
        run_relay(logs, seed, ring=None, cap=None, churn=0, **{"reconnect-every": 0, "fork-every": 0})
        freeze(logs)
        path, where = os.path.join(logs, "a.ntrec"), "kind IN ('read', 'write') AND count NOT BETWEEN 5 AND 9 AND path GLOB '*/orders'"
        made = record(path, "--where", where, logs=logs)
        live, kept = (scope.ntscope("events", "--json", "--where", where, logs=logs), scope.ntscope("events", "--json", path))
        (events, _), (wanted, _) = events_of(kept), events_of(live)
        test.ok(made.code == 0 and wanted and {key: event for key, event in events.items() if event["ring"] is not None} ==
                {key: event for key, event in wanted.items() if event["ring"] is not None},
                "--where records what it shows", repr(made))
        reasons = {json.loads(line).get("reason") for line in kept.out.splitlines()} - {None}
        test.ok("lost" not in reasons and "left out" in reasons, "what was left out was not lost", reasons)


def little_room():
    resource.setrlimit(resource.RLIMIT_FSIZE, (150000, 150000))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def out_of_room(test, seed):
    with scope.workspace() as logs:
        run_relay(logs, seed, requests=3000, ring=None, cap=None, **{"fork-every": 0})
        path = os.path.join(logs, "a.ntrec")
        made = record(path, logs=logs, preexec=little_room)
        test.ok(made.code == BAD and one_line(made), "no room: one line", repr(made))
        kept = scope.ntscope("events", path)
        test.ok(kept.code == BAD and b" offset " in kept.err, "what was written can be read, and that it was cut is said", repr(kept))
        test.ok(not any(part in kept.err for part in (b"damaged", b"within")), "it was cut behind a whole block", repr(kept))
        full = record("/dev/full", logs=logs)
        test.ok(full.code == BAD and one_line(full), "a device is not written to", repr(full))


def wrong_usage(test, seed):
    with scope.workspace() as logs:
        path, other = os.path.join(logs, "a.ntrec"), os.path.join(logs, "other")
        empty = os.path.join(logs, "empty")
        os.mkdir(empty)
        result = record(path, logs=empty)
        test.ok(result.code == NOTHING and one_line(result) and not os.path.exists(path), "no logs: said, no file", repr(result))
        run_relay(logs, seed)
        with open(other, "wb") as stream:
            stream.write(b"precious")
        result = record(other, logs=logs)
        with open(other, "rb") as stream:
            test.ok(result.code == BAD and one_line(result) and stream.read() == b"precious",
                    "what is no recording is not written over", repr(result))
        os.symlink(other, path)
        result = record(path, logs=logs)
        test.ok(result.code == BAD and one_line(result), "nor what a link leads to", repr(result))
        os.unlink(path)
        for name in ("first", "second"):
            result = record(path, logs=logs)
            test.ok(result.code == 0, f"the {name} time over a recording", repr(result))
        test.equal(os.stat(path).st_mode & 0o777, 0o600, "only its owner reads it")
        for arguments in (["--for", "soon"], ["--for", "-3s"], ["--for", ""], ["--where", "value >"], ["--"],
                          [path, "--", "true"], ["--nonsense"]):
            result = record(path, *arguments, logs=logs)
            test.ok(result.code == USAGE and one_line(result), f"wrong: {' '.join(arguments)}", repr(result))
        result = record(path, other, logs=logs)
        test.ok(result.code == BAD and one_line(result), "a file that is neither", repr(result))
        for arguments in (["mask", path, "-read"], ["mask", path]):
            result = scope.ntscope(*arguments)
            test.ok(result.code == USAGE and one_line(result), "mask takes no recording", repr(result))
        result = scope.run([scope.NTSCOPE, "record"], scope.environment(logs), cwd=empty)
        names = os.listdir(empty)
        test.ok(result.code == 0 and len(names) == 1 and re.fullmatch(r"ntscope-\d{8}-\d{6}\.ntrec", names[0]),
                "a name by default", repr(result), names)
        result = record(path, path)
        test.ok(result.code == 0 and scope.ntscope("events", path).code == 0, "a recording written over itself is read first",
                repr(result))


STORED = (["ps", "--json"], ["stat", "--json", "--all"], ["session", "--json"], ["events"])


def stored_recordings():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".ntrec"))


def stored(test, _seed):
    """Recordings of each version that ever was: they must be read for ever. What is shown of them may change with how
    things are shown; --update writes that down anew."""
    test.ok(stored_recordings(), "there are some")
    for path in stored_recordings():
        for command in STORED:
            with open(f"{path}.{command[0]}", "rb") as stream:
                wanted = stream.read()
            kept = scope.ntscope(*command, path)
            test.equal((kept.out, kept.code), (wanted, 0), f"{os.path.basename(path)}: {' '.join(command)}")


def update():
    for path in stored_recordings():
        for command in STORED:
            with open(f"{path}.{command[0]}", "wb") as stream:
                stream.write(scope.ntscope(*command, path).out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int)
    parser.add_argument("--runs", type=int, default=scope.scaled(RUNS, 2))
    parser.add_argument("--update", action="store_true", help="write down anew what is shown of stored recordings")
    arguments = parser.parse_args()
    if arguments.update:
        update()
        return
    test = tap.Tap()
    seed = scope.base_seed(arguments.seed)
    test.note(f"seed {seed}")
    test.attempt("equal answers", equal_answers, test, seed, arguments.runs)
    for case in (several_files, while_it_runs, ended_by_signals, conditions, out_of_room, wrong_usage, stored):
        test.attempt(case.__name__, case, test, seed)
    test.attempt("killed", killed, test, seed, scope.scaled(KILLS, 3))
    test.done()


if __name__ == "__main__":
    main()
