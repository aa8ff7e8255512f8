"""Pulled XComs: the request for the stored values, and the result of `xcom_pull` in the shape that Airflow gives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tradewind.execution import xcom_backend
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.lazy_list import LazyList
from tradewind.sdk.variables import NOTSET
from tradewind.wire import runtime
from tradewind.wire.messages import Failure, XComPull, XComs

Rows = dict[str, dict[int, Callable[[], Any]]]
"""Task id → map index → reader of the value, which decodes it."""


def request_rows(request: XComPull) -> Rows:
    """Request stored values.

    Raises:
        AirflowException: the runtime of this process could not answer.
    """
    answer = runtime.ask(request)
    if not isinstance(answer, XComs):
        reason = answer.reason if isinstance(answer, Failure) else f"unexpected answer {type(answer).__name__}"
        raise AirflowException(f"cannot pull the XCom {request.key!r} of {', '.join(request.task_ids)}: {reason}")
    rows: Rows = {}
    for task_id, index, data, spill in answer.values:
        rows.setdefault(task_id, {})[index] = reader(data, spill)
    return rows


def reader(data: bytes, spill: str | None = None) -> Callable[[], Any]:
    """A function that decodes a value. `spill` names the file of a large value."""
    if spill is None:
        return lambda: xcom_backend.decode(data)
    return lambda: xcom_backend.decode(runtime.current().read_spill(spill))


def indexes_of(map_indexes: Any) -> tuple[int, ...] | None:
    """The argument `map_indexes` as a tuple; None means all indexes."""
    if map_indexes is NOTSET or map_indexes is None:
        return None
    return (map_indexes,) if isinstance(map_indexes, int) else tuple(map_indexes)


def result_of(
    ids: Sequence[str],
    rows: Mapping[str, Mapping[int, Callable[[], Any]]],
    *,
    single: bool,
    map_indexes: Any,
    indexes: Sequence[int] | None,
    default: Any,
) -> Any:
    """The result of `xcom_pull`.

    Args:
        ids: the tasks, in the order of the result.
        single: the caller named one task: the result is a value, not a list.
        map_indexes: the argument of the caller.
        indexes: the map indexes to read; None: all.
        default: the result for a value that was not pushed.
    """
    found: list[Any] = []
    for task_id in ids:
        values = rows.get(task_id, {})
        if indexes is not None:
            found.extend(values[index]() if index in values else default for index in indexes)
        elif not values:
            found.append(default)
        elif single and any(index >= 0 for index in values):
            return _lazy_list([values[index] for index in sorted(values)])
        else:
            found.extend(values[index]() for index in sorted(values))
    one_index = map_indexes is NOTSET or map_indexes is None or isinstance(map_indexes, int)
    return found[0] if single and one_index else found


def _lazy_list(readers: Sequence[Callable[[], Any]]) -> LazyList:
    """A list whose values are decoded on access."""
    return LazyList(len(readers), lambda index: readers[index]())
