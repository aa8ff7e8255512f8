"""`tradewind dags …`"""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import click

from tradewind.cli.common import MOMENT, NO_SCHEDULER, door, find_run, reading, say_if_offline, sure
from tradewind.cli.lazy import HelpfulGroup
from tradewind.cli.output import columns_option, output_option, show, show_one
from tradewind.service.clock import SystemClock
from tradewind.settings import load

if TYPE_CHECKING:
    from tradewind.model.definition import DagDefinition
    from tradewind.store.sqlite.store import SqliteStore
    from tradewind.store.views import RunView

_LOOK_AGAIN_SECONDS = 0.1


@click.group(cls=HelpfulGroup)
def dags() -> None:
    """List, show, trigger, pause and test DAGs."""


@dags.command("list")
@click.option("--paused/--unpaused", default=None, help="Only those.")
@click.option("--tag", "tags", multiple=True, help="Only DAGs with this tag; may be given several times.")
@click.option("--all", "everything", is_flag=True, help="Also DAGs whose file is gone.")
@columns_option
@output_option
def list_dags(paused: bool | None, tags: tuple[str, ...], everything: bool, columns: str | None, output: str) -> None:
    """All DAGs."""
    import msgspec

    with reading() as store:
        found = store.list_dags(paused=paused, tags=tags, active=None if everything else True, limit=None).rows
        broken = store.import_errors(limit=1).total
    if broken:
        click.echo(f"{broken} DAG file(s) cannot be read: tradewind dags list-import-errors", err=True)
    rows = [msgspec.to_builtins(view) for view in found]
    shown = ("dag_id", "timetable_summary", "is_paused", "owners", "fileloc")
    show(rows, output, shown, chosen=columns, empty="There are no DAGs yet. Put a DAG file into " + load().paths.dags)


@dags.command()
@click.argument("dag_id")
@output_option
def details(dag_id: str, output: str) -> None:
    """Everything that is known of one DAG."""
    import msgspec

    with reading() as store:
        show_one(msgspec.to_builtins(store.dag_details(dag_id)), output)


@dags.command("show")
@click.argument("dag_id")
@output_option
def show_dag(dag_id: str, output: str) -> None:
    """The tasks of a DAG, each with what it waits for."""
    with reading() as store:
        view, definition = store.dag_view(dag_id), store.current_definition(dag_id)
    rows = [
        {
            "task_id": task.task_id,
            "operator": task.operator,
            "upstream": list(task.upstream),
            "trigger_rule": task.trigger_rule.value,
            "retries": task.retries,
            "pool": task.pool,
        }
        for task in _in_order(definition)
    ]
    if output == "table":
        state = "paused" if view.is_paused else "active"
        click.echo(f"{dag_id}  ({view.timetable_summary or 'no schedule'}, {state}, {len(rows)} tasks)  {view.fileloc}")
    show(rows, output, ("task_id", "operator", "upstream", "trigger_rule", "retries", "pool"))


def _in_order(definition: DagDefinition) -> list[Any]:
    """Tasks, parents before children, otherwise as written."""
    left = {task.task_id: set(task.upstream) for task in definition.tasks}
    by_id = {task.task_id: task for task in definition.tasks}
    below: dict[str, list[str]] = {}
    for task in definition.tasks:
        for parent in task.upstream:
            below.setdefault(parent, []).append(task.task_id)
    ready = [name for name, parents in left.items() if not parents]
    found = []
    for name in ready:  # grows while it is walked
        found.append(by_id[name])
        for child in below.get(name, ()):
            left[child].discard(name)
            if not left[child]:
                ready.append(child)
    return found


@dags.command("list-import-errors")
@columns_option
@output_option
def list_import_errors(columns: str | None, output: str) -> int:
    """DAG files that cannot be read, and why. The exit code is 1 when there are any."""
    import msgspec

    with reading() as store:
        found = store.import_errors(limit=None).rows
    rows = []
    for view in found:
        row = msgspec.to_builtins(view)
        rows.append({"bundle_name": row["bundle_name"], "filepath": row["filename"], "error": row["stack_trace"], **row})
    show(rows, output, ("filepath", "line", "message"), chosen=columns, empty="Every DAG file can be read.")
    return 1 if rows else 0


# --- runs -----------------------------------------------------------------------------------------------------------------


def run_fields(view: RunView) -> dict[str, Any]:
    """A run under the names of Airflow's command line."""
    import msgspec

    row: dict[str, Any] = msgspec.to_builtins(view)
    return {"dag_id": row.pop("dag_id"), "run_id": row.pop("dag_run_id"), "state": row.pop("state"), **row}


_RUN_COLUMNS = ("dag_id", "run_id", "state", "run_after", "logical_date", "start_date", "end_date")


@dags.command("list-runs")
@click.argument("dag_id", required=False)
@click.option("-d", "--dag-id", "dag_option", hidden=True)
@click.option("--state", "states", multiple=True, help="Only runs in this state; may be given several times.")
@click.option("-s", "--start-date", type=MOMENT, help="Only runs from this logical date on.")
@click.option("-e", "--end-date", type=MOMENT, help="Only runs up to this logical date.")
@click.option("--no-backfill", is_flag=True, help="Without the runs of backfills.")
@click.option("--limit", type=click.IntRange(1), help="At most so many, the newest.")
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
    """Runs of a DAG, or of all DAGs, the newest first."""
    wanted = dag_id or dag_option or "~"
    ranges = {"logical_date_gte": start_date, "logical_date_lte": end_date}
    kinds = ["scheduled", "manual", "asset_triggered"] if no_backfill else []
    with reading() as store:
        found = store.list_runs(
            wanted,
            states=states,
            run_types=kinds,
            ranges={name: date for name, date in ranges.items() if date is not None},
            limit=limit,
            order_by=("-run_after",),
        )
    show([run_fields(view) for view in found.rows], output, _RUN_COLUMNS, chosen=columns, empty="There are no such runs.")


@dags.command()
@click.argument("dag_id")
@click.argument("run", metavar="RUN_ID_OR_DATE", required=False)
def state(dag_id: str, run: str | None) -> None:
    """The state of a run (of the newest one unless told)."""
    with reading() as store:
        click.echo(find_run(store, dag_id, run).state.value)


@dags.command("next-execution")
@click.argument("dag_id")
@output_option
def next_execution(dag_id: str, output: str) -> None:
    """When the next scheduled run is due."""
    with reading() as store:
        view = store.dag_view(dag_id)
    if output in ("json", "yaml"):
        names = ("logical_date", "data_interval_start", "data_interval_end", "run_after")
        show_one({name: getattr(view, f"next_dagrun_{name}") for name in names}, output)
    elif view.next_dagrun_run_after is None:
        click.echo("None")
        click.echo(f"DAG {dag_id} has no next scheduled run.", err=True)
    else:
        click.echo(view.next_dagrun_run_after)
    if view.is_paused:
        click.echo(f"DAG {dag_id} is paused: nothing runs before it is unpaused.", err=True)


@dags.command()
@click.argument("dag_id")
@click.option("-c", "--conf", metavar="JSON", help="Parameters of the run, a JSON object.")
@click.option("-r", "--run-id", help="Name of the run.")
@click.option("-l", "--logical-date", "-e", "--exec-date", type=MOMENT, help="Logical date of the run; default: now.")
@click.option("--no-logical-date", is_flag=True, help="Give the run no logical date: {{ ds }} and its kin do not exist in it.")
@click.option("--note", help="A remark that stays with the run.")
@click.option("-w", "--wait", is_flag=True, help="Wait until the run has ended; the exit code is 1 when it failed.")
@click.option("--timeout", type=click.FloatRange(0), help="Wait at most so many seconds.")
@output_option
def trigger(
    dag_id: str,
    conf: str | None,
    run_id: str | None,
    logical_date: int | None,
    no_logical_date: bool,
    note: str | None,
    wait: bool,
    timeout: float | None,
    output: str,
) -> int:
    """Start a run of a DAG now."""
    if no_logical_date and logical_date is not None:
        raise click.UsageError("--logical-date and --no-logical-date exclude each other")
    if logical_date is None and not no_logical_date:
        # as Airflow 2 and the web page of Airflow 3 do: templates like {{ ds }} work in a run started by hand
        logical_date = SystemClock().wall()
    way = door()
    given = _read_conf(conf)
    row = way.call("trigger", dag_id=dag_id, conf=given, run_id=run_id, logical_date=logical_date, note=note)
    if wait and way.offline:
        raise click.ClickException(f"the run {row['run_id']} was created and waits. {NO_SCHEDULER}")
    if wait:
        _wait(dag_id, row["run_id"], timeout)
    with reading() as store:
        view, paused = store.run_details(dag_id, row["run_id"]), store.dag_view(dag_id).is_paused
    if output == "table":
        click.echo(f"{view.dag_run_id}  {view.state.value}")
    else:
        show([run_fields(view)], output, _RUN_COLUMNS)
    say_if_offline(way)
    if paused and not wait:
        click.echo(f"DAG {dag_id} is paused: the run waits until it is unpaused (tradewind dags unpause {dag_id}).", err=True)
    return 1 if wait and view.state.value == "failed" else 0


def _read_conf(conf: str | None) -> dict[str, Any] | None:
    if conf is None:
        return None
    try:
        found = json.loads(conf)
    except ValueError as error:
        raise click.BadParameter(f"not JSON: {error}", param_hint="--conf") from None
    if not isinstance(found, dict):
        raise click.BadParameter(f'must be a JSON object like {{"name": 1}}, not {conf!r}', param_hint="--conf")
    return found


def _wait(dag_id: str, run_id: str, timeout: float | None) -> None:
    """Until the run has ended: its row is looked at, which is one page of the database."""
    deadline = None if timeout is None else time.monotonic() + timeout
    with reading() as store:
        while store.need_run(dag_id, run_id).ended_at is None:
            if deadline is not None and time.monotonic() > deadline:
                raise click.ClickException(f"the run {run_id} had not ended after {timeout:g} s; it goes on")
            time.sleep(_LOOK_AGAIN_SECONDS)


@dags.command()
@click.argument("dag", metavar="DAG_ID_OR_FILE")
@click.argument("logical_date", type=MOMENT, required=False)
@click.option("-c", "--conf", metavar="JSON", help="Parameters of the run, a JSON object.")
@click.option("-f", "--dagfile-path", "file", type=click.Path(), help="The DAG's file, when the DAG is not known yet.")
@click.option("--mark-success-pattern", metavar="REGEX", help="Tasks whose id matches are taken for done.")
def test(dag: str, logical_date: int | None, conf: str | None, file: str | None, mark_success_pattern: str | None) -> int:
    """Run a DAG once, in this process and without a trace in the database; breakpoints work."""
    from tradewind.cli.rehearse import find_dag, rehearse

    given = _read_conf(conf)
    return 0 if rehearse(find_dag(load(), dag, file), logical_date, given, mark_success_pattern) else 1


# --- pausing ----------------------------------------------------------------------------------------------------------------


@dags.command()
@click.argument("dag_id")
@click.option("--treat-dag-id-as-regex", "regex", is_flag=True, help="All DAGs whose id matches.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@output_option
def pause(dag_id: str, regex: bool, yes: bool, output: str) -> None:
    """Stop scheduling a DAG; what runs goes on."""
    _set_paused(dag_id, True, regex, yes, output)


@dags.command()
@click.argument("dag_id")
@click.option("--treat-dag-id-as-regex", "regex", is_flag=True, help="All DAGs whose id matches.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@output_option
def unpause(dag_id: str, regex: bool, yes: bool, output: str) -> None:
    """Let a DAG be scheduled."""
    _set_paused(dag_id, False, regex, yes, output)


def _set_paused(dag_id: str, paused: bool, regex: bool, yes: bool, output: str) -> None:
    names = [dag_id]
    if regex:
        with reading() as store:
            names = matching(store, dag_id)
        verb = "pause" if paused else "unpause"
        sure(f"{len(names)} DAGs match: {', '.join(names[:20])}{' ...' if len(names) > 20 else ''}\nReally {verb} them?", yes)
    way = door()
    rows = [way.call("set_paused", dag_id=name, is_paused=paused) for name in names]
    if output == "table":
        for row in rows:
            word = "paused" if row["is_paused"] else "unpaused"
            click.echo(f"{row['dag_id']} {'is now' if row['changed'] else 'was already'} {word}")
    else:
        show([{"dag_id": row["dag_id"], "is_paused": row["is_paused"]} for row in rows], output, ("dag_id", "is_paused"))
    if not paused:
        say_if_offline(way)


def matching(store: SqliteStore, pattern: str) -> list[str]:
    """Ids of the DAGs that a regular expression matches (from their beginning, as Airflow does).

    Raises:
        click.ClickException: it is none, or matches nothing.
    """
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise click.BadParameter(f"{pattern!r} is not a regular expression: {error}", param_hint="DAG_ID") from None
    found = [plan.dag_id for plan in store.plans() if plan.is_active and compiled.match(plan.dag_id)]
    if not found:
        raise click.ClickException(f"no DAG matches {pattern!r}")
    return found
