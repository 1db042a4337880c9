#!/usr/bin/env bash
# What a tree costs that is sent again, beside rsync: unchanged.sh [FILES]. FILES files of 100 to 8,000 bytes, over loopback, by
# target/release/byway and by `rsync -a` to a daemon, three pairs. Seconds, and bytes of both directions at the interface for
# each file. Needs rsync and python3, and nothing else that uses loopback.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
files=${1:-20000} byway=$PWD/target/release/byway port=18730
directory=$(mktemp -d)
started=()
finish() {
    kill "${started[@]}" 2>/dev/null || true
    wait
    rm -rf "$directory"
}
trap finish EXIT

python3 - "$directory/tree" "$files" <<'PY'
import os, random, sys
tree, files = sys.argv[1], int(sys.argv[2])
random.seed(1)
for number in range(files):
    folder = f"{tree}/dir{number // 200:03d}"
    os.makedirs(folder, exist_ok=True)
    path = f"{folder}/file{number:05d}.dat"
    with open(path, "wb") as file:
        file.write(os.urandom(random.randint(100, 8000)))
    time = 1.6e9 + random.random() * 1e8
    os.utime(path, (time, time))
PY

mkdir "$directory/rsync"
printf 'port = %d\nuse chroot = no\n[in]\npath = %s\nread only = no\nuid = %d\ngid = %d\n' \
    "$port" "$directory/rsync" "$(id -u)" "$(id -g)" >"$directory/rsyncd.conf"
rsync --daemon --no-detach --address=127.0.0.1 --config="$directory/rsyncd.conf" &
started+=($!)
BYWAY_STATE_DIR=$directory/receiver "$byway" recv "$directory/in" --listen 127.0.0.1:0 >"$directory/ticket" 2>/dev/null &
started+=($!)
until [[ -s $directory/ticket ]]; do sleep 0.1; done

interface_bytes() { awk '/lo:/ {print $2}' /proc/net/dev; }
by_rsync() { rsync -a "$directory/tree" "rsync://127.0.0.1:$port/in/"; }
by_byway() { BYWAY_STATE_DIR=$directory/sender "$byway" send "$directory/tree" "@$directory/ticket" --quiet; }
measure() { # NAME COMMAND
    local bytes seconds
    bytes=$(interface_bytes) seconds=$EPOCHREALTIME
    "$2" >/dev/null
    awk -v name="$1" -v bytes="$(($(interface_bytes) - bytes))" -v files="$files" -v from="$seconds" -v to="$EPOCHREALTIME" \
        'BEGIN { printf "%-18s %6.3f s  %7.1f bytes a file\n", name, to - from, bytes / files }'
}
measure 'rsync, first copy' by_rsync
measure 'byway, first copy' by_byway
for _ in 1 2 3; do
    measure 'rsync, again' by_rsync
    measure 'byway, again' by_byway
done
