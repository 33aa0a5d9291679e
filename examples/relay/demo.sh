#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# demo.sh [BUILD]: runs the relay for a few seconds and looks at it with ntscope, while it runs and after one of
# its processes was killed; and at what a recorder kept that was killed, too. BUILD: the build folder, by default $NTSCOPE_BUILD, else build.
set -eu

build=${1:-${NTSCOPE_BUILD:-build}}
ntscope=$build/ntscope
relay=$build/examples/relay/relay
for program in "$ntscope" "$relay"; do
    [ -x "$program" ] || { echo "demo: no $program; run make first" >&2; exit 1; }
done

# Logs of a place of their own: nothing of the user's is shown, or in the way. The next demo empties it.
base=/dev/shm
[ -w $base ] || base=${TMPDIR:-/tmp}
NTSCOPE_DIR=$base/ntscope-demo-$(id -u)
export NTSCOPE_DIR
unset NTSCOPE
mkdir -m 700 "$NTSCOPE_DIR" 2>/dev/null || true
if [ -L "$NTSCOPE_DIR" ] || [ ! -d "$NTSCOPE_DIR" ] || [ ! -O "$NTSCOPE_DIR" ]; then
    NTSCOPE_DIR=$(mktemp -d "$base/ntscope-demo-XXXXXX")
fi
"$ntscope" clean >/dev/null 2>&1 || true

output=$(mktemp)
recording=$NTSCOPE_DIR/relay.ntrec
rm -f "$recording"
relay_pid='' recorder=''
# The relay's other processes end by themselves.
trap 'rm -f "$output"; for pid in $relay_pid $recorder; do kill "$pid" 2>/dev/null || true; done' EXIT
trap 'exit 130' INT TERM HUP

say() {
    printf '\n== %s\n' "$*"
}

show() {
    printf '\n$ ntscope'
    for word in "$@"; do
        case $word in
        *\'*) printf ' "%s"' "$word" ;;
        *[*\ ]*) printf " '%s'" "$word" ;;
        *) printf ' %s' "$word" ;;
        esac
    done
    printf '\n'
    "$ntscope" "$@"
}

pid_of() {
    "$ntscope" ps | awk -v name="$1" '$1 == name && $3 == "running" { print $2 }'
}

number='*/worker-1/**/orders/read/total'

say "A relay: source -> router -> 3 workers -> sink, six processes, 400 requests a second"
"$relay" --requests=0 --seconds=8 --rate=400 --workers=3 --churn=50 >"$output" 2>/dev/null &
relay_pid=$!
sleep 2
"$ntscope" record -o "$recording" &
recorder=$!

say "While it runs: which programs log, what one of them did, and one number of that"
show ps
show stat worker-1
show stat "$number"

say "What one request did, from process to process: its session and its parts', which have the same upper digits"
request=$("$ntscope" events --json --since -200ms --where "kind = 'disk-write'" |
    sed -n '1s/.*"session":"\(....\).*/\1/p')
show events --where "session GLOB '$request*'"

say "All that is known of one request: what it did in each program and on each channel; and its parts below it"
show session "request 100"
show session --tree "request 10[0-2]"

say "What worker-2 logs is changed while it runs, and changed back: nothing is lost, its totals go on"
show mask '*/worker-2/**/orders' -read
sleep 0.2
show mask '*/worker-2/**/orders' +read
sleep 0.02
show events --since -150ms --where "kind IN ('read', 'mask')" '*/worker-2/**/orders'

victim=$(pid_of worker-1)
say "worker-1, process $victim, is killed: kill -9"
kill -9 "$victim"
sleep 0.5
show ps
say "What it counted is all there, up to the last message"
show stat worker-1
show stat "$number"

say "All along a recorder kept what happened. It is killed as well; its file has all but the last second"
of_victim='*/worker-1/**/orders/read'
last_total() {
    "$ntscope" events "$recording" "$of_victim" 2>/dev/null | sed -n '$s/.* total \([0-9]*\).*/\1/p'
}
counted=$("$ntscope" stat "$number")
tries=50
until [ "$(last_total)" = "$counted" ] || [ $tries -eq 0 ]; do
    sleep 0.1
    tries=$((tries - 1))
done
kill -9 "$recorder" 2>/dev/null || true
wait "$recorder" 2>/dev/null || true
recorder=
# Exit code 3: it has no end, which is said each time.
show info "$recording" || true
show events "$recording" "$of_victim" | tail -n 3
recorded=$("$ntscope" stat "$recording" "$number" 2>/dev/null) || true
echo "worker-1 read $recorded bytes, says the recording; the last event says $(last_total), its log says $counted."
[ "$recorded" = "$counted" ] && [ "$(last_total)" = "$counted" ] || { echo "demo: they differ" >&2; exit 1; }

say "The others go on until the relay ends"
# It does not exit 0: results of the killed worker are missing.
wait "$relay_pid" || true
relay_pid=
said=$("$ntscope" stat '*/worker-2/**/orders/read/total')
counted=$(sed -n 's|.*"process":"worker-2",.*"tcp/inbox/orders":{"write":{[^}]*},"read":{"count":[0-9]*,"total":\([0-9]*\).*|\1|p' "$output")
echo "worker-2 read $said bytes, says ntscope; $counted, says worker-2."
[ "$said" = "$counted" ] || { echo "demo: they differ" >&2; exit 1; }

short=${build#"$PWD"/}
cat <<END

What to try next (the logs stay until you remove them):
  export NTSCOPE_DIR=$NTSCOPE_DIR
  $short/ntscope stat            # everything that the six processes counted
  $short/ntscope stat --json     # the same as one JSON tree
  $short/ntscope session --tree | less   # all requests, the largest first, with their parts
  $short/ntscope stat -- $short/examples/relay/relay >/dev/null     # run a program, then show what it did
  $short/ntscope top \$NTSCOPE_DIR/relay.ntrec     # what the recorder kept, as any log is looked at
  $short/ntscope clean           # remove the logs of programs that have ended
END
