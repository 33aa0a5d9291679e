#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# configure.sh DIR [MESON-OPTION…]: sets a build folder up, or changes the named options of one that
# exists; does nothing when they already hold. Prints only what went wrong.
set -eu

dir=$1
shift
stamp=$dir/.configured

setup() {
    if ! output=$(meson setup "$@" 2>&1); then
        printf '%s\n' "$output" | tail -n 8 >&2
        exit 1
    fi
}

if [ ! -f "$dir/build.ninja" ]; then
    rm -rf "$dir"
    setup "$dir" "$@"
    printf '%s\n' "$@" >"$stamp"
    exit 0
fi

touch "$stamp"
changed=
for option in "$@"; do
    grep -qxF -e "$option" "$stamp" || changed="$changed $option"
done
[ -n "$changed" ] || exit 0
# shellcheck disable=SC2086 # one word an option
setup --reconfigure "$dir" $changed
for option in $changed; do
    grep -v -e "^${option%%=*}=" "$stamp" >"$stamp.new" || true
    printf '%s\n' "$option" >>"$stamp.new"
    mv "$stamp.new" "$stamp"
done
