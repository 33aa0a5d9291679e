# SPDX-License-Identifier: BSD-3-Clause
"""Test Anything Protocol: one line a case, diagnostics behind a '#', the plan at the end."""
import sys
import traceback


class Tap:
    def __init__(self):
        self.count = 0
        self.failed = 0

    def ok(self, condition, name, *diagnostics):
        """One case. Diagnostics are printed where it failed."""
        self.count += 1
        name = name.replace("#", "\\#")
        print(f"{'ok' if condition else 'not ok'} {self.count} - {name}", flush=True)
        if not condition:
            self.failed += 1
            for text in diagnostics:
                self.note(text)
        return bool(condition)

    def equal(self, got, wanted, name, *diagnostics):
        return self.ok(got == wanted, name, f"got    {got!r}"[:2000], f"wanted {wanted!r}"[:2000], *diagnostics)

    def skip(self, name, reason):
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {reason}", flush=True)

    @staticmethod
    def note(text):
        for line in str(text).splitlines() or [""]:
            print("# " + line, flush=True)

    def attempt(self, name, function, *arguments):
        """Runs a function that makes cases of its own; what it raises is a failed case."""
        try:
            function(*arguments)
        except Exception:  # noqa: BLE001 - whatever it was, the others go on
            self.ok(False, name, traceback.format_exc())

    def done(self):
        print(f"1..{self.count}", flush=True)
        sys.exit(1 if self.failed else 0)
