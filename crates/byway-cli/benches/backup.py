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

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
from home_line import Line, be_punctual, measured, must, parser, print_rows, times, tree_of

# Mbit/s, round trip in ms, packets of queue.
LINES = [(5, 20, 50), (5, 40, 50), (10, 20, 50), (10, 40, 50), (30, 20, 150), (30, 40, 150)]
QUICK = [(10, 20, 50)]
# Measured without requests.
IDLE = [(100, 20, 200), (100, 40, 200)]
IDLE_SECONDS = 8
TOOLS = ["restic", "restic, REST", "rsync", "4 rsyncs", "borg"]
FILE_BYTES = 1_000_000


class Home(Line):
    """The server is a NAS with all services."""

    def __init__(self, byway, directory, line):
        environment = {"HOME": str(directory / "home"), "RESTIC_PASSWORD": "x", "BORG_PASSPHRASE": "x"}
        environment |= {"BORG_RSH": f"ssh -F {directory}/ssh_config", "BORG_BASE_DIR": str(directory / "borg")}
        environment |= {"BYWAY_STATE_DIR": str(directory / "state")}
        for name in ["home", "state", "nas"]:
            (directory / name).mkdir()
        super().__init__(byway, directory, line, "nas", environment)

    def begin(self):
        directory, nas = self.directory, self.directory / "nas"
        self.use_cubic("-4", "10.66.0.1", "10.66.0.2")
        self.use_cubic("-6", "fd66::1", "fd66::2")
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
        self.answer_requests()

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


def cell(byway, line, tool, seconds, with_requests):
    """What came of a line and a tool, as a dictionary."""

    def of(home):
        return runs(home, tool, tree_of(home.directory, seconds, line[0], FILE_BYTES), seconds, with_requests)

    return measured(lambda directory: Home(byway, directory, line), of)


def runs(lab, tool, tree, seconds, with_requests):
    result = {}
    if with_requests:
        client, begun = lab.requests(), time.monotonic()
        time.sleep(seconds)
        result["alone"] = times(client, begun, time.monotonic())[:2]
    for way in ["plain", "byway"]:
        begun, ended = lab.backup(tool, tree, way == "byway", f"idle-{way}")
        result[f"idle {way}"] = ended - begun
        if with_requests:
            client = lab.requests()
            time.sleep(0.5)
            begun, ended = lab.backup(tool, tree, way == "byway", f"beside-{way}")
            result[f"beside {way}"] = ended - begun
            result[way] = times(client, begun, ended)[:2]
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
    options = parser(__doc__.splitlines()[0], TOOLS)
    options.add_argument("--quick", action="store_true", help="the same as --line 10,20,50")
    options.add_argument("--seconds", type=float, default=15, help="what a backup takes on an idle line")
    options.add_argument("--at-once", type=int, default=5, help="rows at once")
    arguments = options.parse_args()
    some = arguments.line + (QUICK if arguments.quick else [])
    tools, lines, idle = arguments.tool or TOOLS, some or LINES, [] if some else IDLE
    be_punctual()
    if not arguments.json:
        print(HEAD, flush=True)

    def measure(line, tool, seconds, with_requests):
        result = cell(arguments.byway, line, tool, seconds, with_requests)
        if arguments.json:
            return json.dumps({"line": line, "tool": tool, "result": result})
        return row(line, tool, result)

    print_rows(measure, [(line, tool, arguments.seconds, True) for line in lines for tool in tools], arguments.at_once)
    print_rows(measure, [(line, tool, IDLE_SECONDS, False) for line in idle for tool in tools], 1)


main()
