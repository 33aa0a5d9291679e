#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Law 8, what programs do and what is done to them: threads, ends, several copies of the library, rights given up,
logs removed, closed and scribbled on, readers that hang."""
import mmap
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import law8_run as law8  # noqa: E402
import tap as taps  # noqa: E402

H_LAW8 = law8.helper("h_law8")
H_COPIES = law8.helper("h_copies")
H_STATIC = law8.helper("h_static")
MODULES = [law8.helper("h_dso1.so"), law8.helper("h_dso2.so")]


def a_thousand_threads(tap):
    with law8.Place() as place:
        def check(result):
            log = law8.Log(result.truth[0][0])
            owners = sum(log.ring(number)["owners"] for number in range(log.rings))
            wrong = [] if log.rings == 2 else [f"{log.rings} rings"]
            return wrong if owners == 1001 else wrong + [f"{owners} owners"]
        law8.same(tap, "1000 threads, one after another, share a ring", place, [H_LAW8, "many-threads", "1000"],
                  check=check)


def ends(tap):
    with law8.Place() as place:
        def check(result):
            log = law8.Log(result.truth[0][0])
            wrong = [] if log.state == 1 else ["not closed"]
            return wrong if log.sums("end", "read") == [(1000, 1000)] else wrong + [str(log.sums("end", "read"))]
        law8.same(tap, "handlers of exit and destructors count", place, [H_LAW8, "at-exit"], check=check)
    with law8.Place() as place:
        law8.same(tap, "the first thread ends before the others", place, [H_LAW8, "first-thread-ends"])


def constructors(tap):
    with law8.Place() as place:
        def check(_):
            name, = place.files()
            log = law8.Log(os.path.join(place.logs, name))
            times = [record[0] for record in log.records(0)]
            wrong = [] if log.sums("early", "write") == [(2, 2)] else [str(log.sums("early", "write"))]
            if len(times) != 3 or sorted(times) != times or not log.opened <= times[0] <= log.opened + 10**10:
                wrong.append(f"opened at {log.opened}, events at {times}")
            return wrong
        law8.same(tap, "a constructor that runs before the archive's", place, [H_STATIC], traced=False, check=check)


def names_of_programs(tap):
    for size in (63, 64, 65, 255, 4000, 100000):
        with law8.Place() as place:
            law8.same(tap, f"a program whose name has {size} bytes", place, ["p" * size, "plain"], executable=H_LAW8)


def copies(tap):
    """Three copies of the library open the log at once: each process has one file, and all sums are in it."""
    number, wrong = law8.scaled(300, 20), []
    with law8.Place() as place:
        law8.same(tap, "three copies of the library", place, [H_COPIES] + MODULES, traced=False)
    for turn in range(number):
        with law8.Place() as place:
            result = place.run([H_COPIES] + MODULES)
            if result.code != 0 or len(place.files()) != 1 or set(result.err.split()) != {
                    os.path.join(place.logs, place.files()[0])}:
                wrong.append(f"{turn}: {result.note()}\n{place.files()}")
                continue
            log = law8.Log(os.path.join(place.logs, place.files()[0]))
            sums = [log.sums(name, "write") for name in ("own", "first", "second")]
            # the first module is unloaded and loaded again, which may or may not give it a fresh object
            first = [sum(parts) for parts in zip(*sums[1])]
            if (sums[0], sums[2], first) != ([(20000, 40000)], [(20000, 40000)], [80000, 160000]) or log.rings < 3:
                wrong.append(f"{turn}: {sums} {log.rings} rings")
    tap.ok(not wrong, f"{number} times three copies at once: one file, all exact", f"{len(wrong)} wrong", *wrong[:3])


def rights(tap):
    if not law8.is_root():
        tap.skip("rights given up", "only root has some")
        return
    with law8.Place() as place:
        law8.same(tap, "rights given up after opening", place, [H_LAW8, "drop-rights"])
        tap.equal(len(place.files()), 1, "rights given up: the child has no log here", str(place.files()))


def removed(tap):
    with law8.Place() as place:
        law8.same(tap, "a log that is removed", place, [H_LAW8, "unlinks"])


def closed(tap):
    """Threads that count go on while their log is closed."""
    if law8.RACES_COUNT:
        tap.skip("logs closed while threads count", "a race that the program makes")
        return
    number, wrong = law8.scaled(1000, 50), []
    with law8.Place() as place:
        law8.same(tap, "a log closed while threads count", place, [H_LAW8, "closing"], traced=None)
        for _ in range(number):
            result = place.run([H_LAW8, "closing"])
            if (result.code, result.out) != (7, "closed\n"):
                wrong.append(result.note())
    tap.ok(not wrong, f"{number} logs closed while threads count", f"{len(wrong)} wrong", *wrong[:3])


def running(place, on=True):
    program = subprocess.Popen([H_LAW8, "until-told"], env=place.environment(on), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    program.stdout.readline()
    return program


def finished(tap, name, place, program):
    out, _ = program.communicate(timeout=law8.LIMIT)
    tap.equal((program.returncode, out), (7, "told\n"), f"{name}: output and exit code are as ever")
    tap.equal((len(place.told()), law8.differences(place.told())), (100, []), f"{name}: all sums are exact")


def scribbled(tap):
    """Any control words at all, at any time."""
    with law8.Place() as place:
        program = running(place)
        path = os.path.join(place.logs, place.files()[0])
        offset, _, size = law8.Log(path).regions[law8.CONTROL]
        with open(path, "r+b") as stream:
            words = mmap.mmap(stream.fileno(), 0)
            end = time.monotonic() + 1
            while time.monotonic() < end:
                words[offset:offset + 101 * 8] = random.randbytes(101 * 8)
            words[offset:offset + size] = random.randbytes(size)
        finished(tap, "garbage in the control words", place, program)


READER = """
import mmap, sys, time
stream = open(sys.argv[1], "rb")
data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
print("reading", flush=True)
while True:
    sum(data[:1 << 20])
"""


def hung_reader(tap):
    """A reader that has the log mapped and stops in the middle, then dies."""
    with law8.Place() as place:
        program = running(place)
        path = os.path.join(place.logs, place.files()[0])
        with subprocess.Popen([sys.executable, "-c", READER, path], stdout=subprocess.PIPE, text=True) as reader:
            reader.stdout.readline()
            time.sleep(0.05)
            reader.send_signal(signal.SIGSTOP)
            time.sleep(0.3)
            finished(tap, "a reader that hangs", place, program)
            reader.kill()


def main():
    law8.main(taps.Tap(), [a_thousand_threads, ends, constructors, names_of_programs, copies, rights, removed, closed,
                           scribbled, hung_reader])


if __name__ == "__main__":
    main()
