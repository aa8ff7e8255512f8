"""Rows for the web page: the grid, the list of all DAGs, triage, and the pages of a run and a task instance."""

from __future__ import annotations

from typing import Protocol

from tradewind.store.port.dag_overview import DagOverview
from tradewind.store.port.grid_lists import GridLists
from tradewind.store.port.page_lookups import PageLookups
from tradewind.store.port.run_page import RunPageLists
from tradewind.store.port.triage_lists import TriageLists


class PageLists(GridLists, DagOverview, TriageLists, RunPageLists, PageLookups, Protocol):
    """All lists of the web page."""
