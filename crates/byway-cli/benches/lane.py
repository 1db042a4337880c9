#!/usr/bin/python3
"""What others notice of uploads to a host without byway, and how long those take: plainly, and through `byway lane`.

    cargo build --release --features lab && sudo crates/byway-cli/benches/lane.py target/release/byway

The line is emulated: `byway lab up`. Somebody at home uploads to a server: by plain sockets without an end, by rsync, or by restic over
REST. Somebody else fetches 20 kB from home, five times a second on average, at times that chance sets. So what is fetched travels as the
uploads do. With `--neighbours` another host behind the same router has it. All of them use the kernel's CUBIC. Each row is a network of its
own, with five runs: the requests alone, and the uploads plainly and through a lane, each on the idle line and beside the requests.

Columns: what requests take, as multiples of what they take alone (median, p90); and what uploads carry: through the lane on the idle line, as
a part of what they carry plainly there; and through the lane beside requests, as a part of what is left of the latter by the requests.

`--failures` asks instead what a lane costs, and has, when its uplink is not as it was: half or twice the rate, a tunnel, a second uplink.

The whole takes an hour. `--quick` measures one line, in two minutes. All programs run with real-time priority, because a busy machine delays
packets as a queue does. Needs root, ip, rsync, restic and rclone, and leaves nothing behind.
"""

import functools
import json
import os
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from home_line import REQUEST_BYTES, SERVER, Line, be_punctual, link, measured, must, parser, print_rows, times, tree_of

# Mbit/s, round trip in ms, packets of queue.
LINES = [(2, 20, 25), (2, 60, 25), (10, 20, 50), (10, 60, 50), (50, 20, 150), (50, 60, 150)]
QUICK = [(10, 20, 50)]
TOOLS = ["sockets", "rsync", "restic"]
UPLOADS = [1, 4]
# Before anything is counted, uploads find their rate for this long.
WARM_SECONDS = 3
FILE_BYTES = 500_000

# The uplink of all failures, until its rate changes.
FAILING = (10, 20, 50)
# From when the network is up. The lane has learnt the rate of the line by then.
CHANGE_SECONDS = 15
VPN_HOME, VPN_STORE = "10.67.0.1", "10.67.0.2"
STORE, OTHER = "10.66.0.3", "10.66.0.2"
# Mbit/s after the change, and where uploads lead, one to each.
FAILURES = {
    "nothing": (10, [STORE]),
    "half the rate": (5, [STORE]),
    "twice the rate": (20, [STORE]),
    "a VPN over the uplink": (10, [VPN_STORE]),
    "two uplinks": (10, [STORE, OTHER]),
}
# Bytes of a full packet, and what TCP with a time stamp carries in it: beside VXLAN, and in it.
PACKET_BYTES, PAYLOAD_BYTES, VPN_PAYLOAD_BYTES = 1500, 1448, 1398
# The part of the rest that the lane shall have again soon after the change.
ASKED_SHARE = 0.85

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

IDLE = """
import socket, sys, time
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
time.sleep(3600)
"""


class Home(Line):
    """A server has what takes uploads."""

    home, store = "10.66.0.1", "10.66.0.2"

    def __init__(self, byway, directory, line):
        (directory / "there").mkdir()
        super().__init__(byway, directory, line, "store", {"HOME": str(directory), "RESTIC_PASSWORD": "x"})

    def begin(self):
        self.use_cubic("-4", self.home, self.store)
        there = self.directory / "there"
        settings = f"use chroot = no\nuid = 0\ngid = 0\n[store]\npath = {there}\nread only = no\n"
        (self.directory / "rsyncd.conf").write_text(settings)
        self.start("store", "rsync", "--daemon", "--no-detach", "--config", f"{self.directory}/rsyncd.conf")
        self.start("store", "rclone", "serve", "restic", there, "--addr", ":8000")
        self.take_uploads("store")
        ports = {"sockets": (7100, 17100), "rsync": (873, 10873), "restic": (8000, 18000)}
        self.doors = {tool: [(self.store, far), ("127.0.0.1", here)] for tool, (far, here) in ports.items()}
        lane = self.start("home", self.byway, "--json", "lane", *(f"{here}:{self.store}:{far}" for far, here in ports.values()),
                          stdout=subprocess.PIPE)
        lane.stdout.readline()
        self.answer_requests()
        for port in [873, 8000]:
            self.wait("store", port)

    def take_uploads(self, *hosts):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.sinks = [self.start(host, "/usr/bin/python3", "-c", SINK, **pipes) for host in hosts]
        for sink in self.sinks:
            sink.stdout.readline()

    def came(self):
        for sink in self.sinks:
            sink.stdin.write("\n")
            sink.stdin.flush()
        told = [sink.stdout.readline().split() for sink in self.sinks]
        return float(told[0][0]), sum(int(got) for _, got in told)

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


class Neighbours(Home):
    """Home has a neighbour who answers the requests. Both share a router, whose uplink is the line."""

    home, asked, store = "10.66.0.2", "10.66.0.3", "10.66.0.4"

    def plan(self, rate, rtt, queue):
        near = link("home", "gate", 1000, 0.1, 1000) + link("next", "gate", 1000, 0.1, 1000)
        return near + link("gate", "store", rate, rtt / 2 - 0.1, queue)

    def answer_requests(self):
        self.start("next", "/usr/bin/python3", "-c", SERVER, str(REQUEST_BYTES), stdout=subprocess.PIPE).stdout.readline()


class Failing(Home):
    """Home has a second uplink, to another server, and a tunnel to the first server. The rate of the first uplink changes."""

    store = STORE

    def __init__(self, byway, directory, line, later):
        self.later = later
        super().__init__(byway, directory, line)

    def plan(self, rate, rtt, queue):
        change = f'[[change]]\nat = "{CHANGE_SECONDS} s"\nlink = ["home", "store"]\nrate = "{self.later} Mbit/s"\n'
        return super().plan(rate, rtt, queue) + link("home", "other", rate, rtt / 2, queue) + change

    def begin(self):
        self.up_at = time.monotonic()
        for host, ends, inner in [("home", (self.home, STORE), (VPN_HOME, VPN_STORE)), ("store", (STORE, self.home), (VPN_STORE, VPN_HOME))]:
            tunnel = ["type", "vxlan", "id", "1", "local", ends[0], "remote", ends[1], "dstport", "4789"]
            self.says(host, "ip", "link", "add", "vpn", *tunnel)
            self.says(host, "ip", "address", "add", inner[0], "peer", inner[1], "dev", "vpn")
            self.says(host, "ip", "link", "set", "vpn", "up")
        self.use_cubic("-4", self.home, STORE)
        self.use_cubic("-4", VPN_HOME, VPN_STORE)
        self.use_cubic("-4", self.home, OTHER, "other")
        self.take_uploads("store", "other")
        self.ports = {target: 17100 + at for at, target in enumerate([STORE, OTHER, VPN_STORE])}
        targets = (f"{port}:{target}:7100" for target, port in self.ports.items())
        self.start("home", self.byway, "--json", "lane", *targets, stdout=subprocess.PIPE).stdout.readline()
        self.answer_requests()

    def by_lane(self, program, target):
        self.start("home", "/usr/bin/python3", "-c", program, "127.0.0.1", str(self.ports[target]))


def cell(home, byway, line, tool, count, seconds):
    """What came of a line and uploads, as a dictionary."""

    def of(home):
        tree = tree_of(home.directory, seconds, line[0], FILE_BYTES) if tool != "sockets" else None
        return runs(home, tool, count, tree, seconds)

    return measured(lambda directory: home(byway, directory, line), of)


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


@functools.cache
def alone(byway, rate, seconds):
    """What requests take alone."""

    def of(home):
        client, begun = home.requests(), time.monotonic()
        time.sleep(seconds)
        return times(client, begun, time.monotonic())

    return measured(lambda directory: Failing(byway, directory, (rate, *FAILING[1:]), rate), of)


def failure(byway, later, targets, reads_counters, seconds):
    """Requests and uploads after the change. A connection that is idle, and leaves by another uplink, keeps a lane from its counters."""

    def of(home):
        for target in targets:
            home.by_lane(UPLOAD, target)
        if not reads_counters:
            home.by_lane(IDLE, OTHER)
        client, samples = home.requests(), []
        for second in range(round(seconds) + 1):
            time.sleep(max(0, home.up_at + CHANGE_SECONDS + second - time.monotonic()))
            samples.append(home.came())
        return times(client, samples[0][0], samples[-1][0]), samples

    found = measured(lambda directory: Failing(byway, directory, FAILING, later), of)
    if found is None:
        return None
    took, samples = found
    line_mbit = FAILING[0] * (len(targets) - 1) + later
    requests_mbit = took[2] * REQUEST_BYTES * 8e-6 / (samples[-1][0] - samples[0][0])
    payload = VPN_PAYLOAD_BYTES if VPN_STORE in targets else PAYLOAD_BYTES
    rest_mbit = (line_mbit - requests_mbit * PACKET_BYTES / PAYLOAD_BYTES) * payload / PACKET_BYTES

    def share(first, last):
        return (samples[last][1] - samples[first][1]) * 8e-6 / (samples[last][0] - samples[first][0]) / rest_mbit

    # Over two seconds each, because requests come by chance.
    soon = (second for second in range(len(samples) - 2) if share(second, second + 2) >= ASKED_SHARE)
    seconds_of = [round(share(second, second + 1), 3) for second in range(len(samples) - 1)]
    return {"took": took, "rest share": share(0, -1), "asked share after": next(soon, None), "share of each second": seconds_of}


def measure_failure(byway, name, seconds):
    later, targets = FAILURES[name]
    result = {"alone": alone(byway, later, seconds)}
    for way in ["lane", "law"]:
        # Over two uplinks the lane reads no counters in any case.
        if way == "lane" or len(targets) == 1:
            result[way] = failure(byway, later, targets, way == "lane", seconds)
    return result | {"load": os.getloadavg()[0]}


HEAD_OF_FAILURES = f"""| what happens | requests alone, ms | beside the lane | of the rest | {ASKED_SHARE} of it after, s | beside the law alone | of \
the rest | {ASKED_SHARE} of it after, s | load |
|---|---|---|---|---|---|---|---|---|"""


def failure_row(name, result):
    def told(way):
        if way not in result:
            return "| | |"
        if result[way] is None or result["alone"] is None:
            return "the machine was too busy | | |"
        waits = " / ".join(f"{result[way]['took'][at] / result['alone'][at]:.2f}" for at in [0, 1])
        return f"{waits} | {result[way]['rest share']:.2f} | {result[way]['asked share after']} |"

    requests = ", ".join(f"{seconds * 1e3:.0f}" for seconds in (result["alone"] or ())[:2])
    return f"| {name} | {requests} | {told('lane')} {told('law')} {result['load']:.1f} |"


def main():
    options = parser(__doc__.splitlines()[0], TOOLS)
    options.add_argument("--quick", action="store_true", help="one upload over one line: --line 10,20,50 --uploads 1")
    options.add_argument("--neighbours", action="store_true", help="another host answers the requests, behind the same router")
    options.add_argument("--failures", nargs="?", const="all", choices=["all", *FAILURES],
                         help="what a lane costs and has when its uplink is not as it was, or one such row; one after the other")
    options.add_argument("--uploads", type=int, action="append", help="uploads at once [default: 1 and 4]")
    options.add_argument("--seconds", type=float, default=30, help="what each run takes, about")
    options.add_argument("--at-once", type=int, default=3, help="rows at once")
    arguments = options.parse_args()
    lines = arguments.line or (QUICK if arguments.quick else LINES)
    counts = arguments.uploads or ([1] if arguments.quick else UPLOADS)
    be_punctual()
    if not arguments.json:
        print(HEAD_OF_FAILURES if arguments.failures else HEAD, flush=True)

    def measure_named(name):
        result = measure_failure(arguments.byway, name, arguments.seconds)
        return json.dumps({"what": name, "result": result}) if arguments.json else failure_row(name, result)

    if arguments.failures:
        names = FAILURES if arguments.failures == "all" else [arguments.failures]
        print_rows(measure_named, [(name,) for name in names], 1)
        return

    def measure(line, tool, count):
        result = cell(Neighbours if arguments.neighbours else Home, arguments.byway, line, tool, count, arguments.seconds)
        if arguments.json:
            return json.dumps({"line": line, "tool": tool, "uploads": count, "result": result})
        return row(line, tool, count, result)

    cells = [(line, tool, count) for line in lines for tool in arguments.tool or ["sockets"] for count in counts]
    print_rows(measure, cells, arguments.at_once)


main()
