"""What goes into the store and what comes out of it: plain values, the same for every database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from tradewind.model.branch import Branch
from tradewind.model.ids import UNEXPANDED
from tradewind.model.states import RunState, RunType
from tradewind.model.waits import Deferral, Resumption


class TaskRow(NamedTuple):
    """The mutable part of a task instance's row. Moments are microseconds; 0 stands for NULL."""

    slot: int
    state: int
    fence: int
    try_number: int
    max_tries: int
    resume: bool
    """The next attempt belongs to the same try: it asked to be called again later."""
    requeues: int
    due_at: int
    queued_at: int
    started_at: int
    ended_at: int
    reason: str | None
    branch: Branch | None
    task_id: str = ""
    map_index: int = UNEXPANDED
    length: int | None = None
    """Of a success: elements that it offers to mapped tasks."""
    version: int | None = None
    """The version under which its attempt was dispatched, where the run has followed a newer one since: it still counts against
    that one's limits."""


# --- out --------------------------------------------------------------------------------------------------------------


class DagPlan(NamedTuple):
    """What the scheduler keeps of every DAG in memory: enough to know when the next run is due."""

    dag_id: str
    version: int
    file: str
    is_paused: bool
    is_active: bool
    schedule: bytes
    """Encoded `Schedule` (see `encode_schedule`)."""
    start_date: int | None
    end_date: int | None
    catchup: bool
    max_active_runs: int
    schedule_epoch: int
    last: tuple[int | None, int | None, int | None, int] | None
    """(logical date, interval start, interval end, run_after) of the latest scheduled run."""
    bundle: str = ""
    """Name of the bundle, a folder with DAG files, that holds `file`."""
    assets: bytes | None = None
    """Encoded `AssetSchedule`, where it also runs when assets were updated."""
    parse_duration: int = 0
    """How long the file's last parse took, microseconds: tells a worker whether importing it is cheap."""


class RunRow(NamedTuple):
    """One run."""

    id: int
    dag_id: str
    run_id: str
    run_type: RunType
    state: RunState
    version: int
    logical_date: int | None
    interval_start: int | None
    interval_end: int | None
    run_after: int
    queued_at: int
    started_at: int | None
    ended_at: int | None
    conf: bytes | None
    triggered_by: str
    triggering_user: str | None
    note: str | None
    reason: str | None
    task_count: int
    rows_created: int
    revision: int
    journal_seq: int
    feed_seq: int
    clear_number: int
    bundle_version: str | None = None
    """Set: the run keeps the version of its DAG that it was made for. None: it follows the newest one."""


class LiveAttempt(NamedTuple):
    """An accepted start that has not ended: (slot, fence) and who holds it."""

    slot: int
    fence: int
    nonce: str | None
    host: str | None


class DeferralRow(NamedTuple):
    """What a deferred task instance waits for; once that has come, with what its next attempt is told."""

    slot: int
    fence: int
    """Of the attempt that deferred itself."""
    since: int
    deferral: Deferral
    resumption: Resumption | None = None


class OpenWaitRow(NamedTuple):
    """A task instance that is deferred now, and what it waits for."""

    run: int
    slot: int
    task_id: str
    map_index: int
    since: int
    deferral: Deferral


class RunSnapshot(NamedTuple):
    """Everything a `RunMachine` is rebuilt from."""

    run: RunRow
    rows: list[TaskRow]
    live: list[LiveAttempt]
    reschedules: dict[int, int]
    """slot → how often the current try of a sensor has asked to be called again."""
    pools: dict[int, str]
    """slot → the pool that a person chose for this task instance, in place of the pool that its DAG names."""
    deferrals: Sequence[DeferralRow] = ()
    """Of task instances that wait, or have waited; one that was cleared since may be among them."""
    hosts: Mapping[int, str] = MappingProxyType({})
    """slot → the worker host of the latest attempt, for task instances that have not ended."""


class PoolRow(NamedTuple):
    name: str
    slots: int
    description: str | None
    include_deferred: bool


class VariableRow(NamedTuple):
    """A variable as it is stored: `value` is encrypted when `is_encrypted`."""

    key: str
    value: bytes
    description: str | None
    is_encrypted: bool


class ConnectionRow(NamedTuple):
    """A connection as it is stored: `password` and `extra` are encrypted."""

    conn_id: str
    conn_type: str
    description: str | None
    host: str | None
    login: str | None
    port: int | None
    schema: str | None
    password: bytes | None
    extra: bytes | None


class FeedEntry(NamedTuple):
    """One change that was asked of a run from outside, numbered under the run's row without gaps.

    Whoever owns the run consumes by cursor (`RunRow.feed_seq`): entries above it have not been taken up yet. In a store with
    one writer an edit is appended and taken up in one transaction, so the feed is also the list of a run's edits.
    """

    seq: int
    kind: str
    payload: bytes
    """msgpack."""
    actor: str
    at: int


class Marked(NamedTuple):
    """What marking by hand came to."""

    run: RunRow
    live: list[tuple[int, int]]
    """(slot, fence) of the attempts that were alive and have to be stopped."""


class NewBackfill(NamedTuple):
    """A backfill to be created. Moments in microseconds, ends included."""

    dag_id: str
    from_date: int
    to_date: int
    conf: bytes | None
    max_active_runs: int
    created_at: int
    schedule: bytes
    """Encoded `Schedule` as it was then: the plan is worked out from it."""
    reprocess_behavior: str
    """What happens to runs that exist: "none", "failed" or "completed" ones run again."""
    run_backwards: bool
    created_by: str
    planned: int
    """How many runs the plan has."""


class BackfillRow(NamedTuple):
    """One backfill; see `NewBackfill`."""

    id: int
    dag_id: str
    from_date: int
    to_date: int
    conf: bytes | None
    is_paused: bool
    max_active_runs: int
    created_at: int
    completed_at: int | None
    schedule: bytes
    reprocess_behavior: str
    run_backwards: bool
    created_by: str
    planned: int
    handled: int
    """How many of the planned runs have had their turn."""


class BackfillOutcome(NamedTuple):
    """What became of one planned run when it was its turn."""

    ordinal: int
    """From 1, in the order in which they have their turn."""
    logical_date: int
    run_id: str | None
    outcome: str
    """"new", "rerun", or why it was skipped."""


class AssetRow(NamedTuple):
    """One asset that DAGs name or that events were about."""

    id: int
    name: str
    uri: str
    group: str
    extra: bytes | None
    """JSON object."""


class AssetEventRow(NamedTuple):
    """One event. `id` is its place in the sequence of all events. The source fields are None for events from outside."""

    id: int
    asset: AssetRow
    extra: bytes | None
    """JSON object."""
    at: int
    source_dag: str | None
    source_run: str | None
    source_task: str | None
    source_index: int
    aliases: tuple[str, ...]
    """Aliases under which it was emitted, sorted."""


class WaitingAsset(NamedTuple):
    """Events of one asset that a consumer has not consumed."""

    asset: AssetRow
    aliases: frozenset[str]
    """Under which aliases they came, or the asset ever came."""
    counts: bool
    """False: all of them came while the consumer was paused. They begin no run; the next one takes them along."""
    events: int
    first_at: int
    """When the earliest of them was emitted."""
    last: int
    """Number of the latest one."""
    last_at: int


DEADLINE = "deadline"
"""Kind of the posts that are deadlines to come."""


class OutboxItem(NamedTuple):
    """Something that is to be done outside, until it is acknowledged. Moments in microseconds."""

    id: int
    kind: str
    identity: str
    payload: bytes
    tries: int
    run: int | None = None
    """Number of the run it belongs to: it goes with the run. None: with none."""
    slot: int = -1
    """Its task instance; −1 is the run itself."""
    created_at: int = 0
    due_at: int = 0
    parked: str | None = None
    """Why it is not tried any more until a person asks for it; None while it is."""
    problem: str | None = None
    """What its last try came to."""


class RemovedRun(NamedTuple):
    """A run that was deleted, as far as others may have referred to it."""

    id: int
    dag_id: str
    run_id: str
    logical_date: int | None


class Removed(NamedTuple):
    """What one retention step took away."""

    removed: list[RemovedRun]
    """By number."""
    spills: list[str]
    """Names of spill files that nothing refers to any more."""

    @property
    def runs(self) -> int:
        """How many."""
        return len(self.removed)


class JobRow(NamedTuple):
    """The life of one service. Moments in microseconds."""

    id: int
    life: str
    job_type: str
    state: str
    """`running`, `success` (it ended in order) or `failed`."""
    hostname: str
    unixname: str
    pid: int
    executor_class: str | None
    started_at: int
    heartbeat_at: int
    ended_at: int | None
    reason: str | None


class RetiredLog(NamedTuple):
    """A run that was deleted at a moment (µs), and whose logs are still to be deleted."""

    dag_id: str
    run_id: str
    at: int


# --- in ---------------------------------------------------------------------------------------------------------------


class NewJob(NamedTuple):
    """A service that begins, or connects again."""

    life: str
    """Names this life of its process."""
    job_type: str
    hostname: str
    unixname: str
    """The user it runs as."""
    pid: int
    executor_class: str | None = None


class TaskWrite(NamedTuple):
    """One guarded write: the row that is to stand, and the state and fence that must stand before."""

    row: TaskRow
    expected_state: int
    expected_fence: int


class TaskBirth(NamedTuple):
    """A further instance of a mapped task: a row that is to be made."""

    slot: int
    task_id: str
    map_index: int
    max_tries: int


class JournalEntry(NamedTuple):
    slot: int
    fence: int
    before: int
    after: int
    at: int
    cause: str


class AttemptStart(NamedTuple):
    """An accepted start."""

    slot: int
    fence: int
    try_number: int
    executor: str
    host: str
    hostname: str
    pid: int
    nonce: str
    queued_at: int
    started_at: int


class AttemptEnd(NamedTuple):
    """The end of an attempt, started or not."""

    slot: int
    fence: int
    try_number: int
    executor: str
    queued_at: int
    ended_at: int
    outcome: str
    reason: str | None
    exit_code: int | None
    signal: int | None
    rendered: bytes | None = None
    """JSON object: what its templated fields came to."""


class AttemptRow(NamedTuple):
    """One attempt, as far as it is known. Moments in microseconds."""

    slot: int
    fence: int
    try_number: int
    executor: str
    queued_at: int | None = None
    host: str | None = None
    nonce: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    outcome: str | None = None
    """How it ended; None: it has not, or nobody knows."""
    reason: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    rendered: bytes | None = None
    """JSON object: what its templated fields came to."""


class DeadlineMiss(NamedTuple):
    """A run, or a task of it, that had not succeeded when it should have. Moments in microseconds."""

    run: int
    dag_id: str
    run_id: str
    task_id: str | None
    """None: the run itself."""
    name: str
    """`sla/3600000000` or `alert/0`: see `kernel.deadlines`."""
    label: str | None
    """What its author calls it."""
    due_at: int
    noticed_at: int


class NewCallbackRequest(NamedTuple):
    """Something that is to be done outside, because of what is written with it. One identity is posted once."""

    kind: str
    identity: str
    payload: bytes
    at: int
    due: int | None = None
    """Not before this moment; None: at once."""
    slot: int = -1
    """The task instance it belongs to; −1 is the run itself."""


class XComWrite(NamedTuple):
    task_id: str
    map_index: int
    key: str
    value: bytes | None
    spill: str | None
    size: int
    at: int


class NewAssetEvent(NamedTuple):
    """An asset was updated. Name or URI is empty where only a reference is known: it means the asset that has the other."""

    name: str
    uri: str
    group: str
    extra: bytes | None
    at: int
    about: bytes | None = None
    """JSON object about the asset itself."""
    aliases: tuple[str, ...] = ()
    source_dag: str | None = None
    source_run: str | None = None
    source_task: str | None = None
    source_index: int = -1


@dataclass(slots=True)
class RunWrite:
    """All that one batch changes in one run. It is written whole or not at all."""

    run: int
    revision: int
    """The revision this was decided on; the write moves it."""
    state: RunState
    started_at: int | None
    ended_at: int | None
    reason: str | None
    journal_seq: int
    """Number of the last journal entry before this write."""
    tasks: list[TaskWrite] = field(default_factory=list)
    journal: list[JournalEntry] = field(default_factory=list)
    starts: list[AttemptStart] = field(default_factory=list)
    ends: list[AttemptEnd] = field(default_factory=list)
    xcoms: list[XComWrite] = field(default_factory=list)
    cleared_xcoms: list[tuple[str, int]] = field(default_factory=list)
    """(task_id, map_index) whose values of an earlier attempt go."""
    births: list[TaskBirth] = field(default_factory=list)
    """Rows that are made before `tasks` are written."""
    labels: list[tuple[int, str]] = field(default_factory=list)
    """(slot, what people are shown in place of its map index)."""
    pools: list[tuple[int, str]] = field(default_factory=list)
    """(slot, the pool that a person chose for this task instance). The choice lasts until the task instance is cleared."""
    deferrals: list[DeferralRow] = field(default_factory=list)
    """Waits that begin, or are over: one for a slot, in place of an earlier one."""
    undeferred: list[int] = field(default_factory=list)
    """Slots whose wait nobody needs to know any more."""
    asset_events: list[NewAssetEvent] = field(default_factory=list)
    posts: list[NewCallbackRequest] = field(default_factory=list)
    """What is to be done outside because of all this; see `store.port`, verbs of the outbox."""
    after: frozenset[int] = frozenset()
    """Runs on whose shares of the same batch, which stand before it, this one rests: where one of them is stale, so is this."""
    version: int | None = None
    """The version of its DAG that its rows are as asked for; None: as before."""


@dataclass(slots=True)
class NewRun:
    """A run to be created. Its id is given by the creator, so that the same creation repeated is the same run."""

    dag_id: str
    run_id: str
    run_type: RunType
    version: int
    logical_date: int | None
    interval_start: int | None
    interval_end: int | None
    run_after: int
    at: int
    triggered_by: str
    triggering_user: str | None = None
    conf: bytes | None = None
    note: str | None = None
    backfill: int | None = None
    """Number of the backfill that makes it."""


class Skipped(NamedTuple):
    """Runs of a schedule that were never made, for the run that was made in their place."""

    from_date: int
    """Logical date of the first of them."""
    to_date: int
    """Logical date of the run that was made."""
    reason: str
    at: int


class SchedulePosition(NamedTuple):
    """How far a DAG's schedule has come. It is written only where the schedule still stands at `before`."""

    dag_id: str
    before: tuple[int | None, int | None, int | None, int] | None
    """`last` as the store has it, by which this was decided; equal to `last` where only `next` is new."""
    last: tuple[int | None, int | None, int | None, int] | None
    next: tuple[int | None, int | None, int | None, int] | None
    skipped: Skipped | None = None


class ScheduledRun(NamedTuple):
    """A run that a schedule makes, and the step of the schedule past it. Both are written, or neither."""

    run: NewRun
    position: SchedulePosition


@dataclass(slots=True)
class Batch:
    """One group commit."""

    epoch: int
    at: int
    runs: list[RunWrite] = field(default_factory=list)
    new_runs: list[ScheduledRun] = field(default_factory=list)
    positions: list[SchedulePosition] = field(default_factory=list)
    """Of schedules whose next run is another one than shown, without a run that was made."""
    more_rows: list[tuple[int, int]] = field(default_factory=list)
    """(run, how many) further task-instance rows of runs that are being created."""


class Committed(NamedTuple):
    """What became of a batch."""

    stale: dict[int, list[int]]
    """Runs of which nothing was written, and the slots whose guard missed (empty: the run's own revision did)."""
    created: list[RunRow]
    """In the order of `Batch.new_runs`; an existing run of the same id is returned as it is."""
    rows_created: dict[int, int]
    """How many task-instance rows exist now of runs named in `more_rows`."""
    consumers: frozenset[str] = frozenset()
    """DAGs that were given events of assets and are to be looked at: those of which the same did not wait already."""
    moved: frozenset[str] = frozenset()
    """DAGs whose schedule does not stand where the batch expects it: neither their runs nor their positions were written."""


class ParsedDag(NamedTuple):
    """One DAG found in a file: its canonical bytes and their hash."""

    dag_id: str
    definition: bytes
    hash: str


class ImportProblem(NamedTuple):
    message: str
    stack_trace: str
    line: int | None


class ParsedFile(NamedTuple):
    """What parsing one file came to. `problem` set and no dags: the last good versions stay."""

    bundle: str
    file: str
    file_hash: str
    dags: tuple[ParsedDag, ...]
    problem: ImportProblem | None
    duration: int
    is_dynamic: bool
    at: int
