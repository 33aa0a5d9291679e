#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples/echo: several clients at once, sizes, a server that is killed, and what is wrongly asked."""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import scope  # noqa: E402
import tap  # noqa: E402

ECHO = os.path.join(scope.BUILD, "examples", "echo", "echo")
LIMIT = 60


def ask(*arguments):
    return scope.run([ECHO, "ask", *map(str, arguments)], limit=LIMIT)


def answers(test, address):
    for count, size in ((1, 0), (10, 1), (1000, 64), (100, 70000), (3, 8 << 20)):
        result = ask(address, count, size)
        test.ok(result.code == 0 and f"{count} echoes of {size} bytes" in result.out.decode(), f"{count} of {size}",
                repr(result))
    together = [subprocess.Popen([ECHO, "ask", address, "300", "100"], stdout=subprocess.PIPE) for _ in range(8)]
    codes = [process.wait(LIMIT) for process in together]
    for process in together:
        process.stdout.close()
    test.equal(codes, [0] * 8, "eight clients at once")


def wrong(test, address):
    host = address.rsplit(":", 1)[0]
    for asked, said in ((host + ":77", "ConnectNotFound"), ("127.0.0.1:1:0", "ConnectNotFound"), ("nonsense", "ConnectFailed")):
        result = ask(asked)
        test.ok(result.code == 1 and said in result.errors and result.err.count(b"\n") == 1, f"{asked}: {said}", repr(result))
    for arguments in ([], ["ask"], ["ask", address, "x"], ["ask", address, "1", "-1"], ["serve", "a", "b", "c"], ["other"]):
        result = scope.run([ECHO, *arguments], limit=LIMIT)
        test.ok(result.code == 2, f"wrong: {' '.join(arguments)}", repr(result))


def main():
    test = tap.Tap()
    server = subprocess.Popen([ECHO, "serve"], stdout=subprocess.PIPE)
    address = server.stdout.readline().decode().strip()
    test.ok(address.startswith("127.0.0.1:") and address.endswith(":0"), "it says its address", address)
    test.attempt("answers", answers, test, address)
    test.attempt("wrong", wrong, test, address)
    client = subprocess.Popen([ECHO, "ask", address, "100000000"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    scope.wait_for(lambda: False, 0.3)
    server.send_signal(signal.SIGKILL)
    _, errors = client.communicate(timeout=LIMIT)
    test.ok(client.returncode == 1 and errors, "a server that is killed ends its client", errors)
    server.wait()
    server.stdout.close()
    test.ok(ask(address).code == 1, "nobody is there any more")
    test.done()


if __name__ == "__main__":
    main()
