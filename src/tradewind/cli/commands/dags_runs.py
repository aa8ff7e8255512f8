"""`tradewind dags list-runs`, `list-skipped`, `state`, `next-execution` and `trigger`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from tradewind.cli.airflow_output import is_airflow, moment
from tradewind.cli.arguments import dag_argument, json_object, optional_run_argument
from tradewind.cli.common import MOMENT, NO_SCHEDULER, command_client, find_run, reading, warn_if_no_scheduler
from tradewind.cli.completers import complete_dags
from tradewind.cli.output import columns_option, output_option, show, show_one
from tradewind.model.errors import NotFound
from tradewind.model.moments import SECOND
from tradewind.platform.clock import SystemClock

if TYPE_CHECKING:
    from tradewind.model.rows import DagPlan
    from tradewind.store.port import Reader
    from tradewind.store.views import DagView, RunView


def run_fields(view: RunView) -> dict[str, Any]:
    """The fields of a run, with the names of Airflow's command line."""
    import msgspec

    row: dict[str, Any] = msgspec.to_builtins(view)
    return {"dag_id": row.pop("dag_id"), "run_id": row.pop("dag_run_id"), "state": row.pop("state"), **row}


_RUN_COLUMNS = ("dag_id", "run_id", "state", "run_after", "logical_date", "start_date", "end_date")


@click.command("list-runs")
@click.argument("dag_id", required=False, shell_complete=complete_dags)
@click.option("-d", "--dag-id", "dag_option", hidden=True)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(["queued", "running", "success", "failed"]),
    help="Only runs in this state; can be repeated.",
)
@click.option("-s", "--start-date", type=MOMENT, help="Only runs from this logical date on.")
@click.option("-e", "--end-date", type=MOMENT, help="Only runs up to this logical date.")
@click.option("--no-backfill", is_flag=True, help="Leave out runs of backfills.")
@click.option("--limit", type=click.IntRange(1), help="Show at most this many, the newest first.")
@columns_option
@output_option
def list_runs(
    dag_id: str | None,
    dag_option: str | None,
    states: tuple[str, ...],
    start_date: int | None,
    end_date: int | None,
    no_backfill: bool,
    limit: int | None,
    columns: str | None,
    output: str,
) -> None:
    """List the runs of a DAG, or of all DAGs, the newest first."""
    wanted = dag_id or dag_option or "~"
    ranges = {"logical_date_gte": start_date, "logical_date_lte": end_date}
    kinds = ["scheduled", "manual", "asset_triggered", "operator_triggered", "asset_materialization"] if no_backfill else []
    with reading() as store:
        found = store.list_runs(
            wanted,
            states=states,
            run_types=kinds,
            ranges={name: date for name, date in ranges.items() if date is not None},
            limit=limit,
            order_by=("-run_after",),
        )
    shown = (*_RUN_COLUMNS, "note") if any(view.note for view in found.rows) else _RUN_COLUMNS
    known = () if wanted == "~" else ("dag_id",)
    show([run_fields(view) for view in found.rows], output, shown, chosen=columns, known=known, empty="There are no such runs.")


@click.command("list-skipped")
@dag_argument
@click.option(
    "--limit", type=click.IntRange(1), default=50, show_default=True, help="Show at most this many, the latest first."
)
@columns_option
@output_option
def list_skipped(dag_id: str, limit: int, columns: str | None, output: str) -> None:
    """List the scheduled dates for which no run was created, and why. A backfill can create the missing runs."""
    from tradewind.model.moments import iso

    with reading() as store:
        store.need_dag(dag_id)
        found = store.skipped(dag_id, limit)
    rows = [
        {"from_date": iso(one.from_date), "before": iso(one.to_date), "reason": one.reason, "at": iso(one.at)} for one in found
    ]
    show(rows, output, ("from_date", "before", "reason", "at"), chosen=columns, empty="No scheduled run was skipped.")


@click.command()
@dag_argument
@optional_run_argument
def state(dag_id: str, run: str | None) -> None:
    """Print the state of a run. Default: the newest run."""
    with reading() as store:
        if is_airflow() and not _has_run(store, dag_id, run):
            click.echo("None")  # scripts poll until the run exists
            return
        row = find_run(store, dag_id, run)
        conf = store.run_details(dag_id, row.run_id).conf if is_airflow() else None
        click.echo(row.state.value + (f", {json.dumps(conf)}" if conf else ""))


def _has_run(store: Reader, dag_id: str, run: str | None) -> bool:
    store.need_dag(dag_id)
    try:
        find_run(store, dag_id, run)
    except NotFound:
        return False
    return True


_NEXT_FIELDS = ("logical_date", "data_interval_start", "data_interval_end", "run_after")


@click.command("next-execution")
@dag_argument
@click.option("-n", "--num-executions", type=click.IntRange(1, 10_000), default=1, show_default=True, help="How many runs.")
@click.option(
    "--field", type=click.Choice(_NEXT_FIELDS), default="run_after", show_default=True, help="Which date of each run to print."
)
@click.option("--table", is_flag=True, help="Show all dates of each run as a table.")
@output_option
def next_execution(dag_id: str, num_executions: int, field: str, table: bool, output: str) -> None:
    """Show when the next scheduled runs start."""
    with reading() as store:
        plan, view = store.need_dag(dag_id), store.dag_view(dag_id)
        waits = _waits_for_assets(store, plan)
    rows = _next_runs(plan, view, num_executions)
    if output != "table" and num_executions == 1:
        show_one(rows[0] if rows else dict.fromkeys(_NEXT_FIELDS), output)
    elif table or output != "table":
        show(rows, output, _NEXT_FIELDS)
    else:
        for row in rows:
            click.echo((moment(row[field]) if is_airflow() else row[field]) or "None")
    if not rows:
        if output == "table":
            click.echo("None")
        click.echo(f"DAG {dag_id} has no next scheduled run.", err=True)
    if waits is not None:
        click.echo(f"DAG {dag_id} {'also ' if rows else ''}runs when assets are updated: {waits}.", err=True)
    if plan.is_paused:
        click.echo(f"DAG {dag_id} is paused: no run starts before it is unpaused.", err=True)


def _waits_for_assets(store: Reader, plan: DagPlan) -> str | None:
    """The assets that the DAG still waits for, in words; None if the DAG is not scheduled on assets."""
    if plan.assets is None:
        return None
    from tradewind.scheduler.assets.answers import waits_for_assets

    return waits_for_assets(store, plan)


def _next_runs(plan: DagPlan, view: DagView, count: int) -> list[dict[str, Any]]:
    """The next scheduled runs, as if each were created on time. For a custom timetable only the first one is known."""
    from tradewind.model.definition import CustomSchedule, decode_schedule
    from tradewind.model.moments import iso
    from tradewind.timetables import Bounds, RunTimes, next_run

    schedule, bounds = decode_schedule(plan.schedule), Bounds(plan.start_date, plan.end_date, plan.catchup)
    if isinstance(schedule, CustomSchedule):
        following = {name: getattr(view, f"next_dagrun_{name}") for name in _NEXT_FIELDS}
        return [following] if following["run_after"] is not None else []
    last = None if plan.last is None else RunTimes(*plan.last)
    now = SystemClock().wall()
    rows: list[dict[str, Any]] = []
    while len(rows) < count:
        times = next_run(schedule, last, bounds, now)
        if times is None or times == last:
            break
        moments = (times.logical_date, times.start, times.end, times.run_after)
        rows.append(dict(zip(_NEXT_FIELDS, (iso(moment) for moment in moments), strict=True)))
        last, now = times, max(now, times.run_after)
    return rows


@click.command()
@dag_argument
@click.option("-c", "--conf", metavar="JSON", help="Parameters of the run, as a JSON object.")
@click.option("-r", "--run-id", help="Run id of the new run.")
@click.option("-l", "--logical-date", "-e", "--exec-date", type=MOMENT, help="Logical date of the run. Default: now.")
@click.option(
    "--no-logical-date",
    is_flag=True,
    help="Create a run without a logical date; {{ ds }} and related variables do not exist in it.",
)
@click.option(
    "--replace-microseconds/--no-replace-microseconds", default=False, help="Round the logical date down to whole seconds."
)
@click.option(
    "--partition-key", help="Partition key of the run; only for a DAG with partitions. The run has no logical date then."
)
@click.option("--note", help="Note to store with the run.")
@click.option("-w", "--wait", is_flag=True, help="Wait until the run has ended; the exit code is 1 if it failed.")
@click.option("--timeout", type=click.FloatRange(0), help="Wait at most this many seconds.")
@output_option
def trigger(
    dag_id: str,
    conf: str | None,
    run_id: str | None,
    logical_date: int | None,
    no_logical_date: bool,
    replace_microseconds: bool,
    partition_key: str | None,
    note: str | None,
    wait: bool,
    timeout: float | None,
    output: str,
) -> int:
    """Trigger a run of a DAG."""
    from tradewind.wire import commands as c

    if no_logical_date and logical_date is not None:
        raise click.UsageError("--logical-date and --no-logical-date exclude each other")
    if logical_date is None and not no_logical_date and partition_key is None:
        # as in Airflow 2 and the web page of Airflow 3: templates like {{ ds }} work in a manual run
        logical_date = SystemClock().wall()
    if replace_microseconds and logical_date is not None:
        logical_date -= logical_date % SECOND
    client = command_client()
    given = json_object(conf, "--conf")
    made = client.call(c.Trigger(dag_id, run_id, logical_date, conf=given, note=note, partition_key=partition_key))
    if wait and client.offline:
        raise click.ClickException(f"the run {made.run_id} was created and is waiting. {NO_SCHEDULER}")
    if wait:
        from tradewind.cli.wait_for_run import wait_for_run

        _warn_if_paused(dag_id)

        click.echo(wait_for_run(dag_id, made.run_id, timeout), err=True)
    with reading() as store:
        view = store.run_details(dag_id, made.run_id)
    if output == "table" and not is_airflow():
        click.echo(f"{view.dag_run_id}  {view.state.value}")
    else:
        show([run_fields(view)], output, _RUN_COLUMNS)
    warn_if_no_scheduler(client)
    if not wait:
        _warn_if_paused(dag_id)
    return 1 if wait and view.state.value == "failed" else 0


def _warn_if_paused(dag_id: str) -> None:
    """Say that a run of this DAG does not start, and what to do about it."""
    with reading() as store:
        paused = store.dag_view(dag_id).is_paused
    if paused:
        click.echo(
            f"DAG {dag_id} is paused: the run waits until the DAG is unpaused (tradewind dags unpause {dag_id}).", err=True
        )
