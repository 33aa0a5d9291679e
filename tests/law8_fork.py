#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Law 8, processes: forks of every kind, exec, descriptors closed, pid namespaces, pids used again."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import law8_run as law8  # noqa: E402
import tap as taps  # noqa: E402

H_LAW8 = law8.helper("h_law8")


def logs_of(place):
    return {name: law8.Log(os.path.join(place.logs, name)) for name in place.files() if name.endswith(".ntlog")}


def forks_while_others_count(tap):
    number = law8.scaled(200, 10)
    with law8.Place() as place:
        def check(result):
            logs = {line[0] for line in result.truth}
            own = [line for line in result.truth if line[1] == "own"]
            wrong = [] if len(own) == number + 1 else [f"{len(own)} processes told"]
            if len(logs) != number + 1:
                wrong.append(f"{len(logs)} logs of {number + 1} processes")
            parent = law8.Log(own[-1][0])
            for path in logs - {own[-1][0]}:
                log = law8.Log(path)
                if log.origin != parent.id or log.origin_pid != parent.pid:
                    wrong.append(f"{path} does not name its parent")
            return wrong
        law8.same(tap, f"{number} forks while four threads count", place, [H_LAW8, "crowded-forks", str(number)],
                  check=check, more={"NTSCOPE_KEEP": "all"})


def handlers_that_fork(tap):
    """A child forked in the middle of a count finishes that count, too: not in the parent's log."""
    number = law8.scaled(1000, 50)
    with law8.Place() as place:
        law8.same(tap, f"{number} forks by handlers in the middle of counting", place,
                  [H_LAW8, "handler-forks", str(number)])


def vforks(tap):
    if law8.RACES_COUNT:
        tap.skip("vfork and exec", "the thread sanitizer makes forks of them")
        return
    with law8.Place() as place:
        law8.same(tap, "vfork and exec, 50 times", place, [H_LAW8, "vforks"])
        tap.equal(len(logs_of(place)), 1, "vfork: one log")


def execs(tap):
    with law8.Place() as place:
        def check(result):
            paths = sorted({line[0] for line in result.truth})
            logs = [law8.Log(path) for path in paths]
            if len(logs) != 2:
                return [f"{len(logs)} logs"]
            before, after = sorted(logs, key=lambda log: log.opened)
            wrong = []
            if (before.pid, before.start_time) != (after.pid, after.start_time):
                wrong.append("not the same process")
            if before.state != 0 or after.state != 1:
                wrong.append(f"states {before.state} {after.state}")
            return wrong
        law8.same(tap, "exec: a log each for before and after", place, [H_LAW8, "execs"], check=check)
        for _ in range(5):
            place.run([H_LAW8, "execs"])
        # each life leaves two; four dead ones stay, one more was alive at its open and is dead now
        tap.ok(len(logs_of(place)) <= 5, "exec: what was before is dead", str(place.files()))


def descriptors_closed(tap):
    with law8.Place() as place:
        law8.same(tap, "a program that closes every descriptor and opens others", place, [H_LAW8, "close-all"])


def pid_namespaces(tap):
    """Every program is pid 1, all share a directory; nobody removes anybody's."""
    if not law8.is_root():
        tap.skip("pid namespaces", "no namespaces without root")
        return
    contained = ["unshare", "-p", "-f", "--mount-proc"]
    with law8.Place() as place:
        running = [subprocess.Popen(contained + [H_LAW8, "until-told"], env=place.environment(True),
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        for program in running:
            program.stdout.readline()
        first = logs_of(place)
        tap.equal([log.pid for log in first.values()], [1, 1], "two programs, each pid 1, have a log each")
        for _ in range(6):
            place.run(contained + [H_LAW8, "plain"])
        outside = place.run([H_LAW8, "plain"])
        tap.ok(set(first) <= set(place.files()), "the logs of live ones in other namespaces stay", str(place.files()))
        tap.equal(law8.differences(outside.truth), [], "one outside is exact")
        place.clear()
        for program in running:
            program.communicate()
        told = place.told()
        tap.equal((len(told), law8.differences(told)), (200, []), "both are exact")
        tap.equal([program.returncode for program in running], [7, 7], "both end as without a log")
    with law8.Place() as place:
        law8.same(tap, "a program that is pid 1", place, contained + [H_LAW8, "plain"])
    with law8.Place() as place:
        law8.same(tap, "forks by a program that is pid 1", place, contained + [H_LAW8, "crowded-forks", "10"],
                  more={"NTSCOPE_KEEP": "all"})


def pids_used_again(tap):
    """Files of dead programs whose pid somebody has now, told apart by the start time."""
    with law8.Place() as place:
        place.run([H_LAW8, "plain"])
        name, = place.files()
        log_name, space, pid, start, image, suffix = name.rsplit(".", 5)
        for number in range(6):
            other = ".".join([log_name, space, str(os.getpid()), str(number + 1), image, suffix])
            shutil.copyfile(os.path.join(place.logs, name), os.path.join(place.logs, other))
        law8_result = place.run([H_LAW8, "plain"])
        tap.equal(law8.differences(law8_result.truth), [], "among files of reused pids: exact")
        tap.equal(len(place.files()), 5, "files of reused pids are dead, four stay", str(place.files()))
        tap.ok(pid and start, "names hold pid and start time")


def main():
    law8.main(taps.Tap(), [forks_while_others_count, handlers_that_fork, vforks, execs, descriptors_closed,
                           pid_namespaces, pids_used_again])


if __name__ == "__main__":
    main()
