# SPDX-License-Identifier: BSD-3-Clause
"""Processes of a relay under test: which there are, stopping and killing them, and never anybody else's."""
import contextlib
import os
import signal
import time


def of_truth(truth):
    """Pids by the names of truth files."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(truth):
            parts = name.split(".")
            if len(parts) == 3 and parts[2] == "truth":
                found.append(int(parts[1]))
    return sorted(found)


def state(pid):
    """The state's letter, or nothing."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            return stream.read().rpartition(b")")[2].split()[0].decode()
    except (ProcessLookupError, FileNotFoundError):
        return ""


def kill(pid, session, number=signal.SIGKILL):
    """Signals a process of that session, and no other; whether it lived."""
    try:
        if os.getsid(pid) != session or state(pid) in ("", "Z"):
            return False
        os.kill(pid, number)
        return True
    except (ProcessLookupError, FileNotFoundError):
        return False


def choose(chance, pids):
    """One process, several, or all at once."""
    count = chance.choice((1, 1, 1, 2, len(pids)))
    return chance.sample(pids, min(count, len(pids)))


def members(session):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(ProcessLookupError):
                if os.getsid(int(name)) == session:
                    found.append(int(name))
    return found


def threads_rest(pid):
    """Whether each thread of a process is stopped, or over."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            if state(f"{pid}/task/{thread}") not in ("", "T", "Z", "X"):
                return False
    return True


def stop(session, limit=10):
    """Stops all processes of a session and waits until they rest. False: it is over."""
    try:
        os.killpg(session, signal.SIGSTOP)
    except ProcessLookupError:
        return False
    end = time.monotonic() + limit
    while not all(threads_rest(pid) for pid in members(session)):
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


def resume(session):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(session, signal.SIGCONT)
