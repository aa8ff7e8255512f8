"""`tradewind tasks run`: run one task instance now, through the scheduler."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from tradewind.cli.arguments import dag_argument, run_argument, task_argument
from tradewind.cli.common import NO_SCHEDULER, command_client, find_run, reading, warn_if_no_scheduler
from tradewind.cli.completers import complete_pools
from tradewind.model.errors import NotYetSupported

if TYPE_CHECKING:
    from tradewind.cli.command_client import CommandClient
    from tradewind.wire.commands import RunTaskResult

_LOOK_AGAIN_SECONDS = 0.05

_REFUSED = {
    "local": "a task always runs on this machine, started by its worker host; leave out --local",
    "raw": "a task always runs under its worker host, which writes its log and enforces its limits; to run it in this process: "
    "tradewind tasks test",
    "pickle": "code is not pickled: tasks are loaded from their DAG file",
    "ship_dag": "code is not pickled: tasks are loaded from their DAG file",
    "job_id": "task attempts have no job ids",
    "cfg_path": "settings are not passed in files: set them for the scheduler and the worker host",
}
"""Options of Airflow that are refused → the reason."""

_CONFLICT = "--depends-on-past wait cannot be given together with an option that ignores dependencies"


@click.command()
@dag_argument
@task_argument
@run_argument
@click.option("--map-index", type=int, default=-1, help="Map index, for a mapped task.")
@click.option("-A", "--ignore-all-dependencies", is_flag=True, help="Same as -i; pools and limits are never ignored.")
@click.option(
    "-i", "--ignore-dependencies", is_flag=True, help="Ignore upstream tasks, the previous run, dates and the retry delay."
)
@click.option("-I", "--ignore-depends-on-past", is_flag=True, help="Ignore the previous run.")
@click.option(
    "-d",
    "--depends-on-past",
    type=click.Choice(["check", "ignore", "wait"]),
    default="check",
    show_default=True,
    help="Check, ignore, or wait for the task's state in the previous run.",
)
@click.option("-f", "--force", is_flag=True, help="Run a finished task again, as a new try. Downstream tasks are not changed.")
@click.option("--dry-run", is_flag=True, help="Only print what would happen.")
@click.option("-w", "--wait", is_flag=True, help="Wait until the task has ended; the exit code is 1 if it failed.")
@click.option("--timeout", type=click.FloatRange(0), help="Wait at most this many seconds.")
@click.option("-m", "--mark-success", is_flag=True, help="Do not run the task; mark it as success.")
@click.option(
    "--pool",
    shell_complete=complete_pools,
    help="Pool of the task instance, until it is cleared. Default: the pool in the DAG file.",
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
    """Run one task of a run now. The scheduler starts it as soon as its pool and the limits allow.

    The command is refused if the task is running, if it has ended (see --force), or if its dependencies are not met (see -i, -I
    and -d). Dependencies are ignored for this one start: a retry waits for them again. A finished run becomes running again.
    """
    from tradewind.wire import commands as c

    for name, reason in _REFUSED.items():
        if refused.get(name):
            raise NotYetSupported(f"--{name.replace('_', '-')}: {reason}")
    wanted = {
        "all": ignore_all_dependencies,
        "task": ignore_dependencies,
        "past": ignore_depends_on_past or depends_on_past == "ignore",
    }
    ignore = [name for name, given in wanted.items() if given]
    if ignore and depends_on_past == "wait":
        raise click.UsageError(_CONFLICT)
    with reading() as store:
        run_id = find_run(store, dag_id, run).run_id
    client = command_client()
    if mark_success:
        return _mark_success(client, dag_id, run_id, task_id, map_index, dry_run)
    command = c.RunTask(
        dag_id,
        run_id,
        task_id,
        map_index,
        ignore,
        wait_for_past=depends_on_past == "wait",
        force=force,
        dry_run=dry_run,
        pool=pool,
    )
    answer = client.call(command)
    click.echo(_summary(answer, dry_run))
    if dry_run:
        return 0
    if wait and client.offline:
        raise click.ClickException(f"--wait is not possible. {NO_SCHEDULER}")
    warn_if_no_scheduler(client)
    if answer.is_paused:
        click.echo(
            f"DAG {dag_id} is paused: the task waits until the DAG is unpaused (tradewind dags unpause {dag_id}).", err=True
        )
    return _wait_for_end(answer, timeout) if wait else 0


def _mark_success(client: CommandClient, dag_id: str, run_id: str, task_id: str, map_index: int, dry_run: bool) -> int:
    """Mark the task as success without running it. Downstream tasks that failed because of it are evaluated again."""
    from tradewind.wire import commands as c

    command = c.MarkTasks(
        dag_id=dag_id,
        run_id=run_id,
        task_ids=[] if map_index >= 0 else [task_id],
        instances=[(task_id, map_index)] if map_index >= 0 else [],
        state="success",
        dry_run=dry_run,
    )
    touched = client.call(command).task_instances
    if not touched:
        click.echo(f"{dag_id}.{task_id} in {run_id} is already success.")
    for one in touched:
        index = f"[{one.map_index}]" if one.map_index >= 0 else ""
        verb = "would be" if dry_run else "is"
        become = "evaluated again" if one.to == "none" else one.to
        click.echo(f"{dag_id}.{one.task_id}{index} in {run_id} {verb} {become} (it was {one.state})")
    if not dry_run:
        warn_if_no_scheduler(client)
    return 0


def _summary(answer: RunTaskResult, dry_run: bool) -> str:
    """What was done, or would be done, in a sentence."""
    index = answer.map_index
    name = f"{answer.dag_id}.{answer.task_id}{f'[{index}]' if index >= 0 else ''} in {answer.run_id}"
    if answer.done == "waits":
        what = f"{'would wait' if dry_run else 'waits'} for the previous run: {' '.join(answer.waits_for)}"
    elif answer.done == "success":
        what = f"{'would be' if dry_run else 'is'} success: the task has nothing to do"
    else:
        what = "would be scheduled" if dry_run else f"is scheduled, try {answer.try_number}"
    if answer.pool is not None and answer.done != "success":
        what += f", in pool {answer.pool}"
    ignored = f" (ignored: {', '.join(answer.ignored)})" if answer.ignored else ""
    return f"{name} {what}{ignored}; nothing was changed" if dry_run else f"{name} {what}{ignored}"


def _wait_for_end(answer: RunTaskResult, timeout: float | None) -> int:
    """Wait until the task has ended. Returns 1 if it failed. Each check reads one row, which is one page of the database."""
    from tradewind.model.states import FAILURES, FINISHED, TaskState

    deadline = None if timeout is None else time.monotonic() + timeout
    which = answer.dag_id, answer.run_id, answer.task_id, answer.map_index
    with reading() as store:
        while True:
            state = TaskState(store.task_instance(*which).state or "none")
            if state in FINISHED:
                click.echo(state.value)
                return 1 if state in FAILURES else 0
            if deadline is not None and time.monotonic() > deadline:
                raise click.ClickException(
                    f"{answer.task_id} had not ended after {timeout:g} s (it is {state.value}); it continues"
                )
            time.sleep(_LOOK_AGAIN_SECONDS)
