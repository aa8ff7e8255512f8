"""Smaller queries of the web page (see `store.port.page_lookups`)."""

from __future__ import annotations

from tradewind.store.port.page_lookups import QUARTER
from tradewind.store.sql.queries import PAGE_SECONDS, bounded
from tradewind.store.sql.run_page import RunPageLists


class PageLookups(RunPageLists):
    """See `store.port.page_lookups`."""

    def run_states_by_quarter(self, dag_id: str, start: int, end: int) -> list[tuple[int, int, int]]:
        with bounded(self.engine, PAGE_SECONDS):
            rows = self.engine.rows(
                f"""SELECT run_after - run_after % {QUARTER}, state, count(*) FROM dag_run
                    WHERE dag_id = ? AND run_after >= ? AND run_after < ? GROUP BY run_after - run_after % {QUARTER}, state""",
                (dag_id, start, end),
            )
        return [(quarter, state, number) for quarter, state, number in rows]

    def runs_named(self, dag_id: str, text: str, limit: int) -> list[tuple[str, int, int]]:
        with bounded(self.engine, PAGE_SECONDS):
            rows = self.engine.rows(
                f"""SELECT run_id, state, run_after FROM dag_run WHERE dag_id = ? AND {self.engine.dialect.contains("run_id")}
                    ORDER BY run_after DESC, id DESC LIMIT ?""",
                (dag_id, f"%{text}%", limit),
            )
        return [(run_id, state, due) for run_id, state, due in rows]

    def favourites(self, user: str) -> set[str]:
        return {row[0] for row in self.engine.rows("SELECT dag_id FROM dag_favorite WHERE user_name = ?", (user,))}
