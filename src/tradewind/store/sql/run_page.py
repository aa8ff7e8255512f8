"""Reads the rows for the page of a run and of a task instance, in a fixed number of statements (see `store.port.run_page`)."""

from __future__ import annotations

from collections.abc import Sequence

from tradewind.model.states import RunState
from tradewind.store.port.run_page import FormerRun, InstanceSummary, TaskTime, XComKey
from tradewind.store.sql.queries import PAGE_SECONDS, bounded
from tradewind.store.sql.triage_lists import TriageLists

_SUCCESS = RunState.SUCCESS.code


class RunPageLists(TriageLists):
    """See `store.port.run_page`."""

    def instance_summaries(self, run: int) -> list[InstanceSummary]:
        with bounded(self.engine, PAGE_SECONDS):
            rows = self.engine.rows(
                """SELECT slot, task_id, map_index, state, try_number, max_tries, started_at, ended_at FROM task_instance
                   WHERE run = ? ORDER BY slot""",
                (run,),
            )
        return [InstanceSummary(*row) for row in rows]

    def states_of_task(self, run: int, task_id: str) -> list[tuple[int, int]]:
        rows = self.engine.rows(
            "SELECT map_index, state FROM task_instance WHERE run = ? AND task_id = ? ORDER BY map_index", (run, task_id)
        )
        return [(index, state) for index, state in rows]

    def run_steps(self, run: int) -> list[tuple[int, int, int, int]]:
        with bounded(self.engine, PAGE_SECONDS):
            rows = self.engine.rows("SELECT slot, before, after, at FROM journal WHERE run = ? ORDER BY seq", (run,))
        return [(slot, before, after, at) for slot, before, after, at in rows]

    def former_runs(self, dag_id: str, run_after: int, limit: int) -> list[FormerRun]:
        rows = self.engine.rows(
            f"""SELECT id, started_at, ended_at FROM dag_run WHERE dag_id = ? AND run_after < ? AND state = {_SUCCESS}
                AND started_at IS NOT NULL AND ended_at IS NOT NULL ORDER BY run_after DESC, id DESC LIMIT ?""",
            (dag_id, run_after, limit),
        )
        return [FormerRun(*row) for row in rows]

    def task_times(self, runs: Sequence[int]) -> list[TaskTime]:
        if not runs:
            return []
        with bounded(self.engine, PAGE_SECONDS):
            rows = self.engine.rows(
                f"""SELECT run, task_id, started_at, ended_at FROM task_instance WHERE run IN ({", ".join("?" * len(runs))})
                    AND started_at IS NOT NULL AND ended_at IS NOT NULL""",
                list(runs),
            )
        return [TaskTime(*row) for row in rows]

    def xcom_keys(self, run: int, task_id: str, map_index: int) -> list[XComKey]:
        rows = self.engine.rows(
            "SELECT key, size, at FROM xcom WHERE run = ? AND task_id = ? AND map_index = ? ORDER BY key",
            (run, task_id, map_index),
        )
        return [XComKey(*row) for row in rows]
