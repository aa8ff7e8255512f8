"""Filters, counts, order and pages of the list of all DAGs, on plain values."""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from tradewind.api.ui_shapes import DagCounts
from tradewind.model.errors import did_you_mean
from tradewind.model.states import RUN_STATES
from tradewind.store.port.dag_overview import DagSummary
from tradewind.store.views import BadQuery

NO_RUNS = "none"
"""Stands for a DAG without runs in the filter by state."""

STATES = (*(state.value for state in RUN_STATES), NO_RUNS)


class DagFilters(NamedTuple):
    """The filters of the list. None or empty: no filter."""

    search: str = ""
    """Part of the id, the display name or the description; upper and lower case are equal. All words must be found."""
    tags: Sequence[str] = ()
    """The DAG has all of these tags."""
    owners: Sequence[str] = ()
    """The DAG has one of these owners."""
    states: Sequence[str] = ()
    """The newest run has one of these states."""
    paused: bool | None = None
    import_error: bool | None = None
    favourite: bool | None = None


def state_of(dag: DagSummary) -> str:
    return NO_RUNS if dag.last_state is None else RUN_STATES[dag.last_state].value


class FilteredDags(NamedTuple):
    """The DAGs that match the filters, and the counts of all filters."""

    dags: list[DagSummary]
    counts: DagCounts


def choose(dags: Sequence[DagSummary], names: dict[int, str], favourites: set[str], filters: DagFilters) -> FilteredDags:
    """Filter the DAGs.

    Args:
        names: version → display name, where there is one.
        favourites: DAGs that the caller has marked.

    Raises:
        BadQuery: there is no such state.
    """
    for state in filters.states:
        if state not in STATES:
            raise BadQuery(
                f"{state!r} is not a state of a run; possible are: {', '.join(STATES)}.{did_you_mean(state, STATES)}"
            )
    words = filters.search.casefold().split()
    if words:
        dags = [dag for dag in dags if all(word in _text(dag, names) for word in words)]
    tests: dict[str, Callable[[DagSummary], bool]] = {}
    if filters.tags:
        tests["tags"] = lambda dag: set(filters.tags) <= set(dag.tags)
    if filters.owners:
        tests["owners"] = lambda dag: not set(filters.owners).isdisjoint(dag.owners)
    if filters.states:
        tests["states"] = lambda dag: state_of(dag) in filters.states
    if filters.paused is not None:
        tests["paused"] = lambda dag: dag.is_paused is filters.paused
    if filters.import_error is not None:
        tests["import_error"] = lambda dag: dag.has_import_error is filters.import_error

    if filters.favourite is not None:
        tests["favourite"] = lambda dag: (dag.dag_id in favourites) is filters.favourite

    def but(name: str) -> list[DagSummary]:
        """The DAGs that match all filters except one."""
        if name not in tests:
            return matching
        others = [test for other, test in tests.items() if other != name]
        return [dag for dag in dags if all(test(dag) for test in others)]

    matching = [dag for dag in dags if all(test(dag) for test in tests.values())]
    by_pause = Counter(dag.is_paused for dag in but("paused"))
    return FilteredDags(
        matching,
        DagCounts(
            paused=by_pause[True],
            unpaused=by_pause[False],
            favourites=sum(dag.dag_id in favourites for dag in but("favourite")),
            import_errors=sum(dag.has_import_error for dag in but("import_error")),
            last_state=dict(Counter(state_of(dag) for dag in but("states"))),
            # a further tag narrows the list, so its count includes only DAGs that also have the chosen tags
            tags=_counted(tag for dag in matching for tag in dag.tags),
            owners=_counted(owner for dag in but("owners") for owner in dag.owners),
        ),
    )


def _text(dag: DagSummary, names: dict[int, str]) -> str:
    return f"{dag.dag_id}\n{names.get(dag.version, '')}\n{dag.description or ''}".casefold()


def _counted(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


_LATE = 2**63 - 1

_STATE_ORDER = {"failed": 0, "running": 1, "queued": 2, "success": 3, NO_RUNS: 4}

Key = Callable[[DagSummary, dict[int, str]], int | str]

ORDERS: dict[str, Key] = {
    "dag_id": lambda dag, _: dag.dag_id,
    "name": lambda dag, names: names.get(dag.version, dag.dag_id).casefold(),
    "next_run": lambda dag, _: _LATE if dag.next_run_after is None else dag.next_run_after,
    "last_run": lambda dag, _: -1 if dag.last_run_after is None else dag.last_run_after,
    "state": lambda dag, _: _STATE_ORDER[state_of(dag)],
}


def page_of(
    dags: Sequence[DagSummary], names: dict[int, str], order: str, cursor: str | None, limit: int
) -> tuple[list[DagSummary], str | None]:
    """One page in an order, and the cursor of the next page.

    Args:
        order: one of `ORDERS`; with `-` in front in descending order.
        cursor: from the previous page. DAGs that came or went since do not shift the page.

    Raises:
        BadQuery: an unknown order or cursor.
    """
    descending, field = order.startswith("-"), order.removeprefix("-")
    if field not in ORDERS:
        raise BadQuery(
            f"A list of DAGs cannot be ordered by {field!r}; possible are: {', '.join(ORDERS)}.{did_you_mean(field, ORDERS)}"
        )
    key = ORDERS[field]
    keyed = sorted(((key(dag, names), dag.dag_id, dag) for dag in dags), key=lambda one: one[:2], reverse=descending)
    if cursor is not None:
        last = _read_cursor(cursor)
        try:
            keyed = [one for one in keyed if (one[:2] < last if descending else one[:2] > last)]
        except TypeError:
            raise BadQuery("This cursor belongs to a list in another order.") from None
    page = keyed[:limit]
    following = _cursor(page[-1][0], page[-1][1]) if len(keyed) > limit and page else None
    return [dag for _, _, dag in page], following


def _cursor(value: int | str, dag_id: str) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode((value, dag_id))).decode().rstrip("=")


def _read_cursor(cursor: str) -> tuple[int | str, str]:
    try:
        data = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        return msgspec.json.decode(data, type=tuple[int | str, str])
    except (binascii.Error, ValueError, msgspec.DecodeError):
        raise BadQuery(f"{cursor!r} is not a cursor; send `next` of an earlier response.") from None
