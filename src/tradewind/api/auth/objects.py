"""Finds the DAG behind a request: the DAG in the path or in the body, or the one that a backfill or a callback belongs to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from fastapi import Request

from tradewind.store.port import Reader

ALL = "~"
"""Stands for all DAGs in a path."""


def _dag_of_backfill(reader: Reader, number: int) -> str | None:
    row = reader.backfill(number)
    return None if row is None else row.dag_id


def _dag_of_callback(reader: Reader, number: int) -> str | None:
    item = reader.outbox_item(number)
    run = None if item is None or item.run is None else reader.run(item.run)
    return None if run is None else run.dag_id


BY_NUMBER: Mapping[str, Callable[[Reader, int], str | None]] = {
    "backfill_id": _dag_of_backfill,
    "callback_id": _dag_of_callback,
}
"""Parameter of a path → the DAG that the object with this number belongs to."""

PATH_PARAMETERS = frozenset({"dag_id", *BY_NUMBER})
BODY_FIELD = "dag_id"


async def dag_of(request: Request, reader: Callable[[], Reader]) -> str | None:
    """The id of the DAG that a request is about. None: the request is about several DAGs, about no DAG, or about an object
    that does not exist.

    Args:
        reader: opens a reader that sees all DAGs.
    """
    dag_id = request.path_params.get("dag_id")
    if isinstance(dag_id, str):
        return None if dag_id == ALL else dag_id
    for name, find in BY_NUMBER.items():
        number = request.path_params.get(name)
        if number is not None:
            # text from the path: the route checks later whether it is a number
            return find(reader(), int(number)) if str(number).isascii() and str(number).isdigit() and len(number) < 19 else None
    return await _in_body(request)


async def _in_body(request: Request) -> str | None:
    if not await request.body():
        return None
    try:
        content = json.loads(await request.body())
    except ValueError:
        return None  # the route itself responds with an error
    dag_id = content.get(BODY_FIELD) if isinstance(content, dict) else None
    return dag_id if isinstance(dag_id, str) and dag_id != ALL else None
