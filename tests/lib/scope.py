# SPDX-License-Identifier: BSD-3-Clause
"""What the end-to-end tests stand on: the build, private directories, programs with a time limit.

Everything that is started gets a session of its own and is ended by that session's id.
"""
import contextlib
import fractions
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

BUILD = os.path.abspath(os.environ.get("NTSCOPE_BUILD") or
                        os.path.join(os.path.dirname(__file__), "..", "..", "build"))
SANITIZED = os.environ.get("NTSCOPE_SANITIZE", "none") != "none"


def scaled(full, least=1):
    """That many at TEST_SCALE 1; TEST_SCALE is a decimal or a fraction."""
    scale = fractions.Fraction(os.environ.get("TEST_SCALE") or "1")
    return max(least, round(full * scale))


def base_seed(given=None):
    """A seed for the whole test: given, TEST_SEED, or a new one."""
    if given is not None:
        return given
    text = os.environ.get("TEST_SEED")
    return int(text) if text else int.from_bytes(os.urandom(4), "little")


def built(*parts):
    return os.environ.get("TEST_" + parts[-1].upper()) or os.path.join(BUILD, *parts)


NTSCOPE = built("ntscope")
RELAY = built("examples", "relay", "relay")
EVENTS_CHECK = built("tests", "events_check")
SESSIONS_CHECK = built("tests", "sessions_check")
BARE_COUNT = built("tests", "bare_count")
BARE_CHECK = built("tests", "bare_check")
KILL_COUNTER = built("tests", "kill_counter")
SESSION_COUNTER = built("tests", "session_counter")
NAMED_OBJECTS = built("tests", "named_objects")
TWO_ENDS = built("tests", "two_ends")
COUNTER = built("tests", "counter")
MADE_RECORDING = built("tests", "made_recording")


def leave(number, _frame):
    """Ended from outside, a test still ends what it started and removes what it made."""
    raise SystemExit(128 + number)


signal.signal(signal.SIGTERM, leave)


@contextlib.contextmanager
def workspace():
    """A private directory in memory, or under TMPDIR; gone at the end."""
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    path = tempfile.mkdtemp(prefix="ntscope-test-", dir=parent)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def environment(logs=None, **changes):
    """The caller's, without what would lead a test elsewhere."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("NTSCOPE")}
    # A leak checker stops its process at exit with a helper that tests may meet; leaks are checked elsewhere.
    env["ASAN_OPTIONS"] = "detect_leaks=0:" + env.get("ASAN_OPTIONS", "")
    if logs is not None:
        env["NTSCOPE_DIR"] = logs
    env.update({key: value for key, value in changes.items() if value is not None})
    return env


class Result:
    def __init__(self, code, out, err, timed_out):
        self.code, self.out, self.err, self.timed_out = code, out, err, timed_out

    @property
    def text(self):
        return self.out.decode("utf-8", "replace")

    @property
    def errors(self):
        return self.err.decode("utf-8", "replace")

    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return f"exit {self.code}{' (time is over)' if self.timed_out else ''}, stdout {self.out[:300]!r}, " \
               f"stderr {self.err[:1500]!r}"


class Program:
    """A started program. finish() gives its result; leaving a with block ends what still runs."""

    def __init__(self, command, env=None, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, preexec=None, cwd=None):
        self.process = subprocess.Popen(command, env=env if env is not None else environment(), stdin=stdin,
                                        stdout=stdout, stderr=subprocess.PIPE, start_new_session=True,
                                        preexec_fn=preexec, cwd=cwd)

    @property
    def pid(self):
        return self.process.pid

    def end(self, number=signal.SIGKILL):
        """Ends it and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def finish(self, limit=30, data=None):
        try:
            out, err = self.process.communicate(data, timeout=limit)
            return Result(self.process.returncode, out or b"", err or b"", False)
        except subprocess.TimeoutExpired:
            self.end()
            out, err = self.process.communicate()
            return Result(self.process.returncode, out or b"", err or b"", True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.end()
            with contextlib.suppress(Exception):
                self.process.communicate(timeout=10)


def run(command, env=None, limit=30, data=None, **options):
    if data is not None:
        options["stdin"] = subprocess.PIPE
    with Program(command, env, **options) as program:
        return program.finish(limit, data)


def ntscope(*arguments, logs=None, limit=30, env=None, **options):
    return run([NTSCOPE, *arguments], env or environment(logs), limit, **options)


def wait_for(condition, limit=10):
    """Whether the condition came true in time."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.002)
    return True
