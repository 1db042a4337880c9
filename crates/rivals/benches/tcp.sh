#!/usr/bin/env bash
# byway over one TCP connection beside iperf3, on the loopback, by turns: Gbit/s of each round, the medians and their ratio. byway seals
# what it sends, iperf3 does not. byway's connection has CUBIC; iperf3 has the law that is named, or else the system's own.
#
#   crates/rivals/benches/tcp.sh [ROUNDS [LAW]]
#
# RUN="chrt -r 10": how to run all, here so that nobody else's programs count (as root, for seconds). Needs iperf3 and jq.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
rounds=${1:-5} law=${2:-} port=${PORT:-5399}
read -ra run <<<"${RUN:-}"
program=$(cargo bench ${PROFILE:+--profile "$PROFILE"} -p byway-rivals --bench loopback --no-run --message-format json |
    jq -r 'select(.target.name? == "loopback" and .executable != null) | .executable')

iperf() {
    "${run[@]}" iperf3 -s -1 -p "$port" -B 127.0.0.1 >/dev/null &
    sleep 0.5
    "${run[@]}" iperf3 -c 127.0.0.1 -p "$port" -t 1.5 ${law:+-C "$law"} -J | jq '.end.sum_received.bits_per_second / 1e9'
    wait
}
byway() { "${run[@]}" "$program" --rounds 1 --seconds 1.5 --only "over TCP" --json | jq -R 'fromjson? | .bits_per_second / 1e9'; }
median() { jq -s 'sort | .[length / 2 | floor]'; }

ours=() theirs=()
for _ in $(seq "$rounds"); do
    theirs+=("$(iperf)")
    ours+=("$(byway)")
    printf 'iperf3 %.2f, byway over TCP %.2f Gbit/s\n' "${theirs[-1]}" "${ours[-1]}"
done
our=$(printf '%s\n' "${ours[@]}" | median) their=$(printf '%s\n' "${theirs[@]}" | median)
jq -nr --argjson our "$our" --argjson their "$their" '"medians \($our) and \($their): \($our / $their)"'
