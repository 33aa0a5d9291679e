# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of law 8 share: a program is run without a log and with one, must say and return the same, and its log
must say what the program itself counted. Logs are read by their layout alone."""
import atexit
import contextlib
import ctypes
import fractions
import glob
import mmap
import os
import shutil
import struct
import subprocess
import sys
import tempfile

BUILD = os.environ.get("NTSCOPE_BUILD", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build"))
SANITIZED = os.environ.get("NTSCOPE_SANITIZE", "none") != "none"
RACES_COUNT = os.environ.get("NTSCOPE_SANITIZE") == "thread"
# Several copies of the library in one process are what is tested, not a mistake.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_odr_violation=0"
NOBODY = 65534
LIMIT = 120  # seconds for one program
PAGE = 4096
BITMAP, CONTROL, OBJECTS, BLOCKS, STRINGS, RINGS, RECORDS = 1, 4, 6, 7, 8, 9, 10
KINDS = {"write": 1, "read": 2}


def helper(name):
    return os.path.join(BUILD, "tests", name)


def helper_for_all(name):
    """A copy of a helper, and of the library, that other users can run wherever the build is."""
    place = tempfile.mkdtemp(prefix="ntscope-law8-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    os.chmod(place, 0o755)
    for path in [helper(name), *glob.glob(os.path.join(BUILD, "src", "log", "libnt-log.so*"))]:
        if os.path.isfile(path):
            shutil.copy(path, place)
            os.chmod(os.path.join(place, os.path.basename(path)), 0o755)
    os.environ["LD_LIBRARY_PATH"] = place + ":" + os.environ.get("LD_LIBRARY_PATH", "")
    return os.path.join(place, name)


def scaled(number, least=1):
    return max(least, int(number * fractions.Fraction(os.environ.get("TEST_SCALE", "1/10"))))


class Log:
    """A log file as it is now."""

    def __init__(self, path):
        with open(path, "rb") as stream:
            self.data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        self.magic, self.version = self.data[:7], self.data[7]
        self.count, self.flags = self.numbers("<II", 32)
        self.id, self.origin, self.pid, self.origin_pid, self.start_time = self.numbers("<QQIIQ", 40)
        self.opened, = self.numbers("<Q", 104)
        self.regions = {}
        for index in range(self.count):
            number, size, offset, length = self.numbers("<IIQQ", 160 + 32 * index)
            self.regions[number] = (offset, size, length)
        self.state, = self.numbers("<I", PAGE)
        self.backed, self.slots, self.rings = self.numbers("<QII", PAGE + 16)
        self.dropped_no_ring, self.refused_objects, self.refused_tallies, self.stale = self.numbers("<QQQQ", PAGE + 120)

    def numbers(self, form, offset):
        return struct.unpack_from(form, self.data, offset)

    def at(self, region, index):
        offset, size, _ = self.regions[region]
        return offset + size * index

    def is_backed(self, offset):
        page = offset // PAGE
        word, = self.numbers("<Q", self.at(BITMAP, page // 64))
        return word >> page % 64 & 1

    def objects(self):
        """(slot, generation, name) of all that are described."""
        found = []
        for slot in range(self.slots):
            entry = self.at(OBJECTS, slot)
            if not self.is_backed(entry):
                continue
            generation, = self.numbers("<I", entry + 192)
            name, size = self.numbers("<IH", entry + 216)
            start = self.at(STRINGS, name)
            if generation:
                found.append((slot, generation, self.data[start:start + size].decode("utf-8", "replace")))
        return found

    def tallies(self, slot):
        """kind: (count, total, max, last)"""
        entry, result = self.at(OBJECTS, slot), {}
        for index, kind in enumerate(self.numbers("<3B", entry + 4)):
            if kind:
                result[kind] = self.numbers("<QQQQ", entry + 32 + 32 * index)
        block, = self.numbers("<I", entry + 24)
        while block:
            start = self.at(BLOCKS, block)
            for index, kind in enumerate(self.numbers("<4B", start + 8)):
                if kind:
                    result[kind] = self.numbers("<QQQQ", start + 32 + 32 * index)
            block, = self.numbers("<I", start)
        return result

    def sums(self, name, kind):
        """All (count, total) of a kind on objects of that name."""
        return [self.tallies(slot).get(KINDS[kind], (0, 0))[:2] for slot, _, found in self.objects() if found == name]

    def ring(self, number):
        entry = self.at(RINGS, number)
        reserved, dropped = self.numbers("<QQ", entry)
        offset, size, chunk = self.numbers("<QQQ", entry + 64)
        state, owners = self.numbers("<II", entry + 96)
        return {"reserved": reserved, "dropped": dropped, "offset": offset, "size": size, "chunk": chunk,
                "state": state, "owners": owners}

    def records(self, number):
        """(time, kind, value, count, total, slot) of what a ring holds, of a program at rest."""
        ring, result = self.ring(number), []
        start = self.regions[RECORDS][0] + ring["offset"]
        for offset in range(start, start + ring["size"], 64):
            if self.is_backed(offset):
                time, commit, _, value, count, total, _, slot, _ = self.numbers("<QQQQQQQII", offset)
                if commit >> 16 and commit & 255 != 255:
                    result.append((time, commit & 255, value, count, total, slot & 0xfffffff))
        return result


class Result:
    def __init__(self, code, out, err, truth):
        self.code, self.out, self.err, self.truth = code, out, err, truth

    def note(self):
        return f"exit code {self.code}\n{self.out}\n{self.err[-2000:]}"


class Place:
    """A directory of its own for one case; logs lie in `logs` below."""

    def __init__(self, root="/dev/shm", logs=None):
        self.root = tempfile.mkdtemp(prefix="ntscope-law8-%d-" % os.getpid(), dir=root)
        os.chmod(self.root, 0o755)
        self.logs = logs or os.path.join(self.root, "logs")
        self.truth = os.path.join(self.root, "truth")
        self.fill = os.path.join(self.root, "fill")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root, ignore_errors=True)

    def environment(self, on, truth=True):
        environment = dict(os.environ, NTSCOPE_DIR=self.logs, LAW8_FILL=self.fill, NTSCOPE="on" if on else "off")
        if truth:
            environment["LAW8_TRUTH"] = self.truth
        return environment

    def clear(self):
        for path in glob.glob(self.fill + "*") + [self.truth]:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def run(self, command, on=True, truth=True, **options):
        self.clear()
        environment = dict(self.environment(on, truth), **options.pop("more", {}))
        if truth:
            with open(self.truth, "w", encoding="utf-8"):
                os.chmod(self.truth, 0o666)
        result = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, timeout=LIMIT, check=False, **options)
        return Result(result.returncode, result.stdout, result.stderr, self.told())

    def told(self):
        """(path, object, kind, count, total) as the program counted."""
        lines = []
        with contextlib.suppress(FileNotFoundError), open(self.truth, encoding="utf-8") as stream:
            for line in stream:
                path, name, kind, count, total = line.rstrip("\n").split("\t")
                lines.append((path, name, kind, int(count), int(total)))
        return lines

    def files(self):
        with contextlib.suppress(FileNotFoundError, PermissionError, NotADirectoryError):
            return sorted(os.listdir(self.logs))
        return []


def differences(truth):
    """What logs say otherwise than the programs that wrote them."""
    wrong, logs = [], {}
    for path, name, kind, count, total in truth:
        if not path:
            continue
        if path not in logs:
            logs[path] = Log(path)
        sums = logs[path].sums(name, kind)
        if sums != [(count, total)]:
            wrong.append(f"{name} {kind}: logged {sums}, counted {(count, total)}")
    return wrong


def same(tap, name, place, command, traced=True, check=None, **options):
    """The heart of law 8. traced: there must be a log (True), must not be (False), or may be (None)."""
    without = place.run(command, on=False, **options)
    if place.files():
        tap.ok(False, name, f"files without a log: {place.files()}")
        return None
    result = place.run(command, **options)
    wrong = [] if (result.code, result.out) == (without.code, without.out) else ["not as without a log"]
    if without.code < 0 or without.code > 90:
        wrong.append("the test itself went wrong")
    wrong += differences(result.truth)
    paths = {line[0] for line in result.truth if line[0]}
    if traced is not None and bool(paths) != traced and options.get("truth", True):
        wrong.append("a log was made" if paths else "no log was made")
    wrong += check(result) or [] if check and not wrong else []
    tap.ok(not wrong, name, *wrong, "without: " + without.note(), "with: " + result.note())
    return result


def private_mounts():
    """Mounts made from here on are seen by this process and its children alone, and go with them."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x20000) != 0:  # CLONE_NEWNS
        return False
    return subprocess.run(["mount", "--make-rprivate", "/"], check=False).returncode == 0


def as_nobody():
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def is_root():
    return os.geteuid() == 0


def leftovers():
    """Children of this process that still run."""
    found = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True,
                           check=False)
    return [line for line in found.stdout.splitlines() if " ps -o " not in line and "<defunct>" not in line]


def main(tap, cases):
    """Runs all cases, or those named on the command line."""
    for case in cases:
        if len(sys.argv) < 2 or case.__name__ in sys.argv[1:]:
            tap.attempt(case.__name__.replace("_", " "), case, tap)
    tap.equal(leftovers(), [], "no process is left behind")
    tap.equal(glob.glob("/dev/shm/ntscope-law8-%d-*" % os.getpid()), [], "no file is left behind")
    tap.done()
