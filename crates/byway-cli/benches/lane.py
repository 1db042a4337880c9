#!/usr/bin/python3
"""What others notice of uploads to a host without byway, and how long those take: plainly, and through `byway lane`.

    cargo build --release --features lab && sudo crates/byway-cli/benches/lane.py target/release/byway

The line is emulated: `byway lab up`. Somebody at home uploads to a server: by plain sockets without an end, by rsync, or by restic over
REST. Somebody else fetches 20 kB from home, five times a second on average, at times that chance sets. So what is fetched travels as the
uploads do. All of them use the kernel's CUBIC. Each row is a network of its own, with five runs: the requests alone, and the uploads plainly and
through a lane, each on the idle line and beside the requests.

Columns: what requests take, as multiples of what they take alone (median, p90); and what uploads carry: through the lane on the idle line, as
a part of what they carry plainly there; and through the lane beside requests, as a part of what is left of the latter by the requests.

The whole takes an hour. `--quick` measures one line, in two minutes. All programs run with real-time priority, because a busy machine delays
packets as a queue does. Needs root, ip, rsync, restic and rclone, and leaves nothing behind.
"""

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Mbit/s, round trip in ms, packets of queue.
LINES = [(2, 20, 25), (2, 60, 25), (10, 20, 50), (10, 60, 50), (50, 20, 150), (50, 60, 150)]
QUICK = [(10, 20, 50)]
TOOLS = ["sockets", "rsync", "restic"]
UPLOADS = [1, 4]
REQUEST_BYTES = 20_000
# Seconds between two requests, on average.
REQUEST_PAUSE = 0.2
# Before anything is counted, uploads find their rate for this long.
WARM_SECONDS = 3
FILE_BYTES = 500_000
# Of a row that a busy machine disturbed.
TRIES = 3
# Below that of the emulated links.
PRIORITY = 1

SERVER = """
import socket, sys, threading
answer = bytes(int(sys.argv[1]))
def serve(program):
    with program:
        program.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        program.recv(1)
        program.sendall(answer)
server = socket.create_server(("", 7000), backlog=200)
print("ready", flush=True)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""

# Requests until the input ends; then when each began and what it took. One that takes longer than 20 s has failed.
CLIENT = """
import json, random, socket, sys, threading, time
host, pause, size = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
chance, over, took, threads = random.Random(1), threading.Event(), [], []
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
def fetch():
    begun, got = time.monotonic(), 0
    try:
        with socket.create_connection((host, 7000), timeout=20) as server:
            server.sendall(b"x")
            while piece := server.recv(65536):
                got += len(piece)
    except OSError:
        pass
    took.append((begun, time.monotonic() - begun if got == size else 20))
due = time.monotonic()
while not over.is_set():
    due += chance.expovariate(1 / pause)
    over.wait(max(0, due - time.monotonic()))
    threads.append(threading.Thread(target=fetch))
    threads[-1].start()
for thread in threads:
    thread.join()
json.dump(took, sys.stdout)
"""

# Takes uploads, and tells for each line of its input the time and how many bytes came.
SINK = """
import socket, sys, threading, time
got = 0
def take(upload):
    global got
    room = bytearray(1 << 16)
    while length := upload.recv_into(room):
        got += length
def accept(server):
    while True:
        threading.Thread(target=take, args=(server.accept()[0],), daemon=True).start()
threading.Thread(target=accept, args=(socket.create_server(("", 7100), backlog=200),), daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    print(time.monotonic(), got, flush=True)
"""

UPLOAD = """
import socket, sys
upload = socket.create_connection((sys.argv[1], int(sys.argv[2])))
while True:
    upload.sendall(bytes(1 << 14))
"""


def must(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, **options)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stdout} {done.stderr}")
    return done.stdout


class Lab:
    """A home, a server with what takes uploads, and a line between them."""

    def __init__(self, byway, directory, line):
        rate, rtt, queue = line
        self.byway, self.directory, self.running = byway, directory, []
        self.environment = {**os.environ, "BYWAY_LABS": str(directory / "labs"), "HOME": str(directory), "RESTIC_PASSWORD": "x"}
        (directory / "there").mkdir()
        plan = f'[[link]]\nbetween = ["home", "store"]\nrate = "{rate} Mbit/s"\ndelay = "{rtt / 2} ms"\nqueue = "{queue} packets"\n'
        (directory / "line.toml").write_text(plan)
        must([byway, "lab", "up", directory / "line.toml"], env=self.environment)
        try:
            self.begin()
        except BaseException:
            self.end()
            raise

    def begin(self):
        for host, other in [("home", "10.66.0.2"), ("store", "10.66.0.1")]:
            # By the route: not every kernel lets a namespace choose CUBIC for all.
            route = self.says(host, "ip", "-4", "route", "show", other).split()
            self.says(host, "ip", "-4", "route", "replace", *route, "congctl", "cubic")
        there = self.directory / "there"
        settings = f"use chroot = no\nuid = 0\ngid = 0\n[store]\npath = {there}\nread only = no\n"
        (self.directory / "rsyncd.conf").write_text(settings)
        self.start("store", "rsync", "--daemon", "--no-detach", "--config", f"{self.directory}/rsyncd.conf")
        self.start("store", "rclone", "serve", "restic", there, "--addr", ":8000")
        self.sink = self.start("store", "/usr/bin/python3", "-c", SINK, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        server = self.start("home", "/usr/bin/python3", "-c", SERVER, str(REQUEST_BYTES), stdout=subprocess.PIPE)
        ports = {"sockets": (7100, 17100), "rsync": (873, 10873), "restic": (8000, 18000)}
        self.doors = {tool: [("10.66.0.2", far), ("127.0.0.1", here)] for tool, (far, here) in ports.items()}
        lane = self.start("home", self.byway, "--json", "lane", *(f"{here}:10.66.0.2:{far}" for far, here in ports.values()),
                          stdout=subprocess.PIPE)
        for process in [self.sink, server, lane]:
            process.stdout.readline()
        for port in [873, 8000]:
            self.wait("store", port)

    def on(self, host, *command):
        return [self.byway, "lab", "exec", host, "--", *command]

    def says(self, host, *command):
        return must(self.on(host, *command), env=self.environment)

    def start(self, host, *command, **options):
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | options
        process = subprocess.Popen(self.on(host, *command), env=self.environment, text=True, **options)
        self.running.append(process)
        return process

    def wait(self, host, port):
        for _ in range(200):
            if f":{port} " in self.says(host, "ss", "-Hltn"):
                return
            time.sleep(0.05)
        raise RuntimeError(f"nobody listens at port {port} of {host}")

    def is_accurate(self):
        status = json.loads(must([self.byway, "--json", "lab", "status"], env=self.environment).splitlines()[-1])
        return status["labs"][0]["status"]["accurate"]

    def requests(self):
        return self.start("store", "/usr/bin/python3", "-c", CLIENT, "10.66.0.1", str(REQUEST_PAUSE), str(REQUEST_BYTES),
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def came(self):
        self.sink.stdin.write("\n")
        self.sink.stdin.flush()
        at, got = self.sink.stdout.readline().split()
        return float(at), int(got)

    def endless(self, count, by_lane, seconds):
        """Uploads by plain sockets: when counting began, when it ended, and the bytes that came meanwhile."""
        host, port = self.doors["sockets"][by_lane]
        programs = [self.start("home", "/usr/bin/python3", "-c", UPLOAD, host, str(port)) for _ in range(count)]
        time.sleep(WARM_SECONDS)
        begun, before = self.came()
        time.sleep(seconds)
        ended, after = self.came()
        for program in programs:
            program.kill()
            program.wait()
        time.sleep(1)
        return begun, ended, after - before

    def uploads(self, tool, count, tree, by_lane, name):
        """Runs the tool to its end: when it began, when it ended, and the bytes of the files."""
        host, port = self.doors[tool][by_lane]
        there = self.directory / "there" / name
        if tool == "restic":
            must(["restic", "-q", "init", "-r", there], env=self.environment)
            commands = [["restic", "-q", "-r", f"rest:http://{host}:{port}/{name}/", "--pack-size", "4", "-o", f"rest.connections={count}",
                         "backup", tree]]
        else:
            there.mkdir()
            parts = sorted(tree.iterdir()) if count > 1 else [tree]
            commands = [["rsync", "-a", part, f"rsync://{host}:{port}/store/{name}/"] for part in parts]
        begun = time.monotonic()
        programs = [self.start("home", *command) for command in commands]
        codes = [program.wait() for program in programs]
        ended = time.monotonic()
        if any(codes):
            raise RuntimeError(f"{tool}: {codes}")
        return begun, ended, sum(file.stat().st_size for file in tree.rglob("*.jpg"))

    def end(self):
        subprocess.run([self.byway, "-q", "lab", "down", "--all"], env=self.environment, capture_output=True)
        for process in self.running:
            process.kill()
            process.wait()


def times(client, begun, ended):
    """What the requests took that began meanwhile, in seconds: median, p90 and how many they were."""
    said, _ = client.communicate("")
    took = sorted(took for at, took in json.loads(said) if begun <= at < ended)
    return statistics.median(took), took[min(len(took) - 1, int(len(took) * 0.9))], len(took)


def tree_of(directory, seconds, rate):
    """Files that take this time, in four directories."""
    tree, chance = directory / "tree", random.Random(1)
    for number in range(max(4, round(seconds * rate * 1e6 / 8 * 0.95 / FILE_BYTES))):
        file = tree / str(number % 4) / f"{number}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(chance.randbytes(FILE_BYTES))
    return tree


def cell(byway, line, tool, count, seconds):
    """What came of a line and uploads, as a dictionary."""
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory(prefix="lane") as directory:
            directory = Path(directory)
            tree = tree_of(directory, seconds, line[0]) if tool != "sockets" else None
            lab = Lab(byway, directory, line)
            try:
                result = runs(lab, tool, count, tree, seconds)
                if lab.is_accurate():
                    return result
            finally:
                lab.end()
    return None


def runs(lab, tool, count, tree, seconds):
    def carries(way, name):
        if tool == "sockets":
            return lab.endless(count, way == "lane", seconds)
        return lab.uploads(tool, count, tree, way == "lane", name)

    client, begun = lab.requests(), time.monotonic()
    time.sleep(seconds)
    result = {"alone": times(client, begun, time.monotonic())}
    for way in ["plain", "lane"]:
        begun, ended, moved = carries(way, f"idle-{way}")
        result[f"idle {way} mbit"] = moved * 8e-6 / (ended - begun)
        client = lab.requests()
        time.sleep(0.5)
        begun, ended, moved = carries(way, f"beside-{way}")
        result[way] = times(client, begun, ended)
        result[f"beside {way} mbit"] = moved * 8e-6 / (ended - begun)
        result[f"requests beside {way} mbit"] = result[way][2] * REQUEST_BYTES * 8e-6 / (ended - begun)
    left = result["idle plain mbit"] - result["requests beside lane mbit"]
    result["waits plain"], result["waits lane"] = ([result[way][at] / result["alone"][at] for at in [0, 1]] for way in ["plain", "lane"])
    result["idle share"] = result["idle lane mbit"] / result["idle plain mbit"]
    result["rest share"] = result["beside lane mbit"] / left
    return result


HEAD = """| line: Mbit/s, RTT in ms, packets of queue | uploads | requests alone, ms | beside plain uploads | beside the lane | the lane on an \
idle line | of the rest beside requests |
|---|---|---|---|---|---|---|"""


def row(line, tool, count, result):
    name = f"| {', '.join(map(str, line))} | {count} {tool} |"
    if result is None:
        return f"{name} the machine was too busy | | | | |"
    alone = ", ".join(f"{seconds * 1e3:.0f}" for seconds in result["alone"][:2])
    plain, lane = (" / ".join(f"{wait:.2f}" for wait in result[f"waits {way}"]) for way in ["plain", "lane"])
    return f"{name} {alone} | {plain} | {lane} | {result['idle share']:.2f} | {result['rest share']:.2f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("byway", type=lambda path: str(Path(path).resolve(strict=True)), help="the program")
    parser.add_argument("--quick", action="store_true", help="one upload over one line: --line 10,20,50 --uploads 1")
    parser.add_argument("--line", action="append", default=[], help="this line alone: Mbit/s, round trip in ms, packets")
    parser.add_argument("--tool", action="append", choices=TOOLS, help="this tool alone [default: sockets]")
    parser.add_argument("--uploads", type=int, action="append", help="uploads at once [default: 1 and 4]")
    parser.add_argument("--seconds", type=float, default=30, help="what each run takes, about")
    parser.add_argument("--at-once", type=int, default=3, help="rows at once")
    parser.add_argument("--json", action="store_true", help="all figures, a line for each row")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    lines = [tuple(map(int, line.split(","))) for line in arguments.line] or (QUICK if arguments.quick else LINES)
    counts = arguments.uploads or ([1] if arguments.quick else UPLOADS)
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    except PermissionError:
        print("real-time priority is not allowed here: a busy machine disturbs what is measured", file=sys.stderr)
    if not arguments.json:
        print(HEAD, flush=True)

    def measure(line, tool, count):
        result = cell(arguments.byway, line, tool, count, arguments.seconds)
        if arguments.json:
            return json.dumps({"line": line, "tool": tool, "uploads": count, "result": result})
        return row(line, tool, count, result)

    cells = [(line, tool, count) for line in lines for tool in arguments.tool or ["sockets"] for count in counts]
    with ThreadPoolExecutor(arguments.at_once) as pool:
        for told in [pool.submit(measure, *cell) for cell in cells]:
            print(told.result(), flush=True)


main()
