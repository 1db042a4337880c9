#!/usr/bin/env bash
# What a tree costs that is sent again, beside rsync: unchanged.sh [FILES]. FILES files of 100 to 8,000 bytes, over loopback, by
# target/release/byway and by `rsync -a` to a daemon, three pairs of each night. Seconds, bytes of both directions at the
# interface for each file, and the memory that byway takes. It fails if the best of three nights of byway needs more than 24 bytes
# a file, 1.5 times the best seconds of rsync, or 100 MB. Needs rsync and python3, and nothing else that uses loopback.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
files=${1:-20000} byway=${BYWAY:-$PWD/target/release/byway} port=18730
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
receiver=$!
started+=("$receiver")
until [[ -s $directory/ticket ]]; do sleep 0.1; done

interface_bytes() { awk '/lo:/ {print $2}' /proc/net/dev; }
by_rsync() { rsync -a "$directory/tree" "rsync://127.0.0.1:$port/in/"; }
by_byway() { BYWAY_STATE_DIR=$directory/sender "$byway" send "$directory/tree" "@$directory/ticket" --quiet; }
measure() { # NAME COMMAND
    local bytes seconds
    bytes=$(interface_bytes) seconds=$EPOCHREALTIME
    "$2" >/dev/null
    awk -v name="$1" -v bytes="$(($(interface_bytes) - bytes))" -v files="$files" -v from="$seconds" -v to="$EPOCHREALTIME" \
        'BEGIN { printf "%-28s %6.3f s  %7.1f bytes a file\n", name, to - from, bytes / files }' |
        tee -a "$directory/measured"
}
change_hundred() { # contents and time of 100 files, all through the tree; each keeps its size
    python3 - "$directory/tree" "$files" "$1" <<'PY'
import os, sys
tree, files, salt = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for number in range(0, files, files // 100):
    path = f"{tree}/dir{number // 200:03d}/file{number:05d}.dat"
    size = os.path.getsize(path)
    with open(path, "wb") as file:
        file.write(os.urandom(size))
    time = 1.7e9 + salt * 1000 + number / 1e3
    os.utime(path, (time, time))
PY
}
measure 'rsync, first copy' by_rsync
measure 'byway, first copy' by_byway
for _ in 1 2 3; do
    measure 'rsync, again' by_rsync
    measure 'byway, again' by_byway
done
for round in 1 2 3; do
    change_hundred "$round"
    measure 'rsync, 100 files changed' by_rsync
    measure 'byway, 100 files changed' by_byway
done
rm -rf "$directory/in/tree"
for what in 'first copy' again; do
    BYWAY_STATE_DIR=$directory/sender python3 - "$what" "$byway" send "$directory/tree" "@$directory/ticket" --quiet <<'PY'
import resource, subprocess, sys
subprocess.run(sys.argv[2:], check=True)
print(f"byway, {sys.argv[1]}: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss} kB of memory at the sender")
PY
done | tee -a "$directory/measured"
awk '/VmHWM/ {print "byway: " $2 " kB of memory at the receiver"}' "/proc/$receiver/status" | tee -a "$directory/measured"
python3 - "$directory/measured" <<'PY'
import re, sys
text = open(sys.argv[1]).read()
def best(tool, night):
    found = re.findall(rf"^{tool}, {night} +([\d.]+) s +([\d.]+) bytes", text, re.M)
    return min(float(one) for one, _ in found), min(float(one) for _, one in found)
# Of a night with changes the bytes of the files themselves are in both figures.
(seconds, size), (own_seconds, own_size) = best("rsync", "again"), best("byway", "again")
changed, own_changed = best("rsync", "100 files changed")[0], best("byway", "100 files changed")[0]
memory = max(int(kilobytes) for kilobytes in re.findall(r"(\d+) kB", text))
print(f"byway to rsync: {own_seconds / seconds:.2f} of the seconds, {own_changed / changed:.2f} with 100 files changed")
sys.exit(own_size > 24 or own_seconds > 1.5 * seconds or own_changed > 1.5 * changed or memory > 100_000)
PY
