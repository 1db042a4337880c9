#!/usr/bin/env bash
# What a connection costs that goes through `byway forward`, on loopback without a rate: its goodput beside a TCP connection of its own
# (iperf3, in turns), and what an exchange of one byte takes longer when nothing else goes on.
#
#   cargo build --profile dist && crates/byway-cli/benches/forward.sh target/dist/byway [ROUNDS]
#
# Needs iperf3, jq and python3, no root, and leaves nothing behind.
set -euo pipefail
byway=$(realpath "${1:?the byway program}")
rounds=${2:-4}
directory=$(mktemp -d)
running=()
trap 'for process in "${running[@]}"; do kill "$process" 2>/dev/null || true; done; wait 2>/dev/null; rm -rf "$directory"' EXIT

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

said() { # FILE FIELD: the first value of this name in the events of a program
    for _ in $(seq 100); do
        value=$(jq -rs "[.[] | .$2 // empty] | first // empty" "$directory/$1" 2>/dev/null || true)
        [ -n "$value" ] && { echo "$value"; return; }
        sleep .1
    done
    echo "$1 said no $2" >&2
    exit 1
}

measured=$(free_port) echoed=$(free_port)
iperf3 -s -p "$measured" -B 127.0.0.1 >/dev/null 2>&1 &
running+=($!)
cat >"$directory/echo.py" <<'END'
import socket, sys, threading
def serve(one):
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while data := one.recv(100):
        one.sendall(data)
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
END
python3 "$directory/echo.py" "$echoed" &
running+=($!)
"$byway" --state-dir "$directory/r" recv "$directory/in" --listen 127.0.0.1 --json \
    --allow-forward "127.0.0.1:$measured" --allow-forward "127.0.0.1:$echoed" >"$directory/recv" &
running+=($!)
ticket=$(said recv ticket)
by_measured=$(free_port) by_echoed=$(free_port)
"$byway" --state-dir "$directory/s" forward "$by_measured:127.0.0.1:$measured" "$by_echoed:127.0.0.1:$echoed" \
    --to "$ticket" --priority normal --json >"$directory/forward" &
running+=($!)
said forward listen >/dev/null
sleep 2

rate() { # PORT OPTIONS: Gbit/s
    iperf3 -c 127.0.0.1 -p "$1" -t 4 -O 1 -J "${@:2}" | jq '.end.sum_received.bits_per_second / 1e9'
}
for _ in $(seq "$rounds"); do
    for way in "" -R; do
        direct=$(rate "$measured" $way) forward=$(rate "$by_measured" $way)
        jq -nr --arg way "${way:-forth}" --argjson a "$direct" --argjson b "$forward" \
            '"\($way | sub("-R"; "back")): TCP alone \($a * 100 | round / 100) Gbit/s, forward \($b * 100 | round / 100): \($b / $a * 100 | round / 100)"'
    done
done

# Exchanges of one byte, by turns, a hundredth of a second apart.
python3 - "$echoed" "$by_echoed" <<'END'
import socket, statistics, sys, time
times = {}
ends = {}
for port in sys.argv[1:]:
    ends[port] = socket.create_connection(("127.0.0.1", int(port)))
    ends[port].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for _ in range(500):
    for port, end in ends.items():
        time.sleep(.01)
        begun = time.perf_counter()
        end.sendall(b"x")
        assert end.recv(1) == b"x"
        times.setdefault(port, []).append((time.perf_counter() - begun) * 1e3)
alone, forward = (sorted(times[port]) for port in sys.argv[1:])
for name, at in ("median", .5), ("90th percentile", .9):
    a, b = alone[int(len(alone) * at)], forward[int(len(forward) * at)]
    print(f"an exchange of one byte, {name}: TCP alone {a:.2f} ms, forward {b:.2f} ms: {b - a:.2f} ms more")
END
