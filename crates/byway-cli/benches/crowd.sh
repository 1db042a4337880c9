#!/usr/bin/env bash
# What a simulated world costs by its hosts: the experiment relays-scale, one size after the other, each in a process of its own.
#
#   crates/byway-cli/benches/crowd.sh [BYWAY] [SIZE...]
#
# A size is RELAYSxPAIRS; by default 100x10, 1000x10, 10000x10, 1000x100, 10000x100 and 10000x1000. Prints processor seconds and the most
# memory, and both for each relay and pair. The largest takes most of the time: run it alone with 10000x1000.
set -euo pipefail
byway=${1:-target/dist/byway}
shift || true
sizes=("$@")
[ ${#sizes[@]} -gt 0 ] || sizes=(100x10 1000x10 10000x10 1000x100 10000x100 10000x1000)
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
ticks=$(getconf CLK_TCK)

printf '%8s %6s %12s %9s %9s %16s %15s\n' relays pairs hops 'CPU s' MB 'CPU ms per host' 'kB per host'
for size in "${sizes[@]}"; do
    relays=${size%x*} pairs=${size#*x}
    nice -n "${NICE:-0}" "$byway" lab run relays-scale --full --jobs 1 --out "$results" \
        --sweep relays="$relays" --sweep pairs="$pairs" --sweep who=mpath >"$results/said" 2>&1 &
    run=$! cpu=0 peak=0
    # The last look is at most half a second before the end.
    while read -r _ _ _ _ _ _ _ _ _ _ _ _ _ user system _ 2>/dev/null <"/proc/$run/stat" && [ -n "$user" ]; do
        now=$(awk '/^VmHWM/ { print $2 }' "/proc/$run/status" 2>/dev/null || true)
        [ -n "$now" ] || break
        cpu=$((user + system)) peak=$now
        sleep 0.5
    done
    wait "$run" || true # Claims of one size alone say nothing.
    hops=$(grep -o '[0-9]* packet hops' "$results/said" | cut -d' ' -f1 || true)
    [ -n "$hops" ] || { cat "$results/said" >&2; exit 1; }
    awk -v relays="$relays" -v pairs="$pairs" -v hops="$hops" -v cpu="$cpu" -v ticks="$ticks" -v peak="$peak" 'BEGIN {
        hosts = relays + 2 * pairs
        printf "%8d %6d %12d %9.1f %9.0f %16.1f %15.0f\n", relays, pairs, hops, cpu / ticks, peak / 1000,
            cpu / ticks * 1000 / hosts, peak / hosts
    }'
done
