"""Deadlines: future deadlines are items of the outbox, missed deadlines have their own table."""

from __future__ import annotations

from tradewind.kernel import deadlines
from tradewind.model.definition import DagDefinition
from tradewind.model.rows import DEADLINE, DeadlineMiss, RunRow
from tradewind.store.sql.engine import Engine
from tradewind.store.sql.queries import Where


def write_deadlines(engine: Engine, definition: DagDefinition, run: RunRow, at: int) -> None:
    """Write the deadlines of a run into the outbox. They replace the run's earlier deadlines."""
    if run.clear_number > 0:
        # also if the DAG has no deadlines any more
        engine.run("DELETE FROM outbox WHERE run = ? AND kind = ?", (run.id, DEADLINE))
    if not definition.slas and not definition.deadlines:
        return
    dates = deadlines.RunDates(run.run_type, run.logical_date, run.run_after, run.queued_at, cleared=run.clear_number > 0)
    found = deadlines.of_run(definition, dates, lambda at_most: durations(engine, run, at_most))
    engine.many(
        "INSERT INTO outbox (kind, identity, payload, created_at, due_at, run) VALUES (?, ?, ?, ?, ?, ?)",
        [
            (DEADLINE, f"{DEADLINE}/{run.id}/{run.clear_number}/{one.name}", one.name.encode(), at, one.due, run.id)
            for one in found
        ],
    )


def durations(engine: Engine, run: RunRow, at_most: int) -> list[int]:
    """Durations of the latest other runs of the DAG that have ended, microseconds, the latest run first."""
    rows = engine.rows(
        """SELECT ended_at - started_at FROM dag_run
           WHERE dag_id = ? AND id <> ? AND ended_at IS NOT NULL AND started_at IS NOT NULL
           ORDER BY run_after DESC, id DESC LIMIT ?""",
        (run.dag_id, run.id, at_most),
    )
    return [took for (took,) in rows]


class DeadlineOperations:
    """See `store.port` for the descriptions of the methods."""

    engine: Engine

    def record_deadline_miss(self, miss: DeadlineMiss) -> bool:
        with self.engine.transaction():
            found = self.engine.run(
                """INSERT INTO deadline_miss (run, dag_id, run_id, task_id, name, label, due_at, noticed_at)
                   VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING""",
                (*miss[:3], miss.task_id or "", *miss[4:]),
            )
        return found == 1

    def deadline_misses(self, dag_id: str | None = None, run: int | None = None, at_most: int = 1000) -> list[DeadlineMiss]:
        where = Where()
        for column, value in (("dag_id", dag_id), ("run", run)):
            if value is not None:
                where.add(f"{column} = ?", value)
        rows = self.engine.rows(
            f"""SELECT run, dag_id, run_id, task_id, name, label, due_at, noticed_at FROM deadline_miss{where.sql}
                ORDER BY id DESC LIMIT ?""",
            (*where.parameters, at_most),
        )
        return [DeadlineMiss(*row)._replace(task_id=row[3] or None) for row in rows]
