#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Law 8, room and rights: full file systems, limits on files and locked memory, directories that will not do."""
import os
import resource
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import law8_run as law8  # noqa: E402
import tap as taps  # noqa: E402

H_LAW8 = law8.helper_for_all("h_law8")
TMPFS_KIB = [4, 8, 40, 100, 128, 160, 256, 512, 1000, 1500, 2000, 3000, 4000, 6000, 9000, 14000]


def small_file_systems(tap):
    """From none at all to all that is asked for; the program itself takes what is left."""
    if not law8.private_mounts():
        tap.skip("small file systems", "no mounts without root")
        return
    traced = 0
    for size in TMPFS_KIB:
        with law8.Place() as place:
            small = os.path.join(place.root, "small")
            os.mkdir(small)
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k,mode=0700", "none", small], check=True)
            try:
                place.logs = os.path.join(small, "logs")
                place.fill = os.path.join(small, "fill")
                result = law8.same(tap, f"file system of {size} KiB", place, [H_LAW8, "full"], traced=None)
                traced += bool(result and any(line[0] for line in result.truth))
            finally:
                subprocess.run(["umount", "-l", small], check=True)
    tap.ok(traced >= 8, "most of them had room for a log", f"{traced} of {len(TMPFS_KIB)}")


def limit(which, value):
    return lambda: resource.setrlimit(which, (value, value))


def file_size_limits(tap):
    for value, traced in [(0, False), (1, False), (4096, False), (100000, False), (3 << 20, True), (50 << 20, True)]:
        if law8.SANITIZED and value < 100000:
            continue  # sanitizers write files themselves
        with law8.Place() as place:
            law8.same(tap, f"files of at most {value} bytes", place, [H_LAW8, "plain"], traced=traced,
                      truth=value > 100, preexec_fn=limit(resource.RLIMIT_FSIZE, value))
            if not traced:
                tap.equal(place.files(), [], f"files of at most {value} bytes: none is left")


def locked_memory(tap):
    if law8.SANITIZED:
        tap.skip("locked memory", "sanitizers map too much to lock it")
        return
    for when in "01":
        with law8.Place() as place:
            law8.same(tap, f"all memory locked, {'after' if when == '1' else 'before'} opening", place,
                      [H_LAW8, "locked", when], traced=True if law8.is_root() else None)


def locked_memory_limits(tap):
    if law8.SANITIZED or not law8.is_root():
        tap.skip("limits on locked memory", "sanitizers map too much" if law8.SANITIZED else "root is not limited")
        return
    hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    for value in sorted({v for v in [0, 65536, 1 << 20, 3 << 20, 6 << 20, hard] if hard < 0 or v <= hard}):
        # locking all of what is mapped takes the log's address space too: small limits refuse that, and the design says so
        for when in "01" if value >= 6 << 20 else "0":
            with law8.Place() as place:
                os.mkdir(place.logs, 0o700)
                os.chown(place.logs, law8.NOBODY, law8.NOBODY)

                def prepare(value=value):
                    resource.setrlimit(resource.RLIMIT_MEMLOCK, (value, value))
                    law8.as_nobody()
                law8.same(tap, f"locked memory of at most {value} bytes, {'after' if when == '1' else 'before'} opening",
                          place, [H_LAW8, "locked", when], traced=None, preexec_fn=prepare)


def refused(tap, name, prepare, nobody=False, **options):
    """A directory that prepare(place) makes unfit."""
    with law8.Place() as place:
        prepare(place)
        before = place.files()
        law8.same(tap, "directory " + name, place, [H_LAW8, "plain"], traced=False,
                  preexec_fn=law8.as_nobody if nobody else None, **options)
        tap.equal(place.files(), before, f"directory {name}: nothing in it")


def directories(tap):
    def made(mode):
        def make(place):
            os.mkdir(place.logs)
            os.chmod(place.logs, mode)
        return make

    def linked(place):
        os.mkdir(place.root + "/real", 0o700)
        os.symlink(place.root + "/real", place.logs)

    def is_file(place):
        with open(place.logs, "w", encoding="utf-8"):
            pass

    def missing(place):
        place.logs = place.root + "/no/such/parent"

    def too_long(place):
        place.logs = place.root + "/x" * 300

    refused(tap, "open to all", made(0o777))
    refused(tap, "open to the group", made(0o770))
    refused(tap, "open to all, sticky", made(0o1777))
    refused(tap, "that is a link", linked)
    refused(tap, "that is a file", is_file)
    refused(tap, "without a parent", missing)
    refused(tap, "with a long name", too_long)
    if not law8.is_root():
        tap.skip("directories of others", "only root can make them")
        return
    refused(tap, "of another, closed", made(0o700), nobody=True)
    refused(tap, "of another, open to read", made(0o755), nobody=True)
    refused(tap, "of another, open to all", made(0o777), nobody=True)
    refused(tap, "that may not be made", lambda place: None, nobody=True)

    def of_nobody(place):
        os.mkdir(place.logs, 0o700)
        os.chown(place.logs, law8.NOBODY, law8.NOBODY)
    refused(tap, "of another, for root", of_nobody)


def unwritable(tap):
    """A directory of one's own that may not be written, on a file system that may not either."""
    if not law8.private_mounts():
        tap.skip("read-only file system", "no mounts without root")
        return
    with law8.Place() as place:
        os.mkdir(place.logs, 0o700)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,mode=0700", "none", place.logs], check=True)
        try:
            law8.same(tap, "read-only file system", place, [H_LAW8, "plain"], traced=False)
        finally:
            subprocess.run(["umount", "-l", place.logs], check=True)
    with law8.Place() as place:
        os.mkdir(place.logs)
        os.chown(place.logs, law8.NOBODY, law8.NOBODY)
        os.chmod(place.logs, 0o500)
        law8.same(tap, "directory of one's own without the right to write", place, [H_LAW8, "plain"], traced=False,
                  preexec_fn=law8.as_nobody)


def main():
    law8.main(taps.Tap(), [small_file_systems, file_size_limits, locked_memory, locked_memory_limits, directories,
                           unwritable])


if __name__ == "__main__":
    main()
