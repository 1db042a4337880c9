"""Runs a sweep on three workers of Dask, one of which is killed. Its rows must be those of this host.

    python on_dask.py BYWAY: needs the package byway_lab, and nothing that listens already.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from distributed import Client

from byway_lab import dask
from byway_lab.sweep import Plan, Refused

PLAN = Path(__file__).with_name("plan.toml")
#: How much longer than here, with two runs at once, the sweep may take with three workers of which one dies.
MAX_TIMES_LOCAL = 1.5


def local_rows(byway, directory):
    """The rows of a run here, two at once, and the seconds that it took."""
    plan = Plan.read(PLAN, byway=byway)
    begun = time.monotonic()
    for task in plan.tasks("--runs", "1000"):
        subprocess.run(
            [byway, "lab", "task", PLAN, task, "--rows", directory, "--jobs", "2"], check=True, stderr=subprocess.DEVNULL
        )
    return lines(directory), time.monotonic() - begun


def lines(directory):
    return sorted(line for file in Path(directory).glob("*.ndjson") for line in file.read_text().splitlines())


def kill_one(cluster, after):
    """Kills a worker with all that it runs, as a host that loses power."""

    def kill():
        time.sleep(after)
        process = next(iter(cluster.workers.values())).process
        pid = process.pid
        subprocess.run(["pkill", "-KILL", "-P", str(pid)], check=False)
        os.kill(pid, signal.SIGKILL)
        print(f"killed the worker {pid}")

    threading.Thread(target=kill, daemon=True).start()


def main(byway):
    with tempfile.TemporaryDirectory() as directory, Client(n_workers=3, threads_per_worker=1) as client:
        here, alone = local_rows(byway, Path(directory, "here"))
        kill_one(client.cluster, alone / 3)
        begun = time.monotonic()
        # A run takes about a second, and so does a task.
        swept = dask.run(PLAN, client=client, per="1s", rows=Path(directory, "rows"), byway=byway)
        took = time.monotonic() - begun
        there = lines(Path(directory, "rows"))
        print(f"{len(there)} rows; {took:.1f} s with three workers, one killed; {alone:.1f} s here with --jobs 2")
        assert there == here, "the rows differ"
        assert not swept.failed and swept.code == 0, swept.report
        assert len(swept.rows) == len(here) and "goodput(backup)" in swept.rows[0], swept.rows[:1]
        # Another time nothing is run, and a worker without the program is named.
        again = dask.run(PLAN, client=client, per="1s", rows=Path(directory, "rows"), byway=byway)
        assert again.report.splitlines()[:3] == swept.report.splitlines()[:3]
        try:
            dask.check(client, Plan.read(PLAN, byway="/nowhere/byway"))
            raise AssertionError("a program that is not there was not missed")
        except Refused as refused:
            assert "there is no program /nowhere/byway" in str(refused), refused
        assert took <= MAX_TIMES_LOCAL * alone, f"{took:.1f} s is more than {MAX_TIMES_LOCAL} times {alone:.1f} s"


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
