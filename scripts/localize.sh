#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# localize.sh IN.a OUT.a: joins an archive's objects into one and makes its hidden symbols local, so
# that a program linked with the archive may use the same names for itself.
set -eu

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
ld -r --whole-archive "$1" -o "$work/joined.o"
objcopy --localize-hidden "$work/joined.o"
rm -f "$2"
ar rcsD "$2" "$work/joined.o"
