"""`tradewind tasks …`: list, states, tries, history and logs. The other commands are in the modules of `Tasks.lazy`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from tradewind.cli.airflow_output import is_airflow
from tradewind.cli.arguments import dag_argument, optional_run_argument, task_argument
from tradewind.cli.command_groups import LazyCommand, LazyGroup
from tradewind.cli.common import find_run, reading
from tradewind.cli.output import FORMATS, columns_option, output_option, show
from tradewind.model.errors import NotFound

if TYPE_CHECKING:
    from tradewind.storage.port import LogStorage
    from tradewind.store.port import Reader
    from tradewind.store.views import TaskInstanceView

_FOLLOW_SECONDS = 0.1


class Tasks(LazyGroup):
    lazy = {
        "failed-deps": LazyCommand("tasks_test:failed_deps", "List the unmet dependencies of a task."),
        "render": LazyCommand("tasks_test:render", "Render the template fields of a task."),
        "test": LazyCommand("tasks_test:test", "Run one task in this process, without writing to the database."),
        "run": LazyCommand("tasks_run:run", "Run one task of a run now."),
        "clear": LazyCommand("tasks_clear:clear", "Clear task instances, so that they run again."),
        "mark": LazyCommand("tasks_clear:mark", "Set the state of task instances by hand."),
        "note": LazyCommand("tasks_clear:note", "Set the note of a task in a run."),
    }


@click.group(cls=Tasks)
def tasks() -> None:
    """List, run, clear and mark tasks; show their states and logs."""


@tasks.command("list")
@dag_argument
@click.option("-t", "--tree", "as_tree", is_flag=True, help="Show the tasks as a tree of dependencies.")
@click.option("-o", "--output", type=click.Choice(FORMATS), help="Output format. Default: only the ids, one per line.")
def list_tasks(dag_id: str, as_tree: bool, output: str | None) -> None:
    """List the tasks of a DAG."""
    with reading() as store:
        definition = store.current_definition(dag_id)
    if as_tree:
        from tradewind.cli.commands.dags_show import tree

        for line in tree(definition):
            click.echo(line)
        return
    if output is None:
        names = [task.task_id for task in definition.tasks]
        for name in sorted(names) if is_airflow() else names:
            click.echo(name)
        return
    rows = [
        {
            "dag_id": dag_id,
            "task_id": task.task_id,
            "operator_name": task.operator,
            "upstream_task_ids": list(task.upstream),
            "trigger_rule": task.trigger_rule.value,
            "owner": task.owner,
            "retries": task.retries,
            "pool": task.pool,
            "queue": task.queue,
            "priority_weight": task.priority_weight,
        }
        for task in definition.tasks
    ]
    show(rows, output, ("task_id", "operator_name", "upstream_task_ids", "trigger_rule", "pool"))


@tasks.command()
@dag_argument
@task_argument
@optional_run_argument
@click.option("--map-index", type=int, default=-1, help="Map index, for a mapped task.")
def state(dag_id: str, task_id: str, run: str | None, map_index: int) -> None:
    """Print the state of one task. Default: in the newest run."""
    with reading() as store:
        row = find_run(store, dag_id, run)
        click.echo(store.task_instance(dag_id, row.run_id, task_id, map_index).state or "None")


@tasks.command("states-for-dag-run")
@dag_argument
@optional_run_argument
@columns_option
@output_option
def states_for_dag_run(dag_id: str, run: str | None, columns: str | None, output: str) -> None:
    """List the states of all tasks of a run. Default: the newest run."""
    with reading() as store:
        row = find_run(store, dag_id, run)
        order = {task.task_id: number for number, task in enumerate(store.definition(row.version).tasks)}
        found = store.list_task_instances(dag_id, row.run_id, limit=None).rows
    found = sorted(found, key=lambda view: (order.get(view.task_id, 0), view.map_index))
    shown = ["task_id", "map_index", "state", "try_number", "start_date", "end_date", "duration"]
    shown += ["note"] if any(view.note for view in found) else []
    show([_fields(view) for view in found], output, shown, chosen=columns)


def _fields(view: TaskInstanceView) -> dict[str, Any]:
    import msgspec

    row: dict[str, Any] = msgspec.to_builtins(view)
    return {"dag_id": row.pop("dag_id"), "run_id": row.pop("dag_run_id"), "task_id": row.pop("task_id"), **row}


@tasks.command()
@dag_argument
@task_argument
@optional_run_argument
@click.option("--map-index", type=int, default=-1, help="Map index, for a mapped task.")
@output_option
def tries(dag_id: str, task_id: str, run: str | None, map_index: int, output: str) -> None:
    """List the tries of a task with their results and reasons. Default: in the newest run.

    The number of lost attempts is shown if lost attempts are repeated in the same try.
    """
    import msgspec

    with reading() as store:
        found = store.task_tries(dag_id, find_run(store, dag_id, run).run_id, task_id, map_index)
    repeated = any(view.lost_attempts for view in found)
    shown = [*_TRY_COLUMNS, *(["lost_attempts"] if repeated else []), "reason"]
    show([msgspec.to_builtins(view) for view in found], output, shown)


@tasks.command()
@dag_argument
@task_argument
@optional_run_argument
@click.option("--map-index", type=int, default=-1, help="Map index, for a mapped task.")
@output_option
def history(dag_id: str, task_id: str, run: str | None, map_index: int, output: str) -> None:
    """List every state change of a task: time, new state, seconds in that state, and cause. Default: in the newest run."""
    import msgspec

    with reading() as store:
        found = store.task_history(dag_id, find_run(store, dag_id, run).run_id, task_id, map_index)
    empty = f"The task has no state changes yet. See: tradewind why {dag_id} {task_id}"
    show([msgspec.to_builtins(view) for view in found], output, _HISTORY_COLUMNS, empty=empty)


_HISTORY_COLUMNS = ("at", "state", "lasted", "cause")
_TRY_COLUMNS = ("try_number", "state", "start_date", "end_date", "duration", "hostname")


# --- logs -------------------------------------------------------------------------------------------------------------------


@tasks.command()
@dag_argument
@task_argument
@optional_run_argument
@click.option("--try", "try_number", type=click.IntRange(1), help="Number of the try. Default: the latest.")
@click.option("--map-index", type=int, default=-1, help="Map index, for a mapped task.")
@click.option("-f", "--follow", is_flag=True, help="Follow the log until the task has ended.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Output format.")
def logs(dag_id: str, task_id: str, run: str | None, try_number: int | None, map_index: int, follow: bool, output: str) -> None:
    """Print the log of a task. Default: in the newest run."""
    from tradewind.cli.compose.log_uploads import log_storage
    from tradewind.settings import load

    settings = load()
    with reading(settings) as store:
        run_id = find_run(store, dag_id, run).run_id
        if try_number is None:
            tries = store.task_tries(dag_id, run_id, task_id, map_index)
            if not tries and not follow:
                raise NotFound(
                    f"{task_id} in {run_id} has not started yet, so it has no log. See: tradewind why {dag_id} {task_id}"
                )
        _print_logs(store, log_storage(settings), (dag_id, run_id, task_id, map_index), try_number, follow, output)


def _print_logs(
    store: Reader, logs: LogStorage, which: tuple[str, str, str, int], try_number: int | None, follow: bool, output: str
) -> None:
    """Print the log so far; with `follow` continue until the task has ended."""
    from datetime import UTC, datetime

    from tradewind.api.log_reading import Position, lines, missing_log_notice, notice_line, plan
    from tradewind.model.moments import to_micros

    place: Position | None = None
    current = 0
    empty: str | None = None
    while True:
        view = store.task_instance(*which)
        wanted = try_number or view.try_number or 0
        if wanted and wanted != current:
            current, place = wanted, None
        if current:
            files = store.log_files(*which, current)
            before, empty = empty, missing_log_notice(logs, files, to_micros(datetime.now(UTC))) if place is None else None
            if empty is not None and empty != before:
                _print_record(notice_line(empty).rstrip(b"\n"), output)
            while True:
                found = plan(logs, files, place, to_micros(datetime.now(UTC)))
                for line in lines(logs, found.pieces):
                    _print_record(line, output)
                if found.next_position is None or found.next_position == place or not found.pieces:
                    break
                place = found.next_position
            sys.stdout.flush()
            if found.next_position is None and (try_number is not None or view.end_date is not None):
                return
        if not follow:
            return
        time.sleep(_FOLLOW_SECONDS)


def _print_record(line: bytes, output: str) -> None:
    from tradewind.api.log_reading import record

    if not line:
        return
    if output == "json":
        sys.stdout.write(line.decode("utf-8", "replace") + "\n")
        return
    found = record(line)
    level = str(found.get("level", "")).upper()
    head = " ".join(part for part in (str(found.get("timestamp", "")), level) if part)
    sys.stdout.write(f"{head}  {found['event']}\n" if head else f"{found['event']}\n")
