"""A copy of the committed rows for the checks, updated after each commit.

The store reports each row that a commit changed. The checks read only this copy; their cost depends only on the changes. The rows
are read directly from the tables, not with the read operations of production.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tradewind.model.definition import DagDefinition
from tradewind.model.waits import Deferral, Resumption


class Run(NamedTuple):
    dag_id: str
    run_id: str
    kind: str
    state: int
    version: int
    logical_date: int | None
    run_after: int
    started_at: int | None
    ended_at: int | None
    revision: int
    journal_seq: int
    clear_number: int
    task_count: int
    rows_created: int
    backfill: int | None
    queued_at: int


class Task(NamedTuple):
    state: int
    fence: int
    tries: int
    max_tries: int
    resume: bool
    requeues: int
    due: int
    started: int
    ended: int
    task_id: str
    map_index: int


class Step(NamedTuple):
    """A row of the journal."""

    slot: int
    fence: int
    before: int
    after: int
    at: int
    cause: str


class Try(NamedTuple):
    """A row of an attempt."""

    try_number: int
    nonce: str | None
    started_at: int | None
    ended_at: int | None
    outcome: str | None


class Wait(NamedTuple):
    """A row of a wait: the wait of a task instance, open or ended."""

    fence: int
    since: int
    deferral: Deferral
    resumption: Resumption | None


class Pool(NamedTuple):
    slots: int
    counts_deferred: bool


class Dag(NamedTuple):
    version: int
    is_paused: bool
    is_active: bool


class Post(NamedTuple):
    """A row of the outbox."""

    identity: str
    payload: bytes
    created: int
    due: int
    tries: int
    parked: str | None
    kind: str
    run: int | None


class Miss(NamedTuple):
    """A row of a missed deadline."""

    run: int
    task_id: str
    """Empty for a deadline of the run."""
    name: str
    due: int


class AssetEvent(NamedTuple):
    """A row of an asset event, which a task instance or a user has created."""

    asset: str
    number: int
    """Number of the asset."""
    dag_id: str | None
    """None: a user has created the event."""
    run_id: str | None
    task_id: str
    map_index: int
    at: int
    extra: bytes | None
    aliases: tuple[str, ...]
    """The aliases of the event, sorted."""


class Delivery(NamedTuple):
    """A row of the delivery of an event to a DAG that waits for its asset."""

    counts: bool
    outcome: int
    """0: waiting, 1: consumed, 2: superseded."""
    run: int | None


Key = tuple[Any, ...]
Change = tuple[str, Key, Any]
"""(kind, key, the new row or None).

Kinds and keys: run (number), task (run, slot), journal (run, seq), attempt (run, slot, fence), xcom (run, task id, map index, key),
wait (run, slot), pool (name), dag (dag id), version (number), epoch (number), outbox (number), miss (number),
asset event (number), delivery (dag id, event).
"""


class Shadow:
    """The committed rows. Finished runs stay, because other runs may depend on them."""

    def __init__(self) -> None:
        self.runs: dict[int, Run] = {}
        self.tasks: dict[int, dict[int, Task]] = {}
        """run → slot → row."""
        self.fold: dict[int, dict[int, tuple[int, int]]] = {}
        """run → slot → (state, fence) by the journal."""
        self.journal_seq: dict[int, int] = {}
        self.attempts: dict[tuple[int, int, int], Try] = {}
        self.waits: dict[tuple[int, int], Wait] = {}
        self.pools: dict[str, Pool] = {}
        self.dags: dict[str, Dag] = {}
        self.versions: dict[int, DagDefinition] = {}
        self.epoch = 0

    def absorb(self, changes: Iterable[Change]) -> list[tuple[str, Key, Any, Any]]:
        """Store the new rows, except those of the journal. Returns the changes with the rows before them."""
        done = []
        for kind, key, row in changes:
            before: Any = None
            if kind == "task":
                rows = self.tasks.setdefault(key[0], {})
                before = rows.get(key[1])
                if row is None:
                    rows.pop(key[1], None)
                else:
                    rows[key[1]] = row
            elif kind in ("journal", "xcom", "outbox", "miss", "asset event", "delivery"):
                pass
            elif kind == "epoch":
                self.epoch = max(self.epoch, key[0])
            else:
                table: dict[Any, Any] = getattr(self, _TABLES[kind])
                place = key if kind in ("attempt", "wait") else key[0]
                before = table.get(place)
                if row is None:
                    table.pop(place, None)
                else:
                    table[place] = row
                if kind == "run" and row is None:
                    self._forget(key[0])
            done.append((kind, key, before, row))
        return done

    def _forget(self, run: int) -> None:
        self.tasks.pop(run, None)
        self.fold.pop(run, None)
        self.journal_seq.pop(run, None)
        for key in [key for key in self.attempts if key[0] == run]:
            del self.attempts[key]
        for place in [place for place in self.waits if place[0] == run]:
            del self.waits[place]


_TABLES = {
    "run": "runs",
    "attempt": "attempts",
    "wait": "waits",
    "pool": "pools",
    "dag": "dags",
    "version": "versions",
}
