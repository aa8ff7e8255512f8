"""`tradewind xcom …`: show XComs; the commands have the names of airflowctl."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tradewind.cli.command_groups import CommandGroup
from tradewind.cli.common import find_run, reading
from tradewind.cli.completers import complete_dags, complete_runs, complete_tasks
from tradewind.cli.output import columns_option, output_option, show
from tradewind.model.errors import NotFound, did_you_mean
from tradewind.settings import load

if TYPE_CHECKING:
    from tradewind.model.rows import XComWrite

T = TypeVar("T")
SHOWN_MAX = 200
"""Maximum number of characters of a value in a list."""
_COLUMNS = ("task_id", "map_index", "key", "value", "timestamp")
_VALUE_KEY = "return_value"


@click.group(cls=CommandGroup)
def xcom() -> None:
    """Show the XComs that tasks have pushed."""


def run_arguments(*, task_needed: bool) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Accept DAG, task and run as arguments or as the options of airflowctl."""

    def decorate(command: Callable[..., T]) -> Callable[..., T]:
        @click.argument("dag", metavar="DAG_ID", required=False, shell_complete=complete_dags)
        @click.argument(
            "task", metavar="TASK_ID" if task_needed else "[TASK_ID]", required=False, shell_complete=complete_tasks
        )
        @click.argument("run", metavar="[RUN_ID_OR_DATE]", required=False, shell_complete=complete_runs)
        @click.option("--dag-id", hidden=True)
        @click.option("--task-id", hidden=True)
        @click.option("-r", "--run-id", "--dag-run-id", "run_id", metavar="RUN_ID_OR_DATE", help="Same as the argument.")
        @click.option("--map-index", type=int, help="Only this map index, for a mapped task.")
        @wraps(command)
        def with_names(*args: Any, dag: str | None, task: str | None, run: str | None, **more: Any) -> T:
            dag, task, run = (
                _one_value(*pair)
                for pair in (
                    ("DAG_ID", dag, more.pop("dag_id")),
                    ("TASK_ID", task, more.pop("task_id")),
                    ("RUN_ID_OR_DATE", run, more.pop("run_id")),
                )
            )
            if dag is None or (task_needed and task is None):
                raise click.UsageError(f"Missing argument '{'DAG_ID' if dag is None else 'TASK_ID'}'.")
            return command(*args, dag_id=dag, task_id=task, run=run, **more)

        return with_names

    return decorate


def _one_value(name: str, argument: str | None, option: str | None) -> str | None:
    if argument is not None and option is not None and argument != option:
        raise click.UsageError(f"two different values are given for {name}: {argument} and {option}")
    return option if argument is None else argument


@xcom.command("list")
@run_arguments(task_needed=False)
@click.option("-k", "--key", "--xcom-key", "key", help="Only XComs with this key.")
@click.option("--limit", type=click.IntRange(1), default=1000, show_default=True, help="Show at most this many.")
@columns_option
@output_option
def list_xcoms(
    dag_id: str,
    task_id: str | None,
    run: str | None,
    map_index: int | None,
    key: str | None,
    limit: int,
    columns: str | None,
    output: str,
) -> None:
    """List the XComs of a run. Default: the newest run."""
    with reading() as store:
        row = find_run(store, dag_id, run)
        known = [task.task_id for task in store.definition(row.version).tasks]
        if task_id is not None and task_id not in known:
            raise NotFound(f"DAG {dag_id} has no task {task_id!r}.{did_you_mean(task_id, known)}")
        found = [_row(one) for one in store.list_xcoms(row.id, task_id=task_id, map_index=map_index, key=key, limit=limit)]
    place = {name: number for number, name in enumerate(known)}
    found.sort(key=lambda one: (place.get(one["task_id"], len(place)), one["map_index"], one["key"]))
    rows = [{"dag_id": dag_id, "run_id": row.run_id, **one} for one in found]
    if output in ("table", "plain"):
        rows = [{**one, "value": _short(one)} for one in rows]
    what = f"{task_id} in {row.run_id}" if task_id else f"The run {row.run_id}"
    show(rows, output, _COLUMNS, chosen=columns, empty=f"{what} has pushed no XComs.")


@xcom.command()
@run_arguments(task_needed=True)
@click.option("-k", "--key", "--xcom-key", "key", default=_VALUE_KEY, show_default=True, help="Key of the XCom.")
def get(dag_id: str, task_id: str, run: str | None, map_index: int | None, key: str) -> None:
    """Print one XCom as JSON; for a mapped task, a list of the values of all map indexes. Default: in the newest run."""
    from tradewind.cli.lookups import Deployment

    settings = load()
    with reading(settings) as store:
        row = find_run(store, dag_id, run)
        found = store.list_xcoms(row.id, task_id=task_id, map_index=map_index, key=key)
        if not found:
            others = sorted({one.key for one in store.list_xcoms(row.id, task_id=task_id, map_index=map_index)})
            keys = f" Its keys: {', '.join(others)}." if others else " It has pushed no XComs."
            which = "" if map_index is None else f"[{map_index}]"
            raise NotFound(f"{task_id}{which} in {row.run_id} has no XCom {key!r}.{keys}")
    files = Deployment(settings)
    values = [_plain(one.value if one.spill is None else files.read_spill(one.spill)) for one in found]
    many = map_index is None and found[0].map_index >= 0
    click.echo(json.dumps(values if many else values[0], ensure_ascii=False, indent=2))


def _row(one: XComWrite) -> dict[str, Any]:
    """The fields of one XCom for a list. The `value` of a large XCom, which is stored in a file, is None."""
    from tradewind.model.moments import iso

    value = _plain(one.value) if one.spill is None else None
    about = {"task_id": one.task_id, "map_index": one.map_index, "key": one.key}
    return {**about, "value": value, "size": one.size, "timestamp": iso(one.at)}


def _plain(data: bytes | None) -> Any:
    """A stored value converted to what JSON can express, such as a date to a string."""
    from tradewind.execution.xcom_codec import decode_xcom
    from tradewind.sdk.exceptions import XComNotSerializable

    if not data:
        return None
    try:
        return json.loads(json.dumps(decode_xcom(data), default=str))
    except XComNotSerializable:  # written by a newer release, or with a library that is not installed
        return json.loads(data)


def _short(row: dict[str, Any]) -> str:
    """A value as the text of a table cell."""
    if row["value"] is None and row["size"] > len("null"):
        return f"({row['size']} bytes)"
    text = row["value"] if isinstance(row["value"], str) else json.dumps(row["value"], ensure_ascii=False)
    return text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 1] + "…"
