#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# fresh.sh COMMAND…: runs each command in a clone of HEAD in a new minimal Debian 12 of its own (make,
# git and ca-certificates are all it has), to prove that it needs nothing else. Needs root and
# mmdebstrap; apt in there uses this system's sources. FRESH_DIR is where it works, default /var/tmp.
set -eu
cd "$(dirname "$0")/.."

[ "$(id -u)" -eq 0 ] || { echo "fresh: needs root" >&2; exit 2; }
[ $# -gt 0 ] || { echo "usage: fresh.sh COMMAND…" >&2; exit 2; }

work=$(mktemp -d "${FRESH_DIR:-/var/tmp}/ntscope-fresh.XXXXXX")
# Mounts live in a namespace of their own and are gone with it; nothing here crosses a file system.
trap 'rm -rf --one-file-system "$work"' EXIT

sources=$(find /etc/apt -name '*.sources' -o -name '*.list' | sort)
start=$(date +%s)
# shellcheck disable=SC2086 # a list of files
mmdebstrap --quiet --variant=minbase --include=make,git,ca-certificates bookworm "$work/base.tar" $sources
echo "fresh: base made in $(($(date +%s) - start)) s"

run() {
    root=$work/root
    mkdir "$root"
    tar -C "$root" -xf "$work/base.tar" --exclude='./dev/*'
    git clone --quiet --no-hardlinks . "$root/root/ntscope"
    # Quoted here, for the shell inside of the namespace.
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child sh -euc '
        root=$1 command=$2
        mount --make-rprivate /
        mount --bind "$root" "$root" # so that its / is a mount, as on any machine
        mount -t proc proc "$root/proc"
        mount --rbind --make-rslave /sys "$root/sys"
        mount --rbind --make-rslave /dev "$root/dev"
        mount -t tmpfs -o size=2g,mode=1777 shm "$root/dev/shm"
        exec chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb \
            LANG=C.UTF-8 ${http_proxy:+http_proxy="$http_proxy"} ${TEST_SCALE:+TEST_SCALE="$TEST_SCALE"} \
            sh -c "cd /root/ntscope && $command" </dev/null
    ' fresh "$root" "$1"
    status=$?
    rm -rf --one-file-system "$root"
    return $status
}

failed=0
for command in "$@"; do
    start=$(date +%s)
    echo "fresh: $command"
    status=0
    ( run "$command" ) || status=$?
    echo "fresh: $command: exit $status after $(($(date +%s) - start)) s"
    [ $status -eq 0 ] || failed=1
done
exit $failed
