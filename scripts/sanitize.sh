#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# sanitize.sh [asan|asan-clang|tsan]…: builds each with its sanitizers in build-NAME and runs all tests
# there, at SANITIZE_SCALE (1/50) of their size. Default: all three.
set -eu
cd "$(dirname "$0")/.."

TEST_SCALE=${SANITIZE_SCALE:-1/50}
export TEST_SCALE
# A wrong read ends the test; programs under test are killed and fork, which leaks by design.
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1

run() {
    name=$1 compiler=$2 runner=$3
    shift 3
    echo "sanitize: $name"
    CC=$compiler scripts/configure.sh "build-$name" -Dtests=true -Dwerror=true "$@"
    # The build runs the tool, too.
    # shellcheck disable=SC2086 # words of a command
    $runner ninja -C "build-$name" --quiet
    # shellcheck disable=SC2086 # words of a command
    $runner meson test -C "build-$name" --no-rebuild --print-errorlogs -t 3
}

# The thread sanitizer of gcc 12 cannot work with every layout of the address space.
fixed_layout=
if setarch -R true 2>/dev/null; then
    fixed_layout='setarch -R'
fi

failed=0
[ $# -gt 0 ] || set -- asan asan-clang tsan
for name in "$@"; do
    case $name in
    asan) run asan gcc "" -Db_sanitize=address,undefined || failed=1 ;;
    asan-clang) run asan-clang clang "" -Db_sanitize=address,undefined -Db_lundef=false || failed=1 ;;
    tsan) run tsan gcc "$fixed_layout" -Db_sanitize=thread || failed=1 ;;
    *) echo "sanitize: no build called $name" >&2; exit 2 ;;
    esac
done
exit $failed
