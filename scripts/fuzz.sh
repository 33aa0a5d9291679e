#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# fuzz.sh SECONDS [TARGET…]: builds build-fuzz with clang and runs each target for SECONDS, starting
# from fuzz/corpus/TARGET and keeping what it finds in build-fuzz/corpus/TARGET. Fails on a finding;
# the input that shows it stays in build-fuzz/findings.
set -eu
cd "$(dirname "$0")/.."

seconds=${1:-60}
[ $# -gt 0 ] && shift

CC=clang scripts/configure.sh build-fuzz -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false
ninja -C build-fuzz

[ $# -gt 0 ] || set -- $(cd build-fuzz/fuzz && find . -maxdepth 1 -name '*_fuzz' -type f |
    sed 's,^\./,,; s,_fuzz$,,' | sort)
if [ $# -eq 0 ]; then
    echo "fuzz: no target" >&2
    exit 1
fi

export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
failed=0
for target in "$@"; do
    corpus=build-fuzz/corpus/$target
    findings=build-fuzz/findings/$target-
    mkdir -p "$corpus" build-fuzz/findings "fuzz/corpus/$target"
    echo "fuzz: $target for $seconds s"
    log=build-fuzz/$target.log
    if build-fuzz/fuzz/"${target}_fuzz" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
        -artifact_prefix="$findings" -print_final_stats=1 \
        "$corpus" "fuzz/corpus/$target" >"$log" 2>&1; then
        sed -n 's/^stat::number_of_executed_units: */fuzz: executions: /p' "$log"
    else
        failed=1
        tail -n 40 "$log" >&2
        echo "fuzz: $target failed; input under build-fuzz/findings, log in $log" >&2
    fi
done
exit $failed
