"""A sweep: the tasks of a plan, the rows of a task, and the result of rows.

Each function runs the program `byway`. Nothing here knows a scheduler.
"""

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

# Exit codes of `byway lab task`.
RAN, A_RUN_FAILED, REFUSED = 0, 1, 2


class Refused(Exception):
    """The program refuses the plan or the task. Another try does the same."""


class RunFailed(Exception):
    """Runs of a task failed. `args` has what the program said, and the rows of the other runs."""


@dataclass(frozen=True)
class Plan:
    """A plan as it travels to workers: the text of its files, and the options of `byway lab`."""

    name: str
    files: dict
    options: tuple = ()
    byway: str = "byway"

    @classmethod
    def read(cls, path, options=(), byway="byway"):
        """Reads a plan, and the `expect.toml` beside it if the plan is a `plan.toml`."""
        path = Path(path)
        files = {path.name: path.read_text()}
        expect = path.with_name("expect.toml")
        if path.name == "plan.toml" and expect.is_file():
            files[expect.name] = expect.read_text()
        return cls(path.name, files, tuple(options), byway)

    def call(self, verb, *arguments):
        """Runs `byway lab VERB PLAN ARGUMENTS OPTIONS` beside a copy of the plan."""
        with tempfile.TemporaryDirectory(prefix="byway-lab-") as directory:
            for name, text in self.files.items():
                Path(directory, name).write_text(text)
            command = [self.byway, "lab", verb, self.name, *arguments, *self.options]
            try:
                # What is asked for as text is read as text, whatever the caller's environment asks for.
                environment = {**os.environ, "BYWAY_JSON": "0"}
                return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
            except FileNotFoundError:
                raise Refused(f"there is no program {self.byway}") from None

    def tasks(self, *arguments):
        """The tasks of the plan, as lines. `arguments` are those of `byway lab tasks`."""
        ended = self.call("tasks", *arguments)
        if ended.returncode:
            raise Refused(ended.stderr.strip())
        return ended.stdout.splitlines()

    def identity(self):
        """The hashes of plan and program. Where they differ, a task is refused."""
        return self.tasks("--runs", "1000000", "--seeds", "1")[0].split()[:2]

    def run(self, task):
        """Runs a task, and returns its rows as text."""
        ended = self.call("task", task, "--rows", "-")
        if ended.returncode == REFUSED:
            raise Refused(ended.stderr.strip())
        if ended.returncode != RAN:
            raise RunFailed(ended.stderr.strip() or f"exit code {ended.returncode}", ended.stdout)
        return ended.stdout


def file_name(task):
    """The name of the file for the rows of a task, as `byway lab task` chooses it."""
    plan, program, _, variant, seeds = task.split()
    first, last = seeds.split("..")
    return f"{plan}-{program}-{variant}-{first}-{last}.ndjson"


def is_done(task, rows):
    """Whether the directory `rows` has all rows of a task."""
    file = Path(rows, file_name(task))
    first, last = task.split()[-1].split("..")
    return file.is_file() and file.read_text().count("\n") == int(last) - int(first) + 1


def keep(task, text, rows):
    """Writes the rows of a task into the directory `rows`: whole, or not at all."""
    directory = Path(rows)
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=directory, prefix=".rows-", delete=False) as file:
        file.write(text)
    Path(file.name).replace(directory / file_name(task))


def flat(line):
    """A row as a flat dictionary, for pandas or Polars: labels of axes, seed, and a value for each
    question. A value that the run does not have is None."""
    row = json.loads(line)
    undefined = dict.fromkeys(row.get("undefined", {}))
    return {**dict(row["variant"]), "seed": row["seed"], **row["answers"], **undefined}


@dataclass
class Swept:
    """What came of a sweep."""

    #: A flat dictionary for each run. See `flat`.
    rows: list = field(default_factory=list)
    #: Of each task that failed in all its tries: the task, and what was said.
    failed: dict = field(default_factory=dict)
    #: The table and the verdicts, as `byway lab gather` prints them.
    report: str = ""
    #: The exit code of `byway lab gather`: 0 if no run is missing and no claim fails.
    code: int = 0


def gather(path, rows, options=(), seeds=None, byway="byway", failed=None):
    """Makes the result of the rows in the directory `rows`."""
    many = ["--seeds", str(seeds)] if seeds else []
    command = [byway, "lab", "gather", str(path), str(rows), *many, *options]
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode not in (RAN, A_RUN_FAILED):
        raise Refused(ended.stderr.strip())
    lines = (line for file in sorted(Path(rows).glob("*.ndjson")) for line in file.open())
    return Swept([flat(line) for line in lines], failed or {}, ended.stdout + ended.stderr, ended.returncode)
