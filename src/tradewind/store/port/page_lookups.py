"""Smaller queries of the web page: calendar, search, favourites."""

from __future__ import annotations

from typing import Protocol

QUARTER = 15 * 60 * 1_000_000
"""A quarter of an hour, microseconds. Runs are counted by quarters of an hour, because the offset of every time zone is a multiple
of it.
"""


class PageLookups(Protocol):
    """Each method executes one statement."""

    def run_states_by_quarter(self, dag_id: str, start: int, end: int) -> list[tuple[int, int, int]]:
        """(start of the quarter of an hour, state code, number) of the runs that are due in [start, end), microseconds."""

    def runs_named(self, dag_id: str, text: str, limit: int) -> list[tuple[str, int, int]]:
        """(run id, state code, run_after) of a DAG's newest runs whose id contains a text."""

    def favourites(self, user: str) -> set[str]:
        """The ids of the DAGs that a user has marked as favourites."""
