#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Law 8, signals: handlers that log every 20 µs into small rings while readers poll, and handlers that jump out."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import law8_run as law8  # noqa: E402
import tap as taps  # noqa: E402

GOOD = ["process: good", "sums: good", "thread: good"]


def handlers_that_log(tap):
    """No torn record is accepted, what is announced never goes back, all sums are exact."""
    milliseconds = law8.scaled(20000, 500)
    for ring in (16384, 65536, 1 << 20):
        with law8.Place() as place:
            result = place.run([law8.helper("h_ring"), str(ring), str(milliseconds)], truth=False)
            tap.equal((result.code, result.out.splitlines()), (0, GOOD), f"rings of {ring} bytes, {milliseconds} ms",
                      result.err)
            tap.note(result.err)


def handlers_that_jump(tap):
    """Some rings may be given up; later events are still logged."""
    for jumps in (1, 8):
        with law8.Place() as place:
            def check(result):
                log = law8.Log(result.truth[0][0])
                slots = [slot for slot, _, name in log.objects() if name == "after"]
                newest = max((record[3] for number in range(log.rings) for record in log.records(number)
                              if record[1] == 1 and record[5] in slots), default=0)
                wrong = [] if newest == 100000 else [f"the newest event logged is number {newest}"]
                dropped = log.dropped_no_ring + sum(log.ring(number)["dropped"] for number in range(log.rings))
                return wrong if dropped < 20000 else wrong + [f"{dropped} dropped"]
            law8.same(tap, f"{jumps} jumps out of handlers", place, [law8.helper("h_law8"), "handler-jumps", str(jumps)],
                      check=check)


def main():
    law8.main(taps.Tap(), [handlers_that_log, handlers_that_jump])


if __name__ == "__main__":
    main()
