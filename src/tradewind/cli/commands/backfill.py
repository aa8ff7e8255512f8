"""`tradewind backfill …`: runs for past dates, which the scheduler creates a few at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from tradewind.cli.arguments import dag_argument, json_object
from tradewind.cli.command_groups import CommandGroup
from tradewind.cli.common import MOMENT, NO_SCHEDULER, command_client, confirm, reading, warn_if_no_scheduler
from tradewind.cli.completers import complete_dags
from tradewind.cli.live_table import duration_text
from tradewind.cli.output import columns_option, output_option, show, show_one
from tradewind.cli.progress import progress
from tradewind.model.counts import counted
from tradewind.model.errors import NotFound

if TYPE_CHECKING:
    from tradewind.model.rows import BackfillRow
    from tradewind.store.port import Reader

BEHAVIORS = ("none", "failed", "completed")
_PLAN_COLUMNS = ("logical_date", "partition_key", "outcome", "run_id")
_COLUMNS = ("id", "dag_id", "from_date", "to_date", "state", "progress", "running", "failed")
_LOOK_AGAIN_SECONDS = 0.2


@click.group(cls=CommandGroup)
def backfill() -> None:
    """Create, watch, pause and cancel backfills: runs for past dates."""


def _create_options(command: Any) -> Any:
    for option in (
        output_option,
        click.option("--timeout", type=click.FloatRange(0), help="Wait at most this many seconds."),
        click.option(
            "-w",
            "--wait",
            is_flag=True,
            help="Wait until the backfill has ended; the exit code is 1 if one of its runs failed.",
        ),
        click.option("-y", "--yes", is_flag=True, hidden=True),
        click.option(
            "--dry-run", is_flag=True, help="Only list what would happen to each run: new, rerun, or skipped with the reason."
        ),
        click.option(
            "--reprocess-behavior",
            type=click.Choice(BEHAVIORS),
            default="none",
            show_default=True,
            help="Which existing runs are run again.",
        ),
        click.option("--accept-depends-on-past", "accepts_depends_on_past", is_flag=True, hidden=True),
        click.option(
            "--run-backwards", is_flag=True, help="Create the newest run first. Not possible if a task depends on the past."
        ),
        click.option(
            "--max-active-runs",
            type=click.IntRange(1),
            default=10,
            show_default=True,
            help="Maximum number of unfinished runs of this backfill at a time, in addition to other runs of the DAG.",
        ),
        click.option("--dag-run-conf", metavar="JSON", help="Parameters of each run, as a JSON object."),
        click.option("--to-date", type=MOMENT, required=True, help="The last logical date, or partition date."),
        click.option("--from-date", type=MOMENT, required=True, help="The first logical date, or partition date."),
    ):
        command = option(command)
    return command


@backfill.command()
@click.option("--dag-id", required=True, shell_complete=complete_dags, help="The DAG.")
@click.option(
    "--run-on-latest-version/--no-run-on-latest-version",
    default=None,
    help="Whether repeated runs move to the newest version of their bundle. Default: as the DAG says with "
    "rerun_with_latest_version, otherwise they do.",
)
@_create_options
def create(dag_id: str, dag_run_conf: str | None, **given: Any) -> int:
    """Create the runs of a DAG's schedule between two dates. Existing runs stay as they are; see --reprocess-behavior."""
    return start(dag_id, conf=json_object(dag_run_conf, "--dag-run-conf"), **given)


def start(
    dag_id: str,
    *,
    conf: dict[str, Any] | None,
    from_date: int,
    to_date: int,
    max_active_runs: int,
    run_backwards: bool,
    reprocess_behavior: str,
    dry_run: bool,
    wait: bool,
    timeout: float | None,
    output: str,
    yes: bool = True,
    run_on_latest_version: bool | None = None,
    accepts_depends_on_past: bool = False,
) -> int:
    """Create a backfill, or with `dry_run` show its plan. Returns the exit code."""
    from tradewind.wire import commands as c

    client = command_client()
    options = (max_active_runs, run_backwards, reprocess_behavior, dry_run, run_on_latest_version, accepts_depends_on_past)
    command = c.CreateBackfill(dag_id, from_date, to_date, conf, *options)
    made = client.call(command)
    if made.backfill is None:
        show([msgspec.structs.asdict(run) for run in made.plan], output, _PLAN_COLUMNS)
        if output == "table":
            counts: dict[str, int] = {}
            for run in made.plan:
                word = run.outcome.partition(":")[0]
                counts[word] = counts.get(word, 0) + 1
            summary = ", ".join(f"{count} {word}" for word, count in counts.items())
            click.echo(f"{counted(len(made.plan), 'run')}: {summary}. Nothing was changed.", err=True)
        return 0
    number = made.backfill.id
    if output == "table":
        click.echo(f"Backfill {number} of DAG {dag_id}: {counted(made.runs, 'run')}, {made.to_do} of them will be run.")
    with reading() as store:
        paused = store.need_dag(dag_id).is_paused
    if wait and client.offline:
        raise click.ClickException(f"backfill {number} was created and is waiting. {NO_SCHEDULER}")
    warn_if_no_scheduler(client)
    if paused:
        click.echo(
            f"DAG {dag_id} is paused: the backfill waits until the DAG is unpaused (tradewind dags unpause {dag_id}).", err=True
        )
    failed = _wait(number, timeout) if wait else 0
    if output != "table":
        with reading() as store:
            show_one(_fields(store, _need(store, str(number))), output)
    return 1 if failed else 0


def _wait(number: int, timeout: float | None) -> int:
    """Wait until the backfill has ended. Returns the number of its failed runs."""
    deadline = None if timeout is None else time.monotonic() + timeout
    with reading() as store:
        row = _need(store, str(number))
        began = time.monotonic()
        with progress(f"Backfill {number}", row.planned, slow=True) as bar:
            while True:
                row = _need(store, str(number))
                states = _states(store, row)
                done = row.handled - states.get("queued", 0) - states.get("running", 0)
                bar.set(done, row.planned, f"Backfill {number}, {states.get('running', 0)} running")
                if row.completed_at is not None and not states.get("queued") and not states.get("running"):
                    break
                if deadline is not None and time.monotonic() > deadline:
                    raise click.ClickException(f"backfill {number} had not ended after {timeout:g} s; it continues")
                time.sleep(_LOOK_AGAIN_SECONDS)
    click.echo(_closing_line(row, states, time.monotonic() - began), err=True)
    return states.get("failed", 0)


def _closing_line(row: BackfillRow, states: dict[str, int], seconds: float) -> str:
    """The closing line: `Backfill 3 of DAG d is completed after 12.3 s: 29 success, 1 failed, 2 not changed.`"""
    counts = [f"{count} {state}" for state, count in sorted(states.items(), key=lambda one: one[0] != "success")]
    left = row.handled - sum(states.values())
    counts += [f"{left} not changed"] if left > 0 else []
    word = "completed" if row.handled >= row.planned else f"cancelled at {row.handled} of {counted(row.planned, 'run')}"
    text = f"Backfill {row.id} of DAG {row.dag_id} is {word} after {duration_text(round(seconds * 1_000_000))}"
    text += f": {', '.join(counts) or 'no runs'}."
    return text + (f"\nShow the runs: tradewind backfill show {row.id} --runs" if states.get("failed") else "")


def _states(store: Reader, row: BackfillRow) -> dict[str, int]:
    """Number of the backfill's runs in each state."""
    return {state.value: count for state, count in store.backfill_run_counts(row.dag_id, row.id).items()}


def _fields(store: Reader, row: BackfillRow) -> dict[str, Any]:
    from tradewind.scheduler.commands.backfills import backfill_info

    states = _states(store, row)
    if row.completed_at is not None:
        state = "completed" if row.handled >= row.planned else "cancelled"
    else:
        state = "paused" if row.is_paused else "running"
    done = row.handled - states.get("queued", 0) - states.get("running", 0)
    counts = {"running": states.get("running", 0) + states.get("queued", 0), "failed": states.get("failed", 0)}
    return {**msgspec.structs.asdict(backfill_info(row)), "state": state, "progress": f"{done}/{row.planned}", **counts}


def _need(store: Reader, which: str) -> BackfillRow:
    """The backfill with this number, or of this DAG: the active one, otherwise the latest.

    Raises:
        NotFound: there is no such backfill.
    """
    found = store.backfill(int(which)) if which.isdigit() else None
    if found is None and not which.isdigit():
        store.need_dag(which)
        found = next(iter(store.backfills(which) or store.backfills(which, active=False)[::-1]), None)
    if found is None:
        hint = "See: tradewind backfill list --all"
        raise NotFound(f"there is no backfill {which}. {hint}" if which.isdigit() else f"DAG {which} has no backfill. {hint}")
    return found


def _to_number(which: str) -> int:
    with reading() as store:
        return _need(store, which).id


# --- list, show, pause, cancel --------------------------------------------------------------------------------------------


@backfill.command("list")
@click.option("-d", "--dag-id", shell_complete=complete_dags, help="Only backfills of this DAG.")
@click.option("--all", "everything", is_flag=True, help="Include backfills that have ended.")
@columns_option
@output_option
def list_backfills(dag_id: str | None, everything: bool, columns: str | None, output: str) -> None:
    """List active backfills with their progress."""
    with reading() as store:
        if dag_id is not None:
            store.need_dag(dag_id)
        rows = [_fields(store, row) for row in store.backfills(dag_id, active=not everything)]
    show(
        rows,
        output,
        _COLUMNS,
        chosen=columns,
        empty="There are no backfills." if everything else "There is no active backfill.",
    )


@backfill.command("show")
@click.argument("which", metavar="ID_OR_DAG_ID", shell_complete=complete_dags)
@click.option("--runs", is_flag=True, help="List the runs that the backfill has handled so far, and what happened to each.")
@output_option
def show_backfill(which: str, runs: bool, output: str) -> None:
    """Show one backfill: its arguments and its progress."""
    from tradewind.model.moments import iso

    with reading() as store:
        row = _need(store, which)
        if not runs:
            show_one(_fields(store, row), output)
            return
        outcomes = store.backfill_outcomes(row.id)
        found = []
        for one in outcomes:
            run = store.find_run(row.dag_id, one.run_id) if one.run_id is not None else None
            date = iso(one.logical_date) if one.partition_key is None else None
            about = {"logical_date": date, "partition_key": one.partition_key, "outcome": one.outcome, "run_id": one.run_id}
            found.append({**about, "state": run.state.value if run is not None else None})
    show(found, output, (*_PLAN_COLUMNS, "state"), empty="The backfill has not handled any run yet.")


@backfill.command()
@click.argument("which", metavar="ID_OR_DAG_ID", nargs=-1, required=True, shell_complete=complete_dags)
def pause(which: tuple[str, ...]) -> None:
    """Stop creating runs of a backfill. Runs that exist continue."""
    _set_paused(which, True)


@backfill.command()
@click.argument("which", metavar="ID_OR_DAG_ID", nargs=-1, required=True, shell_complete=complete_dags)
def unpause(which: tuple[str, ...]) -> None:
    """Continue to create runs of a backfill."""
    _set_paused(which, False)


def _set_paused(names: Sequence[str], paused: bool) -> None:
    from tradewind.wire import commands as c

    client = command_client()
    for number in [_to_number(name) for name in names]:
        answer = client.call(c.PauseBackfill(number, paused))
        word = "paused" if paused else "unpaused"
        click.echo(f"Backfill {number} of DAG {answer.backfill.dag_id} {'is now' if answer.changed else 'was already'} {word}")
    if not paused:
        warn_if_no_scheduler(client)


@backfill.command()
@click.argument("which", metavar="ID_OR_DAG_ID", shell_complete=complete_dags)
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
def cancel(which: str, yes: bool) -> None:
    """Cancel a backfill: no more runs are created. Runs that exist continue."""
    from tradewind.wire import commands as c

    number = _to_number(which)
    with reading() as store:
        row = _need(store, str(number))
    confirm(f"Backfill {number} of DAG {row.dag_id} has {counted(row.planned - row.handled, 'run')} left. Cancel it?", yes)
    answer = command_client().call(c.CancelBackfill(number)).backfill
    click.echo(f"Backfill {number} of DAG {row.dag_id} is cancelled after {answer.handled} of {counted(answer.runs, 'run')}.")


# --- the command of Airflow 2 -----------------------------------------------------------------------------------------------


@click.command("backfill", hidden=True)
@dag_argument
@click.option("-s", "--start-date", type=MOMENT, required=True)
@click.option("-e", "--end-date", type=MOMENT, required=True)
@click.option("-c", "--conf", metavar="JSON")
@click.option("-B", "--run-backwards", is_flag=True)
@click.option("-n", "--dry-run", is_flag=True)
@click.option("--rerun-failed-tasks", is_flag=True)
@click.option("--reset-dagruns", is_flag=True)
@click.option("-y", "--yes", is_flag=True)
@output_option
def airflow2_backfill(
    dag_id: str,
    start_date: int,
    end_date: int,
    conf: str | None,
    run_backwards: bool,
    dry_run: bool,
    rerun_failed_tasks: bool,
    reset_dagruns: bool,
    yes: bool,
    output: str,
) -> int:
    """Airflow 2's `dags backfill`, now `backfill create`. It waits until the backfill has ended, as in Airflow 2."""
    return start(
        dag_id,
        conf=json_object(conf, "--conf"),
        from_date=start_date,
        to_date=end_date,
        max_active_runs=10,
        run_backwards=run_backwards,
        reprocess_behavior="completed" if reset_dagruns else "failed" if rerun_failed_tasks else "none",
        dry_run=dry_run,
        wait=not dry_run,
        timeout=None,
        output=output,
        accepts_depends_on_past=True,
    )
