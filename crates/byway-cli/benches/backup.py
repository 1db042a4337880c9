#!/usr/bin/python3
"""What others notice of a backup, and how long it takes: by the tool alone, and by the tool over `byway forward`.

    cargo build --release && sudo crates/byway-cli/benches/backup.py target/release/byway

The line is emulated: `byway lab up`. Somebody at home makes a backup to a NAS: by restic over SSH or over REST, by one rsync, by four at once,
or by borg. Somebody else fetches 20 kB from home, five times a second on average, at times that chance sets. So what is fetched travels as the
backup does. All of them use the kernel's CUBIC. Each row is a network of its own, with five runs: the requests alone, and the tool plainly and
over byway, each on the idle line and beside the requests. restic makes packs of 4 MiB, so that several travel at once, as in a long backup.

The whole takes a quarter of an hour. `--quick` measures one line, in two minutes. All programs run with real-time priority, because a busy
machine delays packets as a queue does. Needs root, ip, restic, rclone, rsync, borg and sshd, and leaves nothing behind.
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
LINES = [(5, 20, 50), (5, 40, 50), (10, 20, 50), (10, 40, 50), (30, 20, 150), (30, 40, 150)]
QUICK = [(10, 20, 50)]
# Measured without requests.
IDLE = [(100, 20, 200), (100, 40, 200)]
IDLE_SECONDS = 8
TOOLS = ["restic", "restic, REST", "rsync", "4 rsyncs", "borg"]
REQUEST_BYTES = 20_000
# Seconds between two requests, on average.
REQUEST_PAUSE = 0.2
FILE_BYTES = 1_000_000
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

# Requests until the input ends; then a line with when each began and what it took. One that takes longer than 20 s has failed.
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


def must(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, **options)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stdout} {done.stderr}")
    return done.stdout


class Lab:
    """A home and a NAS with all services, and a line between them."""

    def __init__(self, byway, directory, line):
        rate, rtt, queue = line
        self.byway, self.directory, self.running = byway, directory, []
        self.environment = {**os.environ, "BYWAY_LABS": str(directory / "labs"), "HOME": str(directory / "home")}
        self.environment |= {"RESTIC_PASSWORD": "x", "BORG_PASSPHRASE": "x", "BORG_RSH": f"ssh -F {directory}/ssh_config"}
        self.environment |= {"BORG_BASE_DIR": str(directory / "borg"), "BYWAY_STATE_DIR": str(directory / "state")}
        for name in ["home", "state", "nas"]:
            (directory / name).mkdir()
        plan = f'[[link]]\nbetween = ["home", "nas"]\nrate = "{rate} Mbit/s"\ndelay = "{rtt / 2} ms"\nqueue = "{queue} packets"\n'
        (directory / "line.toml").write_text(plan)
        must([byway, "lab", "up", directory / "line.toml"], env=self.environment)
        try:
            self.begin()
        except BaseException:
            self.end()
            raise

    def begin(self):
        directory, nas = self.directory, self.directory / "nas"
        for host, other in [("home", "2"), ("nas", "1")]:
            # By the route: not every kernel lets a namespace choose CUBIC for all.
            for version, address in [("-4", f"10.66.0.{other}"), ("-6", f"fd66::{other}")]:
                route = self.says(host, "ip", version, "route", "show", address).split()
                self.says(host, "ip", version, "route", "replace", *route, "congctl", "cubic")
        for key in ["host-key", "user-key"]:
            must(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", directory / key])
        known = (directory / "host-key.pub").read_text()
        (directory / "known").write_text(f"plain {known}byway {known}")
        (directory / "ssh_config").write_text(
            f"Host *\n  UserKnownHostsFile {directory}/known\n  IdentityFile {directory}/user-key\n  User root\n"
            f"  GlobalKnownHostsFile /dev/null\n"
            f"Host plain\n  HostName nas\n  HostKeyAlias plain\n"
            f"Host byway\n  ProxyCommand {self.byway} forward --stdio localhost:22 --to @{directory}/ticket\n"
        )
        Path("/run/sshd").mkdir(exist_ok=True)
        options = [f"HostKey={directory}/host-key", f"AuthorizedKeysFile={directory}/user-key.pub", "StrictModes=no"]
        options += ["PidFile=none", "UsePAM=no", "Subsystem=sftp internal-sftp"]
        sshd = ["/usr/sbin/sshd", "-D", "-f", "/dev/null"]
        self.start("nas", *sshd, *(word for option in options for word in ["-o", option]))
        (directory / "rsyncd.conf").write_text(f"use chroot = no\nuid = 0\ngid = 0\n[nas]\npath = {nas}\nread only = no\n")
        self.start("nas", "rsync", "--daemon", "--no-detach", "--config", f"{directory}/rsyncd.conf")
        self.start("nas", "rclone", "serve", "restic", nas, "--addr", ":8000")
        ports = [word for port in [22, 873, 8000] for word in ["--allow-forward", f"localhost:{port}"]]
        state = ["--state-dir", directory / "state-nas"]
        recv = self.start("nas", self.byway, *state, "recv", directory / "in", *ports, stdout=subprocess.PIPE)
        (directory / "ticket").write_text(recv.stdout.readline())
        forward = [self.byway, "forward", "1873:localhost:873", "18000:localhost:8000", "--to", f"@{directory}/ticket"]
        self.start("home", *forward)
        for port in [22, 873, 8000]:
            self.wait("nas", port)
        for port in [1873, 18000]:
            self.wait("home", port)
        self.start("home", "/usr/bin/python3", "-c", SERVER, str(REQUEST_BYTES), stdout=subprocess.PIPE).stdout.readline()

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
        return self.start("nas", "/usr/bin/python3", "-c", CLIENT, "home", str(REQUEST_PAUSE), str(REQUEST_BYTES),
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def backup(self, tool, tree, by_byway, name):
        """Runs the tool to its end; when it began, and when it ended."""
        there = self.directory / "nas" / name
        here = self.directory / "home"
        daemon, rest, ssh = ("localhost:1873", "localhost:18000", "byway") if by_byway else ("nas:873", "nas:8000", "plain")
        if tool.startswith("restic"):
            must(["restic", "-q", "init", "-r", there], env=self.environment)
            sftp = ["-r", f"sftp:nas:{there}", "-o", f"sftp.command=ssh -F {self.directory}/ssh_config {ssh} -s sftp"]
            repository = sftp if tool == "restic" else ["-r", f"rest:http://{rest}/{name}/"]
            commands = [["restic", "-q", *repository, "--pack-size", "4", "backup", tree]]
        elif tool == "borg":
            must(["borg", "init", "-e", "repokey", there], env=self.environment)
            self.environment["BORG_RELOCATED_REPO_ACCESS_IS_OK"] = "yes"
            commands = [["borg", "create", f"ssh://{ssh}{there}::one", tree]]
        else:
            there.mkdir()
            parts = sorted(tree.iterdir()) if tool == "4 rsyncs" else [tree]
            commands = [["rsync", "-a", part, f"rsync://{daemon}/nas/{name}/"] for part in parts]
        begun = time.monotonic()
        programs = [
            subprocess.Popen(self.on("home", *command), env=self.environment, cwd=here, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            for command in commands
        ]
        said = [program.communicate()[1] for program in programs]
        ended = time.monotonic()
        if any(program.returncode for program in programs):
            raise RuntimeError(f"{tool}: {said}")
        shutil.rmtree(there)
        return begun, ended

    def end(self):
        subprocess.run([self.byway, "-q", "lab", "down", "--all"], env=self.environment, capture_output=True)
        for process in self.running:
            process.kill()
            process.wait()


def times(client, begun, ended):
    """What the requests took that began meanwhile, in seconds: median and p90."""
    said, _ = client.communicate("")
    took = sorted(took for at, took in json.loads(said) if begun <= at < ended)
    return statistics.median(took), took[min(len(took) - 1, int(len(took) * 0.9))]


def tree_of(directory, seconds, rate):
    """Files that take this time, in four directories."""
    tree, chance = directory / "tree", random.Random(1)
    for number in range(max(4, round(seconds * rate * 1e6 / 8 * 0.95 / FILE_BYTES))):
        file = tree / str(number % 4) / f"{number}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(chance.randbytes(FILE_BYTES))
    return tree


def cell(byway, line, tool, seconds, with_requests):
    """What came of a line and a tool, as a dictionary."""
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory(prefix="backup") as directory:
            directory = Path(directory)
            tree = tree_of(directory, seconds, line[0])
            lab = Lab(byway, directory, line)
            try:
                result = runs(lab, tool, tree, seconds, with_requests)
                if lab.is_accurate():
                    return result
            finally:
                lab.end()
    return None


def runs(lab, tool, tree, seconds, with_requests):
    result = {}
    if with_requests:
        client, begun = lab.requests(), time.monotonic()
        time.sleep(seconds)
        result["alone"] = times(client, begun, time.monotonic())
    for way in ["plain", "byway"]:
        begun, ended = lab.backup(tool, tree, way == "byway", f"idle-{way}")
        result[f"idle {way}"] = ended - begun
        if with_requests:
            client = lab.requests()
            time.sleep(0.5)
            begun, ended = lab.backup(tool, tree, way == "byway", f"beside-{way}")
            result[f"beside {way}"] = ended - begun
            result[way] = times(client, begun, ended)
    return result


HEAD = """| line: Mbit/s, RTT in ms, packets of queue | tool | requests alone, ms | beside the tool | beside it over byway \
| time over byway: idle line | beside requests |
|---|---|---|---|---|---|---|"""


def row(line, tool, result):
    """Medians and p90s of requests, those beside the tool as multiples of those alone. Times as multiples of the tool's own."""
    name = f"| {', '.join(map(str, line))} | {tool} |"
    if result is None:
        return f"{name} the machine was too busy | | | | |"

    def over_byway(run):
        return f"{result[f'{run} byway'] / result[f'{run} plain']:.2f}" if f"{run} byway" in result else ""

    def of_alone(way):
        return ", ".join(f"{took / alone:.2f}" for took, alone in zip(result.get(way, []), result.get("alone", [])))

    alone = ", ".join(f"{seconds * 1e3:.0f}" for seconds in result.get("alone", []))
    return f"{name} {alone} | {of_alone('plain')} | {of_alone('byway')} | {over_byway('idle')} | {over_byway('beside')} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("byway", type=lambda path: str(Path(path).resolve(strict=True)), help="the program")
    parser.add_argument("--quick", action="store_true", help="the same as --line 10,20,50")
    parser.add_argument("--line", action="append", default=[], help="this line alone: Mbit/s, round trip in ms, packets")
    parser.add_argument("--tool", action="append", choices=TOOLS, help="this tool alone")
    parser.add_argument("--seconds", type=float, default=15, help="what a backup takes on an idle line")
    parser.add_argument("--at-once", type=int, default=5, help="rows at once")
    parser.add_argument("--json", action="store_true", help="seconds of each run, a line for each row")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    some = [tuple(map(int, line.split(","))) for line in arguments.line] + (QUICK if arguments.quick else [])
    tools, lines, idle = arguments.tool or TOOLS, some or LINES, [] if some else IDLE
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    except PermissionError:
        print("real-time priority is not allowed here: a busy machine disturbs what is measured", file=sys.stderr)
    if not arguments.json:
        print(HEAD, flush=True)

    def measure(line, tool, seconds, with_requests):
        result = cell(arguments.byway, line, tool, seconds, with_requests)
        if arguments.json:
            return json.dumps({"line": line, "tool": tool, "result": result})
        return row(line, tool, result)

    def all_of(cells, at_once):
        with ThreadPoolExecutor(at_once) as pool:
            for told in [pool.submit(measure, *cell) for cell in cells]:
                print(told.result(), flush=True)

    all_of([(line, tool, arguments.seconds, True) for line in lines for tool in tools], arguments.at_once)
    all_of([(line, tool, IDLE_SECONDS, False) for line in idle for tool in tools], 1)


main()
