#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Installs the Debian packages of the named sets (scripts/packages.txt) that are not there yet.
# Silent and without network when nothing is missing. `--print` only lists what is missing; with `--try`
# a package that cannot be had is said, and no failure.
set -eu

table=$(dirname "$0")/packages.txt

# Prints the packages of a set, those of the sets that it includes first.
packages_of() {
    words=$(sed -n "s/^$1[[:space:]]\{1,\}//p" "$table")
    [ -n "$words" ] || { echo "bootstrap: no package set '$1' in $table" >&2; return 1; }
    for word in $words; do
        case $word in
        \[*\])
            word=${word#\[}
            ( packages_of "${word%\]}" )
            ;;
        *) echo "$word" ;;
        esac
    done
}

is_installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

is_known() {
    case "$(apt-cache policy "$1" 2>/dev/null)" in
    *'Candidate: (none)'* | '') return 1 ;;
    esac
}

print_only=
failure=1
case ${1-} in
--print) print_only=1; shift ;;
--try) failure=0; shift ;;
esac
[ $# -gt 0 ] || set -- build

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "bootstrap: not a Debian system; install what $table lists by hand, then set NTSCOPE_BOOTSTRAP=no" >&2
    exit 1
fi

wanted=
for set_name in "$@"; do
    wanted="$wanted $(packages_of "$set_name")"
done

missing=
for package in $(printf '%s\n' $wanted | sort -u); do
    is_installed "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ -n "$print_only" ]; then
    printf '%s\n' $missing
    exit 0
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "bootstrap: run as root, or install sudo, to get the packages:$missing" >&2
        exit $failure
    fi
    as_root="sudo"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT

run_apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" </dev/null >>"$log" 2>&1
}

install_missing() {
    run_apt install --no-install-recommends $missing
}

echo "bootstrap: installing$missing" >&2
for package in $missing; do
    if ! is_known "$package"; then
        run_apt update || true
        break
    fi
done
# Known to apt and still refused: the list may be older than the archive; once more with a new one.
if ! install_missing && ! { run_apt update && install_missing; }; then
    reason=$(grep -m1 '^E: ' "$log" || tail -n 1 "$log")
    echo "bootstrap: cannot install$missing: $reason" >&2
    exit $failure
fi
