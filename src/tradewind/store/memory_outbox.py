"""The in-memory twin's verbs on the outbox and on deadlines."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from tradewind.kernel import deadlines
from tradewind.model.definition import DagDefinition
from tradewind.model.rows import DEADLINE, DeadlineMiss, OutboxItem, RunRow


class MemoryOutbox:
    """See `store.port.Store` for what each verb promises. The tables are the store's."""

    _outbox: dict[int, OutboxItem]
    """number → post."""
    _posted: dict[str, int]
    """identity → number."""
    _misses: dict[int, DeadlineMiss]
    """number → missed deadline."""
    _runs: Any

    def transaction(self) -> AbstractContextManager[None]:
        raise NotImplementedError

    def _next(self, name: str) -> int:
        raise NotImplementedError

    def post(
        self, kind: str, identity: str, payload: bytes, at: int, due: int | None = None, run: int | None = None, slot: int = -1
    ) -> None:
        with self.transaction():
            if identity not in self._posted:
                number = self._next("outbox")
                item = OutboxItem(number, kind, identity, payload, 0, run, slot, at, at if due is None else due)
                self._outbox[number], self._posted[identity] = item, number

    def due_posts(
        self, at: int, at_most: int = 100, *, only: str | None = None, without: str | None = None
    ) -> list[OutboxItem]:
        due = [
            item
            for item in self._outbox.values()
            if item.due_at <= at and item.parked is None and only in (None, item.kind) and item.kind != without
        ]
        return sorted(due, key=lambda item: (item.due_at, item.id))[:at_most]

    def next_post_due(self, after: int) -> int | None:
        waiting = [item.due_at for item in self._outbox.values() if item.parked is None and item.due_at > after]
        return min(waiting, default=None)

    def posts(self, *, parked: bool | None = None, run: int | None = None, at_most: int = 1000) -> list[OutboxItem]:
        found = [
            item
            for _, item in sorted(self._outbox.items())
            if parked in (None, item.parked is not None) and run in (None, item.run) and item.kind != DEADLINE
        ]
        return found[:at_most]

    def find_post(self, item: int) -> OutboxItem | None:
        return self._outbox.get(item)

    def acknowledge(self, item: int) -> None:
        with self.transaction():
            found = self._outbox.get(item)
            if found is not None:
                del self._outbox[item], self._posted[found.identity]

    def postpone(self, item: int, due: int, parked: str | None = None, problem: str | None = None) -> None:
        with self.transaction():
            found = self._outbox.get(item)
            if found is not None:
                tries = found.tries + 1
                self._outbox[item] = found._replace(tries=tries, due_at=due, parked=parked, problem=problem)

    def settle_posts(self, kind: str, beginning: str, due: int | None) -> int:
        with self.transaction():
            found = [one for one in self._outbox.values() if one.kind == kind and one.identity.startswith(beginning)]
            for item in found:
                if due is None:
                    del self._outbox[item.id], self._posted[item.identity]
                else:
                    self._outbox[item.id] = item._replace(due_at=min(item.due_at, due))
            return len(found)

    def retry_post(self, item: int, due: int) -> None:
        with self.transaction():
            found = self._outbox.get(item)
            if found is not None:
                self._outbox[item] = found._replace(tries=0, due_at=due, parked=None)

    # --- deadlines ---------------------------------------------------------------------------------------------------

    def _post_deadlines(self, definition: DagDefinition, run: RunRow, at: int) -> None:
        """The deadlines of a run, in the place of those of its earlier life."""
        if not definition.slas and not definition.deadlines:
            return
        for item in [item for item in self._outbox.values() if item.run == run.id and item.kind == DEADLINE]:
            self.acknowledge(item.id)
        dates = deadlines.RunDates(run.run_type, run.logical_date, run.run_after, run.queued_at, cleared=run.clear_number > 0)
        for one in deadlines.of_run(definition, dates, lambda at_most: self._durations(run.dag_id, at_most)):
            identity = f"{DEADLINE}/{run.id}/{run.clear_number}/{one.name}"
            self.post(DEADLINE, identity, one.name.encode(), at, one.due, run.id)

    def _durations(self, dag_id: str, at_most: int) -> list[int]:
        rows = [row for row in self._runs.values() if row.dag_id == dag_id and row.ended_at is not None and row.started_at]
        rows.sort(key=lambda row: (row.run_after, row.id), reverse=True)
        return [row.ended_at - row.started_at for row in rows[:at_most]]

    def note_miss(self, miss: DeadlineMiss) -> bool:
        with self.transaction():
            key = (miss.run, miss.name, miss.task_id, miss.due_at)
            if any((one.run, one.name, one.task_id, one.due_at) == key for one in self._misses.values()):
                return False
            self._misses[self._next("miss")] = miss
        return True

    def misses(self, dag_id: str | None = None, run: int | None = None, at_most: int = 1000) -> list[DeadlineMiss]:
        found = [
            miss
            for _, miss in sorted(self._misses.items(), reverse=True)
            if dag_id in (None, miss.dag_id) and run in (None, miss.run)
        ]
        return found[:at_most]
