#!/usr/bin/python3
"""What a host's own traffic notices of `byway send` on the same host, with a governor of the uplink, and by the law alone.

    cargo build --release --features lab && sudo crates/byway-cli/benches/governor.py target/release/byway

The line is emulated: `byway lab up`. Home sends a file to a server, once or four times at once. Somebody fetches 20 kB from home, five times a
second on average, at times that chance sets. So what is fetched travels as the file does. Each row is a network of its own, with runs of the
requests alone, and beside the sends: by the law alone, because something else stands in the place of the ledger of the uplink, and governed. With
`--neighbours` another host behind the same router answers the requests.

Columns: what requests take, as multiples of what they take alone (median, p90); what byway carries, as a part of what requests leave of the
line; and the same on the idle line.

All programs run with real-time priority. Needs root and ip, and leaves nothing behind.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
from home_line import REQUEST_BYTES, SERVER, Line, be_punctual, link, measured, parser, print_rows, times

# Mbit/s, round trip in ms, packets of queue.
LINES = [(2, 20, 25), (2, 60, 25), (10, 20, 50), (10, 60, 50), (50, 20, 150), (50, 60, 150)]
QUICK = [(10, 20, 50)]
SENDS = [1, 4]
# Before anything is counted, sends find the rate of the line for this long.
WARM_SECONDS = 12
# More than a send carries in a run at 50 Mbit/s.
FILE_BYTES = 400 << 20
# On Ethernet a full packet of TCP has 1,448 bytes of payload in 1,514.
WIRE_FACTOR = 1514 / 1448


class Home(Line):
    """A server receives."""

    home, store = "10.66.0.1", "10.66.0.2"

    def __init__(self, byway, directory, line):
        super().__init__(byway, directory, line, "store", {"HOME": str(directory)})

    def begin(self):
        self.use_cubic("-4", self.home, self.store)
        state = ["--state-dir", self.directory / "there"]
        recv = self.start("store", self.byway, *state, "recv", self.directory / "in", stdout=subprocess.PIPE)
        (self.directory / "ticket").write_text(recv.stdout.readline())
        with open(self.directory / "all.iso", "wb") as file:
            for _ in range(FILE_BYTES >> 20):
                file.write(os.urandom(1 << 20))
        self.answer_requests()

    def send(self, count, is_governed):
        """Begins to send, and returns the programs."""
        ledger = self.ledger()
        if is_governed and ledger.is_dir():
            ledger.rmdir()
        elif not is_governed:
            # Where there can be no ledger, nobody governs.
            ledger.mkdir(exist_ok=True)
        files = [self.directory / f"{time.monotonic_ns()}-{number}.iso" for number in range(count)]
        for file in files:
            file.hardlink_to(self.directory / "all.iso")
        return [self.start("home", self.byway, "-q", "--state-dir", self.directory / "here", "send", file, f"@{self.directory}/ticket")
                for file in files]

    def ledger(self):
        """The file in which sessions at home share what they know of the line."""
        namespace = self.says("home", "stat", "-Lc", "%i", "/proc/self/ns/net").strip()
        route = json.loads(self.says("home", "ip", "-j", "route", "get", self.store))[0]
        interface = json.loads(self.says("home", "ip", "-j", "link", "show", route["dev"]))[0]["ifindex"]
        return Path(f"/dev/shm/byway-uplink-{namespace}-{interface}")

    def end(self):
        ledger = self.ledger()
        super().end()
        ledger.rmdir() if ledger.is_dir() else ledger.unlink(missing_ok=True)

    def carried(self):
        """Bytes that have come to the server over the line, and when that was."""
        shown = json.loads(self.says("store", "ip", "-j", "-s", "link"))
        return sum(it["stats64"]["rx"]["bytes"] for it in shown if it["ifname"] != "lo"), time.monotonic()


class Neighbours(Home):
    """Home has a neighbour who answers the requests. Both share a router, whose uplink is the line."""

    home, asked, store = "10.66.0.2", "10.66.0.3", "10.66.0.4"

    def plan(self, rate, rtt, queue):
        near = link("home", "gate", 1000, 0.1, 1000) + link("next", "gate", 1000, 0.1, 1000)
        return near + link("gate", "store", rate, rtt / 2 - 0.1, queue)

    def answer_requests(self):
        self.start("next", "/usr/bin/python3", "-c", SERVER, str(REQUEST_BYTES), stdout=subprocess.PIPE).stdout.readline()


def cell(home, byway, line, count, seconds):
    """What came of a line and sends, as a dictionary."""

    def of(home):
        client, begun = home.requests(), time.monotonic()
        time.sleep(seconds)
        result = {"alone": times(client, begun, time.monotonic())}
        for way in ["law", "governed"]:
            result[way] = beside(home, line[0], count, way == "governed", seconds, result["alone"])
        return result

    return measured(lambda directory: home(byway, directory, line), of)


def beside(home, rate, count, is_governed, seconds, alone):
    """What requests take beside sends, and what byway carries beside them and before."""
    programs = home.send(count, is_governed)
    time.sleep(WARM_SECONDS)
    (idle_before, idle_from), _ = home.carried(), time.sleep(seconds / 2)
    idle_after, idle_to = home.carried()
    client = home.requests()
    time.sleep(0.5)
    (before, begun), _ = home.carried(), time.sleep(seconds)
    after, ended = home.carried()
    took = times(client, begun, ended)
    for program in programs:
        program.kill()
        program.wait()
    time.sleep(1)
    line = rate * 1e6 / 8 * (ended - begun)
    requests = took[2] * REQUEST_BYTES * WIRE_FACTOR
    return {"took": took, "waits": [took[at] / alone[at] for at in [0, 1]], "rest share": (after - before - requests) / (line - requests),
            "idle share": (idle_after - idle_before) / (rate * 1e6 / 8 * (idle_to - idle_from))}


HEAD = """| line: Mbit/s, RTT in ms, packets of queue | sends | requests alone, ms | beside the law alone | of the rest | on an idle line | \
governed | of the rest | on an idle line |
|---|---|---|---|---|---|---|---|---|"""


def row(line, count, result):
    name = f"| {', '.join(map(str, line))} | {count} |"
    if result is None:
        return f"{name} the machine was too busy | | | | | | |"
    alone = ", ".join(f"{seconds * 1e3:.0f}" for seconds in result["alone"][:2])

    def told(way):
        waits = " / ".join(f"{wait:.2f}" for wait in result[way]["waits"])
        return f"{waits} | {result[way]['rest share']:.2f} | {result[way]['idle share']:.2f}"

    return f"{name} {alone} | {told('law')} | {told('governed')} |"


def main():
    options = parser(__doc__.splitlines()[0], ["send"])
    options.add_argument("--quick", action="store_true", help="one send over one line: --line 10,20,50 --sends 1")
    options.add_argument("--neighbours", action="store_true", help="another host answers the requests, behind the same router")
    options.add_argument("--sends", type=int, action="append", help="sends at once [default: 1 and 4]")
    options.add_argument("--seconds", type=float, default=20, help="what each run takes, about")
    options.add_argument("--at-once", type=int, default=3, help="rows at once")
    arguments = options.parse_args()
    lines = arguments.line or (QUICK if arguments.quick else LINES)
    counts = arguments.sends or ([1] if arguments.quick else SENDS)
    be_punctual()
    if not arguments.json:
        print(HEAD, flush=True)

    def measure(line, count):
        result = cell(Neighbours if arguments.neighbours else Home, arguments.byway, line, count, arguments.seconds)
        return json.dumps({"line": line, "sends": count, "result": result}) if arguments.json else row(line, count, result)

    print_rows(measure, [(line, count) for line in lines for count in counts], arguments.at_once)


main()
