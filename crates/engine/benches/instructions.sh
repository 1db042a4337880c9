#!/bin/sh
# Instructions that a data packet costs each end of a session, ACKs and all, which do not depend on who else uses the machine:
#
#   crates/engine/benches/instructions.sh
#
# One path with AES-256-GCM and with the null cipher (benches/session.rs), and 4 and 256 paths, and 4 with 1,000 relays that are left
# unused, with the null cipher (benches/paths.rs). Both classes at 100 Mbit/s: at another rate each packet has another share of the ACKs,
# so what they cost compares at one rate only. A thousand relays are tried within the first eight seconds. What it costs to begin is in a
# short run as in a long one: their difference is divided by the packets that it carried. Wants valgrind, whose processor has AES-NI and
# AVX2, and none of the wider instructions. Some minutes.
set -eu
cd "$(dirname "$0")/../../.."
trap 'rm -rf "$work"' EXIT
work=$(mktemp -d)

built() {
    cargo bench -q -p byway-engine --bench "$1" --no-run --message-format=json |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -1
}

# Packets, and instructions of the sending and of the receiving end, of one run.
run() {
    valgrind -q --tool=callgrind --callgrind-out-file="$work/out" "$@" >"$work/said" 2>/dev/null
    packets=$(sed -n 's/.* \([0-9]*\) packets .*/\1/p' "$work/said")
    # What stands under a function's name is its own cost and that of each call it made.
    awk -v packets="$packets" '
        /^c?fn=/ { id = $1; sub(/.*=/, "", id)
            if (/sending_end/) end[id] = "sends"
            if (/receiving_end/) end[id] = "receives" }
        /^fn=/ { now = end[id] }
        /^[0-9+*-]/ && now { cost[now] += $2 }
        END { printf "%d %.0f %.0f\n", packets, cost["sends"], cost["receives"] }' "$work/out"
}

# Between a run with $3 and one with $4.
between() {
    name=$1 bench=$2 short=$3 long=$4
    shift 4
    # shellcheck disable=SC2086
    { run "$bench" $short; run "$bench" $long; } | awk -v name="$name" '
        NR == 1 { packets = $1; sends = $2; receives = $3 }
        NR == 2 { n = $1 - packets
            printf "%-24s %7d packets: sender %5.0f, receiver %5.0f instructions each\n", name, n, ($2 - sends) / n, ($3 - receives) / n }'
}

session=$(built session)
between "1 path, AES-256-GCM" "$session" "16 normal aes" "80 normal aes"
between "1 path, null cipher" "$session" "16 normal null" "80 normal null"
between "normal at 100 Mbit/s" "$session" "16 normal null 100" "48 normal null 100"
between "background at 100 Mbit/s" "$session" "16 background null 100" "48 background null 100"
paths=$(built paths)
between "4 paths, null cipher" "$paths" "4 newreno 4000" "4 newreno 12000"
between "4 and 1,000 idle relays" "$paths" "4 newreno 4000 1000" "4 newreno 12000 1000"
between "256 paths, null cipher" "$paths" "256 newreno 100" "256 newreno 400"
