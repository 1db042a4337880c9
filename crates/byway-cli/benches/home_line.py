"""What benches share that measure what others notice at home: a line between a home and a server, requests that come by chance, files to
send, and rows that are measured again if a busy machine disturbed them.
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REQUEST_BYTES = 20_000
# Seconds between two requests, on average.
REQUEST_PAUSE = 0.2
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


def must(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, **options)
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stdout} {done.stderr}")
    return done.stdout


def link(one, other, rate, delay, queue):
    """A link of a plan: Mbit/s, ms and packets."""
    return f'[[link]]\nbetween = ["{one}", "{other}"]\nrate = "{rate} Mbit/s"\ndelay = "{delay} ms"\nqueue = "{queue} packets"\n'


class Line:
    """A home, a server, and an emulated line between them: Mbit/s, round trip in ms, packets of queue. `begin` starts what runs there."""

    def __init__(self, byway, directory, line, server, environment):
        self.byway, self.directory, self.server, self.running = byway, directory, server, []
        self.environment = {**os.environ, "BYWAY_LABS": str(directory / "labs"), **environment}
        (directory / "line.toml").write_text(self.plan(*line))
        must([byway, "lab", "up", directory / "line.toml"], env=self.environment)
        try:
            self.begin()
        except BaseException:
            self.end()
            raise

    # The address of who answers requests.
    asked = "10.66.0.1"

    def plan(self, rate, rtt, queue):
        return link("home", self.server, rate, rtt / 2, queue)

    def use_cubic(self, version, home, server, name=None):
        """All TCP between these addresses uses CUBIC. By the route: not every kernel lets a namespace choose it for all."""
        for host, other in [("home", server), (name or self.server, home)]:
            route = self.says(host, "ip", version, "route", "show", other).split()
            self.says(host, "ip", version, "route", "replace", *route, "congctl", "cubic")

    def answer_requests(self):
        """Starts who answers requests at home."""
        self.start("home", "/usr/bin/python3", "-c", SERVER, str(REQUEST_BYTES), stdout=subprocess.PIPE).stdout.readline()

    def requests(self):
        """Starts who asks home from the server, until its input ends."""
        return self.start(self.server, "/usr/bin/python3", "-c", CLIENT, self.asked, str(REQUEST_PAUSE), str(REQUEST_BYTES),
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)

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


def tree_of(directory, seconds, rate, file_bytes):
    """Files that take this time at `rate` Mbit/s, in four directories."""
    tree, chance = directory / "tree", random.Random(1)
    for number in range(max(4, round(seconds * rate * 1e6 / 8 * 0.95 / file_bytes))):
        file = tree / str(number % 4) / f"{number}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(chance.randbytes(file_bytes))
    return tree


def measured(begin, runs):
    """What `runs` says of the line that `begin` makes in a directory. None: the machine was too busy each time."""
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory(prefix="bench") as directory:
            line = begin(Path(directory))
            try:
                result = runs(line)
                if line.is_accurate():
                    return result
            finally:
                line.end()
    return None


def parser(description, tools):
    """The arguments that all these benches have."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("byway", type=lambda path: str(Path(path).resolve(strict=True)), help="the program")
    options.add_argument("--line", action="append", default=[], type=line_of, help="this line alone: Mbit/s, round trip in ms, packets")
    options.add_argument("--tool", action="append", choices=tools, help="this tool alone")
    options.add_argument("--json", action="store_true", help="all figures, a line for each row")
    return options


def line_of(text):
    return tuple(map(int, text.split(",")))


def be_punctual():
    """A stop ends what runs, and a busy machine does not delay packets as a queue does."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    except PermissionError:
        print("real-time priority is not allowed here: a busy machine disturbs what is measured", file=sys.stderr)


def print_rows(measure, cells, at_once):
    """Measures cells, some at once, and prints a line for each in their order."""
    with ThreadPoolExecutor(at_once) as pool:
        for told in [pool.submit(measure, *cell) for cell in cells]:
            print(told.result(), flush=True)
