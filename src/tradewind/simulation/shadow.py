"""What is committed, as the checkers know it: plain rows that follow each commit.

The stores tell of every row that a commit changed; nothing else is ever looked at, so a check costs what changed. Rows are read
from the tables themselves, not through the verbs that production reads them with.
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
    """A row of a wait: what the task instance waits for, or has waited for."""

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
    """A row of a deadline that was missed."""

    run: int
    task_id: str
    """Empty: the run itself."""
    name: str
    due: int


class AssetEvent(NamedTuple):
    """An asset was updated, by a task instance or by somebody."""

    asset: str
    number: int
    """Of the asset."""
    dag_id: str | None
    """None: a person has written it."""
    run_id: str | None
    task_id: str
    map_index: int
    at: int
    extra: bytes | None
    aliases: tuple[str, ...]
    """Under which it came, sorted."""


class Delivery(NamedTuple):
    """What became of an event for a DAG that waits for its asset."""

    counts: bool
    outcome: int
    """0 waits, 1 consumed, 2 superseded."""
    run: int | None


Key = tuple[Any, ...]
Change = tuple[str, Key, Any]
"""(kind, key, the row that stands there now or None).

Kinds and keys: run (number), task (run, slot), journal (run, seq), attempt (run, slot, fence), xcom (run, task id, map index, key),
wait (run, slot), pool (name), dag (dag id), version (number), epoch (number), outbox (number), miss (number),
asset event (number), delivery (dag id, event).
"""


class Shadow:
    """The committed rows. Finished runs stay: they are the past of others."""

    def __init__(self) -> None:
        self.runs: dict[int, Run] = {}
        self.tasks: dict[int, dict[int, Task]] = {}
        """run → slot → row."""
        self.fold: dict[int, dict[int, tuple[int, int]]] = {}
        """run → slot → (state, fence) as the journal says."""
        self.journal_seq: dict[int, int] = {}
        self.attempts: dict[tuple[int, int, int], Try] = {}
        self.waits: dict[tuple[int, int], Wait] = {}
        self.pools: dict[str, Pool] = {}
        self.dags: dict[str, Dag] = {}
        self.versions: dict[int, DagDefinition] = {}
        self.epoch = 0

    def absorb(self, changes: Iterable[Change]) -> list[tuple[str, Key, Any, Any]]:
        """Take the rows over, except the journal's; the changes with what stood there before."""
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
