"""Which fields of a DAG differ between two readings of an unchanged file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from tradewind.model.definition import decode_definition
from tradewind.parser.parse_result import ReadDag

NAMED_MAX = 3
"""Maximum number of fields that are named."""
_DEPTH_MAX = 12


def varying_fields(before: Sequence[ReadDag], now: Sequence[ReadDag]) -> list[str]:
    """Name the fields that differ, at most `NAMED_MAX`: `default_args.start_date of DAG a`, `tasks.load.params.day of DAG a`.

    Empty: the files have other DAGs.
    """
    found: list[str] = []
    earlier = {dag.dag_id: dag for dag in before}
    for dag in now:
        other = earlier.get(dag.dag_id)
        if other is None or other.hash == dag.hash:
            continue
        one, two = (msgspec.to_builtins(decode_definition(each.definition)) for each in (other, dag))
        for path in _differences(one, two, (), _DEPTH_MAX):
            found.append(f"{'.'.join(path)} of DAG {dag.dag_id}")
            if len(found) == NAMED_MAX:
                return found
    return found


def _differences(one: Any, two: Any, path: tuple[str, ...], depth: int) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the innermost values that differ. Elements of a list are named by their task id or position."""
    if one == two:
        return
    if depth and isinstance(one, dict) and isinstance(two, dict):
        for name in sorted(one.keys() | two.keys()):
            yield from _differences(one.get(name), two.get(name), (*path, str(name)), depth - 1)
    elif depth and isinstance(one, list | tuple) and isinstance(two, list | tuple) and len(one) == len(two):
        for place, (left, right) in enumerate(zip(one, two, strict=True)):
            name = left.get("task_id", str(place)) if isinstance(left, dict) else str(place)
            yield from _differences(left, right, (*path, name), depth - 1)
    else:
        yield path
