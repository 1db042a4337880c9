#!/usr/bin/env bash
# What `normal` gets beside the kernel's CUBIC on an idle line of 100 Mbit/s and 100 ms that loses one packet in a thousand by chance:
# Mbit/s of each in turn, from 3 s on. `byway send` has two paths of its own over the line, by IPv4 and IPv6; ONE=1 leaves it IPv4.
#
#   cargo build --release && crates/byway/benches/chance.sh target/release/byway [ROUNDS [SECONDS]]
#
# Needs what `byway lab up` needs, iperf3 and jq, and leaves nothing behind.
set -euo pipefail
byway=$(realpath "${1:?the byway program}")
rounds=${2:-4} seconds=${3:-33}
directory=$(mktemp -d)
export BYWAY_LABS=$directory/labs
mkdir "$BYWAY_LABS"
server=

clean_up() {
    [[ -z $server ]] || kill "$server" 2>/dev/null || true
    "$byway" lab down >/dev/null 2>&1 || true
    rm -rf "$directory"
}
trap clean_up EXIT

cat >"$directory/plan.toml" <<'PLAN'
[[link]]
between = ["alice", "bob"]
rate = "100 Mbit/s"
delay = "50 ms"
queue = "850 packets"
loss = "0.1 %"
PLAN
"$byway" lab up "$directory/plan.toml" --name chance >"$directory/hosts"
listen=()
[[ -z ${ONE:-} ]] || listen=(--listen "$(awk '$1 == "bob" { print $2 }' "$directory/hosts"):0")
"$byway" lab exec bob -- iperf3 -s >/dev/null &
server=$!
head -c 400000000 /dev/urandom >"$directory/file"

for ((round = 1; round <= rounds; round++)); do
    "$byway" lab exec alice -- iperf3 -J -4 -c bob -C cubic -O 3 -t "$((seconds - 3))" |
        jq -r '"cubic  \(.end.sum_received.bits_per_second / 1e6)"'
    HOME=$directory/bob "$byway" lab exec bob -- "$byway" recv "$directory/in" --once "${listen[@]}" \
        >"$directory/ticket" 2>/dev/null &
    receiver=$!
    until ticket=$(grep -o 'byway1-[a-z0-9]*' "$directory/ticket"); do sleep 0.1; done
    HOME=$directory/alice timeout -s INT "$seconds" "$byway" lab exec alice -- \
        "$byway" send "$directory/file" "$ticket" --priority normal --json >"$directory/said" 2>/dev/null || true
    jq -rs 'map(select(.event == "progress" and .seconds > 3)) |
        "normal \((.[-1].bytes - .[0].bytes) * 8e-6 / (.[-1].seconds - .[0].seconds))"' "$directory/said"
    # Not INT, which the shell has whatever it starts in the background ignore; nor for ever, should the receiver not heed it.
    kill "$receiver" 2>/dev/null || true
    for ((tenths = 0; tenths < 50; tenths++)); do
        kill -0 "$receiver" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "$receiver" 2>/dev/null || true
    wait "$receiver" || true
    receiver=
    rm -rf "$directory/in"
done
