#!/usr/bin/env bash
# Processor seconds a day, and memory, of a recv, a forward and a relay with nothing to do:
#
#     crates/byway-cli/benches/standing.sh BYWAY [SECONDS] [LISTEN]
#
# They run on this host, each with folders of its own. The forward has a session with the recv, by each kind of address that the
# host has. LISTEN is for recv: with 127.0.0.1:0 there is one path. What is counted is the time of all threads in SECONDS (240),
# from 20 seconds after the start on. On an idle machine it is more than beside other work, since each wake finds cold caches.
set -euo pipefail
byway=$(realpath "$1") seconds=${2:-240} listen=${3:-}
scratch=$(mktemp -d)
started=()
finish() {
    ((${#started[@]} == 0)) || kill "${started[@]}" 2>/dev/null || true
    wait
    rm -rf "$scratch"
}
trap finish EXIT
cd "$scratch"
export HOME=$scratch XDG_RUNTIME_DIR=$scratch/run
mkdir -m 700 run

start() { # NAME ARGUMENT…
    XDG_STATE_HOME=$scratch/$1 "$byway" "${@:2}" >"$1.out" 2>&1 &
    started+=($!)
}
# Nanoseconds on a processor, of all threads of a process.
spent() { cat "/proc/$1"/task/*/schedstat | awk '{ sum += $1 } END { print sum }'; }

start recv recv in --json --allow-forward localhost:9 ${listen:+--listen "$listen"}
until ticket=$(grep -om1 'byway[0-9]-[a-z0-9]*' recv.out); do sleep 0.1; done
start forward forward 127.0.0.1:0:localhost:9 --to "$ticket"
start relay relay --allow-destination 127.0.0.0/8
sleep 20
before=()
for process in "${started[@]}"; do before+=("$(spent "$process")"); done
sleep "$seconds"
names=(recv forward relay)
for at in "${!names[@]}"; do
    process=${started[at]}
    awk -v name="${names[at]}" -v from="${before[at]}" -v to="$(spent "$process")" \
        -v seconds="$seconds" -v kib="$(awk '/VmRSS/ { print $2 }' "/proc/$process/status")" \
        'BEGIN { printf "%-8s %5.2f s a day, %4.1f MiB\n", name, (to - from) / 1e9 * 86400 / seconds, kib / 1024 }'
done
