"""Sweeps on Dask: `python -m byway_lab.dask plan.toml --seeds 10000 --scheduler tcp://host:8786`."""

import argparse
import sys

from distributed import Client, as_completed

from . import sweep
from .sweep import Plan, Refused, RunFailed

#: How often a task is tried.
TRIES = 3


def _identity(plan):
    """The hashes on a worker, or why it has none."""
    try:
        return plan.identity()
    except Refused as refused:
        return str(refused)


def check(client, plan):
    """Refuses workers whose program is missing or another one, before the first run."""
    own = plan.identity()
    on_workers = client.run(_identity, plan)
    strangers = {worker: found for worker, found in on_workers.items() if list(found) != list(own)}
    if strangers:
        named = "; ".join(
            f"{worker}: {found if isinstance(found, str) else 'another program, ' + found[1]}"
            for worker, found in strangers.items()
        )
        raise Refused(f"all workers need the program {own[1]} as `{plan.byway}`: {named}")


def run(path, *, client, seeds=None, per="30s", options=(), rows="rows", byway="byway", tell=print):
    """Runs the plan at `path` on the workers of `client`, and returns a `sweep.Swept`.

    `seeds` is a number, or text such as "17..32"; None: as the plan says. `per` is the length of a
    task. `options` are those that `byway lab tasks`, `task` and `gather` share, such as
    ("--quick",). The directory `rows` keeps the rows of each task as it ends: what it has is not run
    again. A task that fails is tried three times. Then it is named, and the others go on.
    """
    plan = Plan.read(path, options, byway)
    check(client, plan)
    many = ["--seeds", str(seeds)] if seeds else []
    tasks = plan.tasks("--per", per, *many)
    wanted = [task for task in tasks if not sweep.is_done(task, rows)]
    tell(f"{len(tasks)} tasks, {len(tasks) - len(wanted)} of them are done")
    futures = {client.submit(plan.run, task, retries=TRIES - 1, pure=False): task for task in wanted}
    failed = {}
    for done, future in enumerate(as_completed(futures), start=1):
        task = futures[future]
        try:
            sweep.keep(task, future.result(), rows)
        except Exception as error:  # whatever a worker met, the other tasks go on
            said = str(error.args[0]) if error.args else repr(error)
            failed[task] = said
            tell(f"task `{task}` failed {TRIES} times: {said}")
            if isinstance(error, RunFailed) and error.args[1]:
                sweep.keep(task, error.args[1], rows)
        future.release()
        if done % 100 == 0 or done == len(futures):
            tell(f"{done} of {len(futures)} tasks")
    return sweep.gather(path, rows, options, seeds, byway, failed)


def main():
    parser = argparse.ArgumentParser(
        prog="python -m byway_lab.dask",
        description="Run a plan of byway's lab on the workers of Dask, and print the table and the verdicts.",
    )
    parser.add_argument("plan", help="the plan, a file that ends in .toml")
    parser.add_argument("--seeds", help="how many seeds, or which: 10000, or 17..32")
    parser.add_argument("--per", default="30s", help="how long a task takes on one processor")
    parser.add_argument("--scheduler", help="where the scheduler listens; without it, workers of this host")
    parser.add_argument("--rows", default="rows", help="directory for the rows; what it has is not run again")
    parser.add_argument("--byway", default="byway", help="the program, on this host and on the workers")
    parser.add_argument("--quick", action="store_true", help="the quick form of the plan")
    parser.add_argument("--full", action="store_true", help="the plan at the scale of the paper")
    parser.add_argument("--sweep", action="append", default=[], metavar="AXIS=VALUES")
    given = parser.parse_args()
    options = [flag for flag in ("--quick", "--full") if getattr(given, flag[2:])]
    options += [word for values in given.sweep for word in ("--sweep", values)]
    with Client(given.scheduler) if given.scheduler else Client(threads_per_worker=1) as client:
        try:
            swept = run(
                given.plan,
                client=client,
                seeds=given.seeds,
                per=given.per,
                options=options,
                rows=given.rows,
                byway=given.byway,
                tell=lambda line: print(line, file=sys.stderr),
            )
        except Refused as refused:
            sys.exit(f"byway_lab: {refused}")
    print(swept.report, end="")
    sys.exit(swept.code)


if __name__ == "__main__":
    main()
