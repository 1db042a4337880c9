#!/usr/bin/env bash
# What `normal` gets beside the kernel's CUBIC on an idle line of 100 Mbit/s and 100 ms that loses one packet in a thousand by chance:
# Mbit/s of each in turn, from 3 s on. `byway send` has two paths of its own over the line, by IPv4 and IPv6; ONE=1 leaves it IPv4.
#
#   cargo build --profile dist && crates/byway-cli/benches/chance.sh target/dist/byway [ROUNDS [SECONDS]]
#
# What chance loses differs by a seventh from one minute to the next, so it takes many rounds to tell two apart. EACH=4 has four of either kind
# at once, which together fill a good third of the line and so are not in each other's way. SEED=2 has other packets lost.
#
# Needs what `byway lab up` needs, iperf3 and jq, and leaves nothing behind.
set -euo pipefail
byway=$(realpath "${1:?the byway program}")
rounds=${2:-4} seconds=${3:-33} each=${EACH:-}
directory=$(mktemp -d)
export BYWAY_LABS=$directory/labs
mkdir "$BYWAY_LABS"
servers=()

clean_up() {
    ((${#servers[@]} == 0)) || kill "${servers[@]}" 2>/dev/null || true
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
"$byway" lab up "$directory/plan.toml" --name "chance-$$" --seed "${SEED:-1}" >"$directory/hosts"
listen=()
[[ -z ${ONE:-} ]] || listen=(--listen "$(awk '$1 == "bob" { print $2 }' "$directory/hosts"):0")
for ((flow = 1; flow <= ${each:-1}; flow++)); do
    "$byway" lab exec bob -- iperf3 -s -p "$((5200 + flow))" >/dev/null 2>&1 &
    servers+=($!)
done
head -c 400000000 /dev/urandom >"$directory/file"

cubic() { # FLOW
    "$byway" lab exec alice -- iperf3 -J -4 -c bob -p "$((5200 + $1))" -C cubic -O 3 -t "$((seconds - 3))" |
        jq -r '"cubic  \(.end.sum_received.bits_per_second / 1e6)"'
}

normal() { # FLOW
    local ticket receiver tenths
    HOME=$directory/bob$1 "$byway" lab exec bob -- "$byway" recv "$directory/in$1" --once "${listen[@]}" \
        >"$directory/ticket$1" 2>/dev/null &
    receiver=$!
    until ticket=$(grep -Eo 'byway[12]-[a-z0-9]*' "$directory/ticket$1"); do sleep 0.1; done
    HOME=$directory/alice$1 timeout -s INT "$seconds" "$byway" lab exec alice -- \
        "$byway" send "$directory/file" "$ticket" --priority normal --json >"$directory/said$1" 2>/dev/null || true
    jq -rs 'map(select(.event == "progress" and .seconds > 3)) |
        "normal \((.[-1].bytes - .[0].bytes) * 8e-6 / (.[-1].seconds - .[0].seconds))"' "$directory/said$1"
    # Not INT, which the shell has whatever it starts in the background ignore; nor for ever, should the receiver not heed it.
    kill "$receiver" 2>/dev/null || true
    for ((tenths = 0; tenths < 50; tenths++)); do
        kill -0 "$receiver" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "$receiver" 2>/dev/null || true
    wait "$receiver" 2>/dev/null || true
    rm -rf "$directory/in$1" "$directory/ticket$1"
}

for ((round = 1; round <= rounds; round++)); do
    if [[ -z $each ]]; then
        cubic 1
        normal 1
        continue
    fi
    flows=()
    for ((flow = 1; flow <= each; flow++)); do
        cubic "$flow" &
        flows+=($!)
        normal "$flow" &
        flows+=($!)
    done
    wait "${flows[@]}"
done
