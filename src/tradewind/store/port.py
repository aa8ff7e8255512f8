"""The verbs of the store, as the scheduler and the commands know them.

Method names say what the work needs; guards are part of the verb. Every implementation passes one suite
(tests/unit/store/suite). A verb either has its whole effect or none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from tradewind.model.definition import DagDefinition
from tradewind.model.rows import (
    AssetEventRow,
    AssetRow,
    BackfillOutcome,
    BackfillRow,
    Batch,
    Committed,
    ConnectionRow,
    DagPlan,
    DeadlineMiss,
    FeedEntry,
    ImportProblem,
    JobRow,
    Marked,
    NewAssetEvent,
    NewBackfill,
    NewJob,
    NewRun,
    OpenWaitRow,
    OutboxItem,
    ParsedFile,
    PoolRow,
    Removed,
    RetiredLog,
    RunRow,
    RunSnapshot,
    Skipped,
    VariableRow,
    WaitingAsset,
    XComWrite,
)
from tradewind.model.states import RunState, TaskState


class Store(Protocol):
    """What every store can do. Errors are `model.errors.StoreError` and its leaves, besides those named here."""

    # the group commit
    def commit(self, batch: Batch) -> Committed:
        """Write a batch in one transaction; each run's share whole or not at all. Raises Stale for an old epoch."""

    def create_run(self, new: NewRun) -> RunRow:
        """Create a run with its first rows. A scheduled run that exists is returned. Raises Conflict for another one."""

    # runs
    def run(self, run: int) -> RunRow | None: ...
    def find_run(self, dag_id: str, run_id: str) -> RunRow | None: ...
    def need_run(self, dag_id: str, run_id: str) -> RunRow:
        """Raises NotFound, naming the latest runs."""

    def active_runs(self, dag_id: str | None = None) -> list[RunRow]:
        """Queued and running runs, by DAG and run_after."""

    def runs_between(self, dag_id: str, start: int | None, end: int | None) -> list[RunRow]:
        """Runs by logical date (or run_after), both ends included, oldest first."""

    def snapshot(self, run: int) -> RunSnapshot | None: ...
    def previous_run(
        self, dag_id: str, logical_date: int, *, scheduled_only: bool, state: RunState | None = None
    ) -> RunRow | None: ...
    def states_of(self, run: int, task_ids: Iterable[str]) -> dict[str, list[int]]: ...
    def open_waits(self, *, run: int | None = None, dag_id: str | None = None, at_most: int | None = None) -> list[OpenWaitRow]:
        """Task instances that are deferred, the longest first."""

    def task_ever_ran(self, dag_id: str, task_id: str, before: int) -> bool: ...

    # XComs
    def xcoms(
        self, run: int, task_ids: Sequence[str], key: str, map_indexes: Sequence[int] | None = None
    ) -> list[tuple[str, int, bytes, str | None]]: ...
    def last_run_with_xcom(self, dag_id: str, until: int, task_id: str, key: str) -> int | None:
        """Number of the latest run up to a logical date, itself included, in which the task pushed this key."""

    def push_xcoms(self, run: int, xcoms: Sequence[XComWrite]) -> None: ...

    # DAGs
    def definition(self, version: int) -> DagDefinition: ...
    def current_definition(self, dag_id: str) -> DagDefinition: ...
    def dag_ids(self) -> list[str]: ...
    def dag(self, dag_id: str) -> DagPlan | None: ...
    def need_dag(self, dag_id: str) -> DagPlan: ...
    def plans(self) -> list[DagPlan]: ...
    def register_file(self, parsed: ParsedFile, *, paused_at_creation: bool) -> list[str]: ...
    def skipped(self, dag_id: str, limit: int | None = None) -> list[Skipped]:
        """Runs of the DAG's schedule that were passed over, the latest first."""

    def known_files(self, bundle: str) -> dict[str, tuple[str, bool]]:
        """Files with an active DAG or an import error: hash of their last good content, and whether it reads the world.

        The hash is empty where the file has to be read again in any case: it has an import error, or its DAGs come from
        different contents.
        """

    def forget_files(self, bundle: str, files: list[str], at: int) -> list[str]: ...
    def import_problems(self) -> dict[tuple[str, str], ImportProblem]:
        """What is wrong with files, by bundle and file."""

    def set_plugins(self, listed: str) -> None:
        """Keep what the plugins are: JSON, a list of `sdk.plugins.describe_plugin`."""

    def plugins(self) -> str:
        """What `set_plugins` was given last; `[]` before."""

    def set_paused(self, dag_id: str, paused: bool, actor: str, at: int) -> bool: ...
    def delete_dag(self, dag_id: str, actor: str, at: int, at_most: int = 20) -> tuple[Removed, bool]:
        """Delete up to `at_most` finished runs of a DAG, then the DAG itself; whether the DAG is gone.

        Raises NotFound, and Conflict while runs of it have not ended.
        """

    # edits
    def clearable(
        self, run: RunRow, task_ids: Collection[str], *, only_failed: bool = False, only_running: bool = False
    ) -> list[tuple[int, str, int, TaskState]]:
        """What a clear would touch: (slot, task id, map index, state). `only_failed` and `only_running` together: either."""

    def standing(self, run: RunRow, task_ids: Collection[str]) -> list[tuple[int, str, int, TaskState]]:
        """The task instances of these tasks: (slot, task id, map index, state)."""

    def clear(
        self, run_id: int, slots: Collection[int], actor: str, at: int, reason: str = "", *, reset_run: bool = True
    ) -> RunRow:
        """Forget results. A run that has ended is queued again; without `reset_run` it stays as it is."""

    def mark(
        self,
        run_id: int,
        slots: Collection[int],
        state: TaskState,
        actor: str,
        at: int,
        reason: str = "",
        *,
        executor: str = "",
    ) -> Marked:
        """Give task instances a finished state by hand, under new fences; whoever calls stops the attempts that lived."""

    def set_run_state(self, run_id: int, state: RunState, actor: str, at: int, reason: str = "") -> RunRow:
        """Set a run's state by hand. `running`: it goes on as it is, and fails when what is left of it has ended."""

    def note_run(self, run_id: int, note: str | None, actor: str, at: int) -> RunRow:
        """Write what people are to know of a run; None takes it away. Raises NotFound."""

    def note_tasks(self, run_id: int, slots: Collection[int], note: str | None, actor: str, at: int) -> None:
        """Likewise, of task instances."""

    def append_feed(self, run: int, kind: str, payload: bytes, actor: str, at: int) -> int:
        """Append a change that is asked of a run; its number. The cursor stays: the run's owner moves it.

        Raises NotFound for a run that does not exist.
        """

    def feed(self, run: int, after: int = 0) -> list[FeedEntry]:
        """Entries above `after`, in order."""

    def consume_feed(self, run: int, upto: int) -> None:
        """Move the run's cursor; never back."""

    # backfills
    def create_backfill(self, new: NewBackfill) -> BackfillRow:
        """Raises Conflict while the DAG has another one under way."""

    def backfill(self, number: int) -> BackfillRow | None: ...
    def backfills(self, dag_id: str | None = None, *, active: bool = True) -> list[BackfillRow]:
        """In the order of their making; `active`: only those that have not ended."""

    def backfill_outcomes(self, number: int) -> list[BackfillOutcome]: ...
    def note_backfill_outcome(self, number: int, outcome: BackfillOutcome) -> None:
        """Raises Conflict when it is not this one's turn."""

    def pause_backfill(self, number: int, paused: bool, actor: str, at: int) -> bool:
        """Whether that changed anything. Raises NotFound, and Conflict when it has ended."""

    def complete_backfill(self, number: int, at: int, cancelled_by: str | None = None) -> None:
        """Raises NotFound, and Conflict when it has ended."""

    def active_backfill_runs(self, dag_id: str, number: int) -> int:
        """How many runs of a backfill are queued or running."""

    def adopt_run(self, run: int, number: int, conf: bytes | None, actor: str) -> RunRow:
        """An existing run becomes one of a backfill. Raises NotFound."""

    # assets
    def record_asset_events(self, events: Sequence[NewAssetEvent]) -> tuple[list[int], frozenset[str]]:
        """Events from outside: their numbers, and the DAGs that were given them and for whose condition they may matter.

        A DAG for which an earlier event of the same asset waits already is not among these.
        """

    def waiting_assets(self, dag_id: str) -> list[WaitingAsset]:
        """What a DAG has not consumed, by asset, in the order of the latest events."""

    def waiting_interval(self, dag_id: str, upto: int) -> tuple[int, int] | None:
        """From the first to the last moment of the data intervals of the runs that emitted what waits, up to an event."""

    def create_asset_run(self, new: NewRun, upto: int, epoch: int = 0) -> RunRow:
        """Create a run that consumes all events that wait for its DAG, up to a number; whole or not at all.

        Raises:
            Stale: a newer scheduler than that of this epoch has begun (0: not asked).
            Conflict: none that counts waits any more, or the run's id or date is taken.
        """

    def drop_waiting_events(self, dag_id: str | None, asset: int | None, before: int | None, actor: str, at: int) -> list[str]:
        """Events that wait (of one DAG, of one asset, emitted before a moment) are superseded: the DAGs concerned."""

    def asset_events_of_run(self, run: int) -> list[AssetEventRow]:
        """What a run consumed."""

    def asset_events(
        self,
        *,
        name: str = "",
        uri: str = "",
        alias: str = "",
        after: int | None = None,
        before: int | None = None,
        ascending: bool = True,
        limit: int | None = None,
    ) -> list[AssetEventRow]:
        """Events of an asset or of an alias, in the order of the sequence. `after` and `before` are moments, both included."""

    def find_asset(self, *, number: int | None = None, name: str = "", uri: str = "") -> AssetRow | None:
        """By number, or by name and URI as far as given; where several fit, one that DAGs name now, else the newest."""

    def producers(self, asset: AssetRow) -> list[tuple[str, str]]:
        """(DAG, task) of the active DAGs that have it as an outlet."""

    # pools, variables, connections
    def pools(self) -> list[PoolRow]: ...
    def set_pool(self, pool: PoolRow, actor: str, at: int) -> PoolRow: ...
    def delete_pool(self, name: str, actor: str, at: int) -> None: ...
    def variables(self) -> list[VariableRow]: ...
    def variable(self, key: str) -> VariableRow | None: ...
    def set_variable(self, variable: VariableRow, actor: str, at: int) -> None: ...
    def delete_variable(self, key: str, actor: str, at: int) -> None: ...
    def connections(self) -> list[ConnectionRow]: ...
    def connection(self, conn_id: str) -> ConnectionRow | None: ...
    def set_connection(self, connection: ConnectionRow, actor: str, at: int, *, replace: bool = True) -> None: ...
    def delete_connection(self, conn_id: str, actor: str, at: int) -> None: ...

    # the house itself
    def note_audit(
        self, event: str, actor: str, at: int, *, dag_id: str | None = None, run_id: str | None = None, detail: object = None
    ) -> None:
        """Write into the audit log who changed what. Verbs that take an actor do so themselves."""

    def epoch(self) -> int:
        """The newest scheduler's; 0 before the first one."""

    def begin_epoch(self, hostname: str, pid: int, boot: str, at: int) -> int: ...
    def note_host(self, name: str, hostname: str, pid: int, slots: int, at: int) -> None: ...
    # jobs: the lives of services, for people
    def begin_job(self, new: NewJob, at: int) -> None:
        """A service began; one that is known goes on, also if it was taken for dead."""

    def beat_jobs(self, lives: Sequence[str], at: int) -> None:
        """These are alive; those that have ended stay so."""

    def end_job(self, life: str, ok: bool, at: int, reason: str | None = None) -> bool:
        """It ended, in order or not; False: it was not running."""

    def end_lost_jobs(self, silent_since: int, at: int, reason: str, job_type: str | None = None) -> list[str]:
        """Those that run (of a type) with an older heartbeat have failed, at that heartbeat; their lives."""

    def jobs(self, at_most: int) -> list[JobRow]:
        """The latest first."""

    def answered(self, op: str) -> bytes | None: ...
    def remember(self, op: str, answer: bytes, at: int) -> None: ...

    # deadlines
    def note_miss(self, miss: DeadlineMiss) -> bool:
        """Keep that a deadline was missed; False: it is known already."""

    def misses(self, dag_id: str | None = None, run: int | None = None, at_most: int = 1000) -> list[DeadlineMiss]:
        """The latest first. They go with their run."""

    # the outbox: what is to be done outside because of a commit, kept until it is acknowledged
    def post(
        self, kind: str, identity: str, payload: bytes, at: int, due: int | None = None, run: int | None = None, slot: int = -1
    ) -> None:
        """The same identity is posted once, for as long as it is there. `RunWrite.posts` are posted with their run's share."""

    def due_posts(
        self, at: int, at_most: int = 100, *, only: str | None = None, without: str | None = None
    ) -> list[OutboxItem]:
        """Those that may be done now, the longest due first; parked ones are not among them.

        `only`, `without`: of this kind, not of this kind. Those of the kind `DEADLINE` are the store's own: it posts them for the
        deadlines of a run when it makes or clears it, and they go when the run is made anew.
        """

    def next_post_due(self, after: int) -> int | None:
        """When the first post comes due that is not yet at `after`; None: none does."""

    def posts(self, *, parked: bool | None = None, run: int | None = None, at_most: int = 1000) -> list[OutboxItem]:
        """In the order of their making: all, only parked ones or only others, of all runs or one; no deadlines."""

    def find_post(self, item: int) -> OutboxItem | None: ...
    def acknowledge(self, item: int) -> None:
        """It is done: it goes. One that is gone is acknowledged without effect."""

    def postpone(self, item: int, due: int, parked: str | None = None, problem: str | None = None) -> None:
        """A try of it failed: again at `due`, or parked with a sentence until `retry_post`."""

    def settle_posts(self, kind: str, beginning: str, due: int | None) -> int:
        """Acknowledge all posts of a kind whose identity begins so; with `due`: hasten them to that moment instead. How many."""

    def retry_post(self, item: int, due: int) -> None:
        """As if it had never been tried. One that is gone stays gone."""

    def retire(
        self, ended_before: int, keep_per_dag: int, at: int, at_most: int = 20, dag_id: str | None = None
    ) -> Removed: ...
    def retired_logs(self, at_most: int) -> list[RetiredLog]:
        """Deleted runs whose logs may still be there, the earliest deletion first. Written with the deletion of the run."""

    def forget_retired_logs(self, gone: Sequence[RetiredLog]) -> None:
        """Their logs are deleted. One that was deleted again since stays."""

    def revoke_token(self, jti: str, expires_at: int, at: int) -> bool:
        """Keep that a login token has ended, until it would have expired; False: that is known already.

        Those that have expired by now go.
        """

    def token_revoked(self, jti: str) -> bool: ...
    def used_spills(self, names: list[str]) -> set[str]:
        """Those of the spill files that an XCom refers to."""

    def transaction(self) -> AbstractContextManager[None]: ...
    def release_memory(self) -> None:
        """Drop what is only kept to answer faster."""

    def close(self) -> None: ...
