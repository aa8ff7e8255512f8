"""Helpers of the tests of the web page's data: runs in given states, and a count of statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from tests.unit.api.conftest import World
from tradewind.model.definition import DagDefinition, encode_definition, version_hash
from tradewind.model.rows import ParsedDag, ParsedFile, RunRow
from tradewind.model.states import RunState, TaskState
from tradewind.store.sql.dialects.sqlite import SqliteEngine

PAGE = "/api/tradewind/v1"

_NOT_OF_ROUTES = ("sqlite_master", "FROM meta", "revoked_token")


def register(world: World, definition: DagDefinition) -> None:
    """Register a DAG, or a newer version of it."""
    data = encode_definition(definition)
    file = f"{definition.dag_id}.py"
    parsed = ParsedDag(definition.dag_id, data, version_hash(data))
    world.store.register_file(ParsedFile("dags", file, "h", (parsed,), None, 9, False, 1), paused_at_creation=False)


def set_states(world: World, run: RunRow, states: Sequence[TaskState], ended: RunState | None = None) -> None:
    """Give the task instances of a run these states, by slot, as a commit does it: with the journal and a new revision."""
    engine = world.store.engine
    now = world.clock.wall()
    with engine.transaction():
        (seq,) = engine.row("SELECT journal_seq FROM dag_run WHERE id = ?", (run.id,)) or (0,)
        before: dict[int, int] = dict(engine.rows("SELECT slot, state FROM task_instance WHERE run = ?", (run.id,)))
        for slot, state in enumerate(states):
            if before[slot] == state.code:
                continue
            seq += 1
            engine.run("UPDATE task_instance SET state = ? WHERE run = ? AND slot = ?", (state.code, run.id, slot))
            engine.run(
                "INSERT INTO journal (run, seq, slot, fence, before, after, at, cause) VALUES (?, ?, ?, 0, ?, ?, ?, 'test')",
                (run.id, seq, slot, before[slot], state.code, now),
            )
        new = RunState.RUNNING if ended is None else ended
        end = None if ended is None else now
        engine.run(
            "UPDATE dag_run SET revision = revision + 1, journal_seq = ?, state = ?, started_at = ?, ended_at = ? WHERE id = ?",
            (seq, new.code, now, end, run.id),
        )


@contextmanager
def counted_statements(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The statements that routes read with: without those that open a connection or check a login."""
    seen: list[str] = []
    rows, row = SqliteEngine.rows, SqliteEngine.row

    def note(engine: SqliteEngine, sql: str) -> None:
        if engine.path.endswith("tradewind.db") and not any(one in sql for one in _NOT_OF_ROUTES):
            seen.append(sql)

    def all_rows(self: SqliteEngine, sql: str, parameters: object = ()) -> list[tuple[object, ...]]:
        note(self, sql)
        return rows(self, sql, parameters)

    def one_row(self: SqliteEngine, sql: str, parameters: object = ()) -> tuple[object, ...] | None:
        note(self, sql)
        return row(self, sql, parameters)

    with monkeypatch.context() as patch:
        patch.setattr(SqliteEngine, "rows", all_rows)
        patch.setattr(SqliteEngine, "row", one_row)
        yield seen
