#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What two programs say of the two ends of their connections, read back by `ntscope stat` and `ntscope events`: from
the running, and from the killed."""
import contextlib
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import relay  # noqa: E402
import scope  # noqa: E402
import tap  # noqa: E402
from counter import parse  # noqa: E402

MESSAGES = 100


@contextlib.contextmanager
def two_ends(logs):
    with scope.Program([scope.TWO_ENDS], scope.environment(logs), stdin=subprocess.PIPE) as program:
        if program.process.stdout.readline() != b"ready\n":
            raise RuntimeError(f"two_ends: {program.finish()!r}")
        yield program


def objects_of(tree):
    """By program and name."""
    found = {}

    def visit(process, objects):
        for said in objects:
            found[process["name"], said["name"]] = said
            visit(process, said["objects"])

    for node in tree["nodes"]:
        for process in node["processes"]:
            visit(process, process["objects"])
    return found


def ends(said):
    return {link["direction"]: link for link in said.get("links", [])}


def keys(test, objects):
    near, far = ends(objects["near", "tcp"]), ends(objects["far", "tcp"])
    for one, other in (("write", "read"), ("read", "write")):
        test.equal(near[one]["key"], far[other]["key"], f"tcp: the near {one} and the far {other} have one key")
        test.equal((near[one]["type"], near[one]["pairing"]), ("tcp", "count"), f"tcp: {one} is paired by number")
    test.ok(near["write"]["key"] != near["read"]["key"], "tcp: each direction has its own key")
    test.equal(len(near["write"]["key"]), 2 * (2 + 6 + 6 + 24), "tcp: over loopback it names the host")
    near, far = ends(objects["near", "pipe"]), ends(objects["far", "pipe"])
    test.equal((list(near), list(far)), (["write"], ["read"]), "pipe: each has one end")
    test.equal(near["write"], dict(far["read"], direction="write"), "pipe: the two ends have one key")
    test.equal((near["write"]["type"], near["write"]["pairing"]), ("pipe", "bytes"), "pipe: paired by bytes")


def names(test, objects):
    for program, node, process in (("near", "node-f", "far"), ("far", "node-n", "near")):
        said = objects[program, "tcp"]
        test.equal((said.get("remote_node"), said.get("remote_process")), (node, process),
                   f"{program}: the other end is {node}/{process}")
        test.ok("remote_node" not in objects[program, "pipe"], f"{program}: of the pipe nobody said who is there")


def sums(test, objects):
    """1 to 100 bytes each once; 7 messages of 700 bytes before the log."""
    for program, kind in (("near", "write"), ("far", "read")):
        said = objects[program, "tcp"]
        tally = said["tallies"][kind]
        test.equal((tally["count"], tally["total"]), (MESSAGES, 5050), f"{program}: what was counted")
        base = said["base"][kind]
        test.equal((base["count"], base["total"]), (7, 700), f"{program}: what went before")
        histogram = tally["histogram"]
        test.equal(sum(bucket["count"] for bucket in histogram["buckets"]), MESSAGES, f"{program}: all are in buckets")
        test.ok(all(bucket["count"] == bucket["high"] - bucket["low"] + 1 for bucket in histogram["buckets"][:-1]),
                f"{program}: each bucket has the values that belong to it", histogram)
        for name, value in (("p50", 50), ("p90", 90), ("p99", 99)):
            bounds = histogram[name]
            test.ok(bounds["low"] <= value <= bounds["high"] <= value * 1.1 + 1,
                    f"{program}: {name} is where it belongs", bounds)
    test.ok("histogram" not in objects["far", "tcp"]["tallies"]["wait"], "no histogram where none was asked for")
    for number in (1, 2):
        said = objects["far", f"actor-{number}"]
        test.equal((said["kind"], said["tallies"]["actor"]["count"]), ("actor", MESSAGES // 2),
                   f"actor-{number} took its turns")


def events(test, logs, when):
    def count(condition):
        return len(parse(scope.ntscope("events", "--json", "--where", condition, logs=logs)))

    test.equal(count("remote_node = 'node-f' AND kind = 'write'"), MESSAGES, f"{when}: events by the other end's node")
    test.equal(count("remote_process = 'near' AND kind = 'read'"), MESSAGES, f"{when}: events by its process")
    test.equal(count("remote_process IS NULL AND kind = 'write'"), 1, f"{when}: and those of which it is not known")
    lines = parse(scope.ntscope("events", "--json", "--where", "kind IN ('actor', 'read', 'wait')", "far", logs=logs))
    tcp = [line["kind"] for line in lines if line["path"].rsplit("/", 1)[-1] != "pipe"]
    test.equal(tcp, ["actor", "read", "wait"] * MESSAGES, f"{when}: waits and actor switches are where they were")


def everything(test, logs, when):
    result = scope.ntscope("stat", "--json", logs=logs)
    objects = objects_of(result.json())
    test.note(when)
    keys(test, objects)
    names(test, objects)
    sums(test, objects)
    events(test, logs, when)
    text = scope.ntscope("stat", logs=logs).text
    test.ok("tcp  channel, to node-f/far\n" in text or "tcp  channel, to node-f/far " in text,
            f"{when}: stat names the other end", text)
    test.ok("(write: half up to 53, 90% up to 90, 99% up to 107)" in text, f"{when}: and how large messages were", text)
    test.ok("(before the log)" in text, f"{when}: and what went before", text)


def running_and_killed(test):
    with scope.workspace() as work:
        logs = relay.directory_of(work, "logs")
        with two_ends(logs) as program:
            everything(test, logs, "running")
            program.end(signal.SIGKILL)
            program.finish()
            everything(test, logs, "killed")


def main():
    test = tap.Tap()
    test.attempt("running_and_killed", running_and_killed, test)
    test.done()


if __name__ == "__main__":
    main()
