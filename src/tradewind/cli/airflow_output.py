"""What a command prints when it was given as a command of Airflow (`tradewind airflow …`): Airflow's columns, values and sentences,
so that scripts that read them need no change.

Airflow prints rows as one line of JSON, with all values as texts except null, lists and objects. Differences that remain: dates
of the database have no more digits than ours, and a connection or variable has no number (`id` is null).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import click

from tradewind.model.secret_names import MASK

Row = Mapping[str, Any]

IS_AIRFLOW = "tradewind.airflow_output"
"""Key in the `meta` of click's context: the command line is one of Airflow."""

NO_ROWS = "No data found"
"""What Airflow prints instead of a table without rows."""


def is_airflow() -> bool:
    """Whether the present command was given as a command of Airflow."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(IS_AIRFLOW))


def say(ours: str, airflow: str) -> None:
    """Print a sentence: ours, or the one that Airflow prints if the command was given as a command of Airflow."""
    click.echo(airflow if is_airflow() else ours)


def moment(text: str | None, none: str | None = "", between: str = "T") -> str | None:
    """A moment of the database as Airflow prints it: `2026-01-31T06:00:00+00:00`."""
    return none if text is None else re.sub(r"Z$", "+00:00", text).replace("T", between, 1)


def config_text(rows: Sequence[Row]) -> str:
    """Settings as `airflow config list` prints them: in the form of an airflow.cfg.

    Args:
        rows: `name` is `section.option`.
    """
    sections: dict[str, list[str]] = {}
    for row in rows:
        section, _, option = str(row["name"]).partition(".")
        sections.setdefault(section, []).append(f"{option} = {'' if row['value'] is None else row['value']}")
    return "".join("\n".join([f"[{section}]", *lines, "", ""]) for section, lines in sections.items())


def rows_of(command: str, rows: Sequence[Row], chosen: Sequence[str] | None) -> list[dict[str, Any]] | None:
    """The rows as Airflow has them; None: Airflow has no such rows, and ours are printed.

    Args:
        command: the command of Tradewind, for example `dags list`.
        chosen: the columns that the user has chosen.
    """
    shape = _SHAPES.get(command)
    if shape is None:
        return None
    if chosen is not None:
        return [{name: shape(row).get(name, row.get(name)) for name in chosen} for row in rows]
    return [shape(row) for row in rows]


def text_of(rows: Sequence[Row], output: str, aligned: Callable[..., str]) -> str:
    """The text that Airflow prints for rows.

    Args:
        output: `table`, `plain`, `json` or `yaml`.
        aligned: lays out a table: (columns, cells, plain=…) → text.
    """
    found = [{name: _value(value, output) for name, value in row.items()} for row in rows]
    if output == "json":
        return json.dumps(found) + "\n"
    if output == "yaml":
        import yaml  # lazy import: only for -o yaml

        return str(yaml.safe_dump(found))
    if not found:
        return f"{NO_ROWS}\n"
    none = "None" if output == "table" else ""
    cells = [[none if value is None else str(value) for value in row.values()] for row in found]
    return aligned(list(found[0]), cells, plain=output == "plain")


def _value(value: Any, output: str) -> Any:
    if isinstance(value, list | tuple):
        return (
            ",".join(str(_value(one, output)) for one in value) if output == "table" else [_value(one, output) for one in value]
        )
    if isinstance(value, Mapping) and output != "table":
        return {name: _value(one, output) for name, one in value.items()}
    return None if value is None else str(value)


def _run(row: Row) -> dict[str, Any]:
    return {
        "dag_id": row["dag_id"],
        "run_id": row["run_id"],
        "state": row["state"],
        "run_after": moment(row["run_after"]),
        **{name: moment(row[name]) for name in ("logical_date", "start_date", "end_date")},
    }


def _triggered(row: Row) -> dict[str, Any]:
    dates = ("data_interval_start", "data_interval_end", "end_date", "last_scheduling_decision", "logical_date")
    return {
        "conf": row["conf"] or {},
        "dag_id": row["dag_id"],
        "dag_run_id": row["run_id"],
        **{name: moment(row[name], none=None, between=" ") for name in dates},
        "run_type": row["run_type"],
        "start_date": moment(row["start_date"], none=None, between=" "),
        "state": row["state"],
        "triggering_user_name": row.get("triggering_user_name"),
    }


def _task(row: Row) -> dict[str, Any]:
    return {
        "dag_id": row["dag_id"],
        "logical_date": moment(row["logical_date"]),
        "task_id": row["task_id"],
        "state": row["state"] or "",
        "start_date": moment(row["start_date"]),
        "end_date": moment(row["end_date"]),
        "map_index": row["map_index"] if row["map_index"] >= 0 else "",
    }


def _job(row: Row) -> dict[str, Any]:
    return {
        "dag_id": str(row["dag_id"]),
        "state": row["state"],
        "job_type": row["job_type"],
        "start_date": moment(row["start_date"], none=None, between=" "),
        "end_date": moment(row["end_date"], none=None, between=" "),
    }


def _file(row: Row) -> dict[str, Any]:
    duration = timedelta(seconds=row["duration"] or 0)
    return {
        "file": row["file"],
        "duration": duration,
        "dag_num": row["dag_num"],
        "task_num": row["task_num"],
        "dags": row["dags"],
    }


def _connection(row: Row) -> dict[str, Any]:
    """A connection as Airflow shows it; without its values only id and type."""
    if set(row) == {"conn_id", "conn_type"}:
        return {"conn_id": row["conn_id"], "conn_type": row["conn_type"]}
    from tradewind.cli.connection_fields import to_connection  # lazy import: only this shape needs it

    masked = row.get("extra") == MASK
    fields = {name: value for name, value in row.items() if name != "conn_id" and not (masked and name == "extra")}
    connection = to_connection(row["conn_id"], fields)
    return {
        "id": None,
        "conn_id": row["conn_id"],
        **{name: row.get(name) for name in ("conn_type", "description", "host", "schema", "login", "password", "port")},
        "is_encrypted": row.get("password") is not None,
        "is_extra_encrypted": row.get("extra") is not None,
        "extra_dejson": MASK if masked else connection.extra_dejson,
        "get_uri": connection.get_uri(),
    }


def _details(row: Row) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in ("warnings", "waits_for")}


def _only(*names: str) -> Callable[[Row], dict[str, Any]]:
    return lambda row: {name: row.get(name) for name in names}


_POOL = _only("pool", "slots", "description", "include_deferred", "team_name")

_SHAPES: Mapping[str, Callable[[Row], dict[str, Any]]] = MappingProxyType(
    {
        "assets list": _only("name", "uri", "group", "extra"),
        "connections get": _connection,
        "connections list": _connection,
        "dags details": _details,
        "dags list": _only("dag_id", "fileloc", "owners", "is_paused", "bundle_name", "bundle_version"),
        "dags list-import-errors": _only("bundle_name", "filepath", "error"),
        "dags list-jobs": _job,
        "dags list-runs": _run,
        "dags pause": _only("dag_id", "is_paused"),
        "dags report": _file,
        "dags trigger": _triggered,
        "dags unpause": _only("dag_id", "is_paused"),
        "pools get": _POOL,
        "pools list": _POOL,
        "tasks states-for-dag-run": _task,
        "variables list": lambda row: {name: row[name] for name in ("key", "val") if name in row},
    }
)
"""Command of Tradewind → Airflow's row from ours."""
