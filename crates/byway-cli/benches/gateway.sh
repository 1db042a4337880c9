#!/usr/bin/env bash
# How fast two gateways are when nothing else limits them, and what that costs: one flow of the kernel's TCP from Alice through the
# entry and the exit to Bob, each a network namespace, on lines without a rate. Prints Mbit/s at the receiver, how busy each
# gateway kept a processor, and what each says of itself.
#
#   cargo build --profile dist && sudo crates/byway-cli/benches/gateway.sh target/dist/byway [SECONDS [CONGESTION]]
#
# PLAIN=1: first the same without gateways. Needs root, ip, iperf3, nft and jq, and leaves nothing behind.
set -euo pipefail
byway=$(realpath "${1:?the byway program}")
seconds=${2:-8} congestion=${3:-cubic}
name=bw$$ # of the namespaces
directory=$(mktemp -d)
running=()

in_host() { ip netns exec "$name-$1" "${@:2}"; }

clean_up() {
    for process in "${running[@]}"; do kill "$process" 2>/dev/null || true; done
    wait 2>/dev/null || true
    for host in alice left right bob; do
        for process in $(ip netns pids "$name-$host" 2>/dev/null); do kill -9 "$process"; done
        ip netns del "$name-$host" 2>/dev/null || true
    done
    rm -rf "$directory"
}
trap clean_up EXIT

line() { # ONE OTHER NETWORK: a line between two hosts, .1 and .2 of a /24
    ip link add "to-$2" netns "$name-$1" type veth peer name "to-$1" netns "$name-$2"
    in_host "$1" ip addr add "$3.1/24" dev "to-$2"
    in_host "$2" ip addr add "$3.2/24" dev "to-$1"
    in_host "$1" ip link set "to-$2" up
    in_host "$2" ip link set "to-$1" up
}

key() { "$byway" --state-dir "$directory/state-$1" id; }

gateway() { # HOST ADDRESS SERVES PEER-KEY PEER-ADDRESS PEER-SERVES
    cat >"$directory/$1.toml" <<END
[gateway]
serves = ["$3"]
listen = ["$2:4749"]
status = "$directory/$1.sock"
[[peer]]
name = "the other"
key = "$4"
addresses = ["$5:4749"]
allowed = ["$6"]
[[rule]]
name = "iperf3"
to-ports = ["5201"]
END
    in_host "$1" "$byway" --state-dir "$directory/state-$1" gateway --config "$directory/$1.toml" \
        >"$directory/$1.log" 2>&1 &
    running+=($!)
}

status() { "$byway" --json gateway status --socket "$directory/$1.sock" 2>/dev/null | tail -n 1; }
# Hundredths of a second that a gateway has used so far.
used() { awk '{ print $14 + $15 }' "/proc/$(ip netns pids "$name-$1" | head -n 1)/stat"; }
measure() { in_host alice iperf3 -J -c 10.77.3.2 -C "$congestion" -t "$1" -O 1 | jq '.end.sum_received.bits_per_second / 1e6 | round'; }

for host in alice left right bob; do
    ip netns add "$name-$host"
    in_host "$host" ip link set lo up
    in_host "$host" sysctl -qw net.ipv4.ip_forward=1
done
line alice left 10.77.1
line left right 10.77.2
line right bob 10.77.3
in_host alice ip route add default via 10.77.1.2
in_host left ip route add 10.77.3.0/24 via 10.77.2.2
in_host right ip route add 10.77.1.0/24 via 10.77.2.1
in_host bob ip route add default via 10.77.3.1

in_host bob iperf3 -s -D
sleep 1
[ -z "${PLAIN:-}" ] || echo "plain: $(measure 3) Mbit/s"

left=$(key left) right=$(key right)
gateway left 10.77.2.1 10.77.1.0/24 "$right" 10.77.2.2 10.77.3.0/24
gateway right 10.77.2.2 10.77.3.0/24 "$left" 10.77.2.1 10.77.1.0/24
for _ in $(seq 100); do
    status left | jq -e '.gateway.peers[0].up' >/dev/null 2>&1 && break
    sleep 0.1
done
sleep 1
entry=$(used left) exit=$(used right)
rate=$(measure "$seconds")
# Whoever is measured runs a second longer than is counted.
entry=$(($(used left) - entry)) exit=$(($(used right) - exit))
echo "gateways: $rate Mbit/s; entry $((entry / (seconds + 1))) % and exit $((exit / (seconds + 1))) % of a processor"
for host in left right; do
    status "$host" | jq -c --arg host "$host" '.gateway | {host: $host, waited_in_vain, dropped: .peers[0].dropped,
        paths: [.peers[0].paths[] | {route, window, srtt, lost}], counters: (.counters | with_entries(select(.value > 0)))}'
done
