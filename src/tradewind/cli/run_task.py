"""`tradewind tasks run`: one task instance now, through the scheduler."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from tradewind.cli.arguments import dag_argument, run_argument, task_argument
from tradewind.cli.common import NO_SCHEDULER, door, find_run, reading, say_if_offline
from tradewind.cli.completion import complete_pools
from tradewind.model.errors import NotYetSupported

if TYPE_CHECKING:
    from tradewind.cli.command_client import CommandClient

_LOOK_AGAIN_SECONDS = 0.05

_REFUSED = {
    "local": "a task always runs on this machine, started by its worker host; leave -l, --local out",
    "raw": "a task is always run under its worker host, which keeps its log and its limits; to run it in this process: "
    "tradewind tasks test",
    "pickle": "no code is pickled: tasks are read from their DAG's file",
    "ship_dag": "no code is pickled: tasks are read from their DAG's file",
    "job_id": "there are no job ids: an attempt is named by its run, its place in it and a fence",
    "cfg_path": "settings are not handed down in files: set them for the scheduler and the worker host",
}
"""Airflow's options that have no meaning here → why."""

_CONFLICT = "--depends-on-past wait cannot be given together with an option that ignores dependencies"


@click.command()
@dag_argument
@task_argument
@run_argument
@click.option("--map-index", type=int, default=-1, help="Of a mapped task: which task instance.")
@click.option("-A", "--ignore-all-dependencies", is_flag=True, help="The same as -i: pools and limits are never ignored.")
@click.option(
    "-i", "--ignore-dependencies", is_flag=True, help="Whatever its upstream tasks, its past, its dates or its next try say."
)
@click.option("-I", "--ignore-depends-on-past", is_flag=True, help="Whatever the previous run says.")
@click.option(
    "-d",
    "--depends-on-past",
    type=click.Choice(["check", "ignore", "wait"]),
    default="check",
    show_default=True,
    help="What the previous run says is checked, ignored, or waited for.",
)
@click.option("-f", "--force", is_flag=True, help="Also when it has ended: it gets a new try, what comes after it stays.")
@click.option("--dry-run", is_flag=True, help="Only say what would happen.")
@click.option("-w", "--wait", is_flag=True, help="Wait until it has ended; the exit code is 1 when it failed.")
@click.option("--timeout", type=click.FloatRange(0), help="Wait at most so many seconds.")
@click.option("-m", "--mark-success", is_flag=True, help="Do not run it: mark it success, whatever it waits for.")
@click.option(
    "--pool",
    shell_complete=complete_pools,
    help="The pool whose slots it takes, until the task instance is cleared. Default: the pool that its DAG names.",
)
@click.option("-l", "--local", is_flag=True, hidden=True)
@click.option("-r", "--raw", is_flag=True, hidden=True)
@click.option("-p", "--pickle", hidden=True)
@click.option("--ship-dag", is_flag=True, hidden=True)
@click.option("-j", "--job-id", hidden=True)
@click.option("--cfg-path", hidden=True)
def run(
    dag_id: str,
    task_id: str,
    run: str,
    map_index: int,
    ignore_all_dependencies: bool,
    ignore_dependencies: bool,
    ignore_depends_on_past: bool,
    depends_on_past: str,
    force: bool,
    dry_run: bool,
    wait: bool,
    timeout: float | None,
    mark_success: bool,
    pool: str | None,
    **refused: Any,
) -> int:
    """Run one task of a run now. The scheduler starts it, when its pool and the limits have room for it.

    Refused while it is under way, when it has ended (see --force), and when its dependencies are not met (see -i, -I and -d).
    Ignoring them holds for this one start: a retry waits for them as always. A run that has ended goes on.
    """
    for name, reason in _REFUSED.items():
        if refused.get(name):
            raise NotYetSupported(f"--{name.replace('_', '-')}: {reason}")
    wishes = {
        "all": ignore_all_dependencies,
        "task": ignore_dependencies,
        "past": ignore_depends_on_past or depends_on_past == "ignore",
    }
    ignore = [name for name, wanted in wishes.items() if wanted]
    if ignore and depends_on_past == "wait":
        raise click.UsageError(_CONFLICT)
    with reading() as store:
        run_id = find_run(store, dag_id, run).run_id
    way = door()
    if mark_success:
        return _mark(way, dag_id, run_id, task_id, map_index, dry_run)
    answer = way.call(
        "run_task",
        dag_id=dag_id,
        run_id=run_id,
        task_id=task_id,
        map_index=map_index,
        ignore=ignore or None,
        wait_for_past=depends_on_past == "wait" or None,
        force=force or None,
        dry_run=dry_run or None,
        pool=pool,
    )
    click.echo(_told(answer, dry_run))
    if dry_run:
        return 0
    if wait and way.offline:
        raise click.ClickException(f"it cannot be waited for. {NO_SCHEDULER}")
    say_if_offline(way)
    if answer["is_paused"]:
        click.echo(f"DAG {dag_id} is paused: it waits until it is unpaused (tradewind dags unpause {dag_id}).", err=True)
    return _follow(answer, timeout) if wait else 0


def _mark(way: CommandClient, dag_id: str, run_id: str, task_id: str, map_index: int, dry_run: bool) -> int:
    """Success without running it; what was below it and failed because of it is judged again."""
    which: dict[str, Any] = {"instances": [[task_id, map_index]]} if map_index >= 0 else {"task_ids": [task_id]}
    answer = way.call("mark", dag_id=dag_id, run_id=run_id, state="success", dry_run=dry_run or None, **which)
    touched = answer["task_instances"]
    if not touched:
        click.echo(f"{dag_id}.{task_id} in {run_id} is success already.")
    for one in touched:
        index = f"[{one['map_index']}]" if one["map_index"] >= 0 else ""
        verb = "would be" if dry_run else "is"
        become = "judged again" if one["to"] == "none" else one["to"]
        click.echo(f"{dag_id}.{one['task_id']}{index} in {run_id} {verb} {become} (it was {one['state']})")
    if not dry_run:
        say_if_offline(way)
    return 0


def _told(answer: dict[str, Any], dry_run: bool) -> str:
    """What was done, or would be."""
    index = answer["map_index"]
    name = f"{answer['dag_id']}.{answer['task_id']}{f'[{index}]' if index >= 0 else ''} in {answer['run_id']}"
    if answer["done"] == "waits":
        what = f"{'would wait' if dry_run else 'waits'} for its past: {' '.join(answer['waits_for'])}"
    elif answer["done"] == "success":
        what = f"{'would be' if dry_run else 'is'} success: it has nothing to do"
    else:
        what = "would be scheduled" if dry_run else f"is scheduled, try {answer['try_number']}"
    if answer["pool"] is not None and answer["done"] != "success":
        what += f", in pool {answer['pool']}"
    ignored = f" (ignored: {', '.join(answer['ignored'])})" if answer["ignored"] else ""
    return f"{name} {what}{ignored}; nothing was changed" if dry_run else f"{name} {what}{ignored}"


def _follow(answer: dict[str, Any], timeout: float | None) -> int:
    """Until it has ended; 1 when it failed. Its row is looked at, which is one page of the database."""
    from tradewind.model.states import FAILURES, FINISHED, TaskState

    deadline = None if timeout is None else time.monotonic() + timeout
    which = answer["dag_id"], answer["run_id"], answer["task_id"], answer["map_index"]
    with reading() as store:
        while True:
            state = TaskState(store.task_instance(*which).state or "none")
            if state in FINISHED:
                click.echo(state.value)
                return 1 if state in FAILURES else 0
            if deadline is not None and time.monotonic() > deadline:
                raise click.ClickException(
                    f"{answer['task_id']} had not ended after {timeout:g} s (it is {state.value}); it goes on"
                )
            time.sleep(_LOOK_AGAIN_SECONDS)
