"""Reads the rows for the triage page, in a fixed number of statements (see `store.port.triage_lists`)."""

from __future__ import annotations

from collections.abc import Sequence

from tradewind.model.states import RunState, TaskState
from tradewind.store.port.triage_lists import FailedInstance, LatestEndedRuns, MissedDeadline, UnfinishedRun
from tradewind.store.sql.dag_overview import DagOverview
from tradewind.store.sql.queries import PAGE_SECONDS, bounded

_SUCCESS, _FAILED = RunState.SUCCESS.code, RunState.FAILED.code
_TASK_FAILED, _UPSTREAM = TaskState.FAILED.code, TaskState.UPSTREAM_FAILED.code

_FAILURES = f"t.state IN ({_TASK_FAILED}, {_UPSTREAM})"
"""The condition of the partial index `task_instance_failed`; SQLite uses the index only if a query repeats it."""

_INSTANCE = """t.run, r.dag_id, r.run_id, r.state, r.run_after, t.slot, t.task_id, t.map_index, t.try_number, t.max_tries,
    t.started_at, t.ended_at, t.reason"""

MISSES_MAX = 200


class TriageLists(DagOverview):
    """See `store.port.triage_lists`."""

    def latest_ended_runs(self) -> list[LatestEndedRuns]:
        newest = """(SELECT n.id FROM dag_run n WHERE n.dag_id = d.dag_id AND n.state {which}
            ORDER BY n.run_after DESC, n.id DESC LIMIT 1)"""
        rows = self.engine.rows(
            f"""SELECT d.dag_id, r.id, r.run_id, r.state, r.run_after, r.ended_at, f.id, f.run_id, f.ended_at
                FROM dag d JOIN dag_run r ON r.id = {newest.format(which=">= 2")}
                LEFT JOIN dag_run f ON f.id = {newest.format(which=f"= {_FAILED}")} WHERE d.is_active = 1"""
        )
        return [LatestEndedRuns(*row) for row in rows]

    def failed_instances(self, runs: Sequence[int], limit: int) -> list[FailedInstance]:
        if not runs:
            return []
        rows = self.engine.rows(
            f"""SELECT {_INSTANCE} FROM task_instance t JOIN dag_run r ON r.id = t.run
                WHERE t.run IN ({_marks(runs)}) AND {_FAILURES} AND t.state = {_TASK_FAILED}
                ORDER BY t.ended_at DESC, t.run, t.slot LIMIT ?""",
            (*runs, limit),
        )
        return [FailedInstance(*row) for row in rows]

    def failed_in_unfinished_runs(self, limit: int) -> list[FailedInstance]:
        rows = self.engine.rows(
            f"""SELECT {_INSTANCE} FROM dag_run r JOIN task_instance t ON t.run = r.id
                WHERE r.state < 2 AND {_FAILURES} AND t.state = {_TASK_FAILED}
                ORDER BY t.ended_at DESC, t.run, t.slot LIMIT ?""",
            (limit,),
        )
        return [FailedInstance(*row) for row in rows]

    def upstream_failed_counts(self, runs: Sequence[int]) -> dict[int, int]:
        if not runs:
            return {}
        return dict(
            self.engine.rows(
                f"""SELECT t.run, count(*) FROM task_instance t
                    WHERE t.run IN ({_marks(runs)}) AND {_FAILURES} AND t.state = {_UPSTREAM} GROUP BY t.run""",
                list(runs),
            )
        )

    def unfinished_runs(self, limit: int) -> list[UnfinishedRun]:
        rows = self.engine.rows(
            """SELECT id, dag_id, run_id, run_type, state, run_after, started_at, task_count FROM dag_run WHERE state < 2
               ORDER BY run_after, id LIMIT ?""",
            (limit,),
        )
        return [UnfinishedRun(*row) for row in rows]

    def unfinished_count(self) -> int:
        row = self.engine.row("SELECT count(*) FROM dag_run WHERE state < 2")
        assert row is not None
        return int(row[0])

    def usual_durations(self, dag_ids: Sequence[str], limit: int) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {dag_id: [] for dag_id in dag_ids}
        if not dag_ids:
            return found
        part = f"""SELECT * FROM (SELECT dag_id, ended_at - started_at FROM dag_run WHERE dag_id = ? AND state = {_SUCCESS}
            AND started_at IS NOT NULL AND ended_at IS NOT NULL ORDER BY run_after DESC, id DESC LIMIT ?) AS newest"""
        parameters = [value for dag_id in dag_ids for value in (dag_id, limit)]
        with bounded(self.engine, PAGE_SECONDS):
            for dag_id, duration in self.engine.rows(" UNION ALL ".join([part] * len(dag_ids)), parameters):
                found[dag_id].append(duration)
        return found

    def missed_deadlines(self) -> list[MissedDeadline]:
        rows = self.engine.rows(
            """SELECT m.run, coalesce(m.label, m.name), m.due_at FROM deadline_miss m JOIN dag_run r ON r.id = m.run
               WHERE r.state < 2 ORDER BY m.id DESC LIMIT ?""",
            (MISSES_MAX,),
        )
        return [MissedDeadline(*row) for row in rows]


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))
