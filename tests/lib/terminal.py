# SPDX-License-Identifier: BSD-3-Clause
"""A program in a terminal of its own: what is on its screen, keys, its size, and how it leaves the terminal behind. As much
of an xterm as programs use that draw by terminfo; anything else is an error."""
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

SEQUENCE = re.compile(rb"\x1b\[([?>]?)([0-9;]*)([@A-Za-z])|\x1b[()][0AB]|\x1b([=>78M])|\x1b\][^\x07]*\x07")
KEYS = {"up": b"\x1bOA", "down": b"\x1bOB", "page up": b"\x1b[5~", "page down": b"\x1b[6~", "home": b"\x1bOH",
        "end": b"\x1bOF", "enter": b"\r", "escape": b"\x1b", "backspace": b"\x7f"}


class Screen:
    def __init__(self, rows, columns):
        self.cleared = 0
        self.resize(rows, columns)
        self.modes = set()
        self.rest = b""

    def resize(self, rows, columns):
        self.rows, self.columns, self.row, self.column = rows, columns, 0, 0
        self.top, self.bottom = 0, rows - 1
        self.cells = [[" "] * columns for _ in range(rows)]

    @property
    def lines(self):
        return ["".join(line).rstrip() for line in self.cells]

    def blank(self, row, start, end):
        for column in range(start, min(end, self.columns)):
            self.cells[row][column] = " "

    def scroll(self, at, count, down):
        for _ in range(min(count, self.bottom - at + 1)):
            del self.cells[self.bottom if down else at]
            self.cells.insert(at if down else self.bottom, [" "] * self.columns)

    def put(self, character):
        if self.column >= self.columns:
            self.column, self.row = 0, self.row + 1
        self.cells[min(self.row, self.rows - 1)][self.column] = character
        self.last = character
        self.column += 1

    def control(self, byte):
        if byte == 10:
            if self.row == self.bottom:
                self.scroll(self.top, 1, False)
            else:
                self.row += 1
        elif byte == 13:
            self.column = 0
        elif byte == 8:
            self.column = max(0, self.column - 1)
        elif byte == 9:
            self.column = min(self.columns - 1, self.column // 8 * 8 + 8)

    def erase(self, final, number):
        if final == "K":
            self.blank(self.row, 0 if number else self.column, self.columns if number != 1 else self.column + 1)
            return
        self.cleared += number == 2 or (self.row, self.column) == (0, 0)
        self.blank(self.row, 0 if number == 2 else self.column, self.columns)
        for row in range(0 if number == 2 else self.row + 1, self.rows):
            self.blank(row, 0, self.columns)

    def sequence(self, private, numbers, final):
        first = numbers[0] if numbers else 0
        count = max(1, first)
        if final in "hl":
            (self.modes.add if final == "h" else self.modes.discard)((private, first))
        elif final == "H":
            self.row, self.column = count - 1, max(1, numbers[1] if len(numbers) > 1 else 1) - 1
        elif final in "dG":
            self.row, self.column = (count - 1, self.column) if final == "d" else (self.row, count - 1)
        elif final in "ABCD":
            self.row += {"A": -count, "B": count}.get(final, 0)
            self.column += {"C": count, "D": -count}.get(final, 0)
        elif final in "JK":
            self.erase(final, first)
        elif final == "X":
            self.blank(self.row, self.column, self.column + count)
        elif final == "b":
            for _ in range(count):
                self.put(self.last)
        elif final in "@P":
            line = self.cells[self.row]
            for _ in range(count):
                line.insert(self.column, " ") if final == "@" else line.pop(self.column)
                line.pop() if final == "@" else line.append(" ")
        elif final in "LM":
            self.scroll(self.row, count, final == "L")
        elif final in "ST":
            self.scroll(self.top, count, final == "T")
        elif final == "r":
            self.top, self.bottom = (numbers[0] - 1, numbers[1] - 1) if len(numbers) > 1 else (0, self.rows - 1)
            self.row = self.column = 0
        elif final not in "mt":
            raise ValueError(f"sequence {private}{numbers}{final}")

    def feed(self, data):
        data, at = self.rest + data, 0
        self.rest = b""
        while at < len(data):
            if data[at] == 27:
                match = SEQUENCE.match(data, at)
                if not match and len(data) - at < 32:
                    self.rest = data[at:]
                    return
                if not match:
                    raise ValueError(f"sequence {data[at:at + 16]!r}")
                if match[3]:
                    self.sequence(match[1].decode(), [int(one or 0) for one in match[2].split(b";") if match[2]], match[3].decode())
                elif match[4] == b"M":
                    self.scroll(self.top, 1, True) if self.row == self.top else None
                    self.row -= self.row > self.top
                at = match.end()
            elif data[at] < 32:
                self.control(data[at])
                at += 1
            else:
                size = 1 if data[at] < 0x80 else 2 if data[at] < 0xe0 else 3 if data[at] < 0xf0 else 4
                if len(data) - at < size:
                    self.rest = data[at:]
                    return
                self.put(data[at:at + size].decode("utf-8", "replace"))
                at += size


class Terminal:
    def __init__(self, command, env, rows=24, columns=80, kind="xterm"):
        self.master, self.slave = pty.openpty()
        self.screen = Screen(rows, columns)
        self.size(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.bytes = b""
        env = {**env, "TERM": kind, "LC_ALL": "C.UTF-8"}
        self.process = subprocess.Popen(command, env=env, stdin=self.slave, stdout=self.slave, stderr=self.slave,
                                        start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def size(self, rows, columns):
        if (rows, columns) != (self.screen.rows, self.screen.columns):
            self.screen.resize(rows, columns)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        end = time.monotonic() + seconds
        while select.select([self.master], [], [], max(0, end - time.monotonic()))[0]:
            data = os.read(self.master, 65536)
            self.bytes += data
            self.screen.feed(data)
            if time.monotonic() > end:
                break

    def press(self, *keys):
        for key in keys:
            os.write(self.master, KEYS.get(key, key.encode()))

    def wait_for(self, condition, limit=10):
        """Whether the lines of the screen came to fulfil the condition."""
        end = time.monotonic() + limit
        while not condition(self.screen.lines):
            if time.monotonic() > end or (self.process.poll() is not None and not select.select([self.master], [], [], 0)[0]):
                return condition(self.screen.lines)
            self.read(0.02)
        return True

    def finish(self, limit=10):
        """Its exit code; None: it did not end."""
        end = time.monotonic() + limit
        while self.process.poll() is None and time.monotonic() < end:
            self.read(0.02)
        self.read(0.05)  # all that it left, in however many pieces
        return self.process.poll()

    @property
    def restored(self):
        """Whether the terminal is as it was: its modes, the cursor, the screen that was there before."""
        return termios.tcgetattr(self.slave) == self.before and ("?", 1049) not in self.screen.modes and \
            (b"\x1b[?25l" not in self.bytes or self.bytes.rfind(b"\x1b[?25h") > self.bytes.rfind(b"\x1b[?25l"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)
        os.close(self.master)
        os.close(self.slave)
