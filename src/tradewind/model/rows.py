"""Rows and changes that the store takes and returns: plain values, the same for every database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from tradewind.model.branch import Branch
from tradewind.model.ids import UNEXPANDED
from tradewind.model.partitions import KeyFacts
from tradewind.model.states import RunState, RunType, TaskState
from tradewind.model.waits import Deferral, InputWait, Resumption


class TaskRow(NamedTuple):
    """The mutable part of a task instance's row. Moments are microseconds; 0 means NULL."""

    slot: int
    state: int
    fence: int
    try_number: int
    max_tries: int
    resume: bool
    """The next attempt belongs to the same try, because the last attempt was rescheduled."""
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
    """The number of elements of a successful task instance for mapped tasks."""
    version: int | None = None
    """The version under which its attempt was dispatched, if the run has a newer version now: the attempt counts against the
    limits of that version."""


# --- rows that the store returns --------------------------------------------------------------------------------------


class DagPlan(NamedTuple):
    """The part of a DAG that the scheduler keeps in memory: enough to compute the next run."""

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
    """Name of the bundle that contains `file`."""
    assets: bytes | None = None
    """Encoded `AssetSchedule`, if the DAG also runs when assets were updated."""
    parse_duration: int = 0
    """Duration of the last parse of the file, microseconds. It tells a worker whether importing the file is cheap."""
    bundle_version: str | None = None
    """Version of the bundle that the definition comes from; None: the bundle has no versions."""


class RunRow(NamedTuple):
    """One DAG run."""

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
    """Set: the run keeps the version of its DAG that it was created with. None: it follows the newest version."""
    partition_key: str | None = None
    partition_date: int | None = None
    """The moment for which the partition key stands, if it stands for a moment."""


class LiveAttempt(NamedTuple):
    """An attempt that has started and not ended, and the process that runs it."""

    slot: int
    fence: int
    nonce: str | None
    host: str | None


class DeferralRow(NamedTuple):
    """The wait of a deferred task instance; after the wait, also the values for its next attempt."""

    slot: int
    fence: int
    """Fence of the attempt that deferred itself."""
    since: int
    deferral: Deferral
    resumption: Resumption | None = None


class OpenWaitRow(NamedTuple):
    """A task instance that is deferred now, and its wait."""

    run: int
    slot: int
    task_id: str
    map_index: int
    since: int
    deferral: Deferral


class RunSnapshot(NamedTuple):
    """All rows from which a `RunMachine` is rebuilt."""

    run: RunRow
    rows: list[TaskRow]
    live: list[LiveAttempt]
    reschedules: dict[int, int]
    """slot → how often the current try of a sensor was rescheduled."""
    pools: dict[int, str]
    """slot → the pool that a person chose for this task instance, instead of the DAG's."""
    deferrals: Sequence[DeferralRow] = ()
    """Waits of task instances that wait or have waited, including some that were cleared since."""
    hosts: Mapping[int, str] = MappingProxyType({})
    """slot → the worker host of the latest attempt, for unfinished task instances."""


class PoolRow(NamedTuple):
    """One pool."""

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
    """One change of a run by a person or program, numbered per run without gaps.

    The scheduler reads the feed by a cursor (`RunRow.feed_seq`): later entries are not applied yet. In a store with one writer an
    edit is appended and applied in one transaction, so the feed is also the list of a run's edits.
    """

    seq: int
    kind: str
    payload: bytes
    """msgpack."""
    actor: str
    at: int


class Marked(NamedTuple):
    """The result of marking task instances."""

    run: RunRow
    live: list[tuple[int, int]]
    """(slot, fence) of the live attempts, which have to be stopped."""


class NewBackfill(NamedTuple):
    """A backfill to be created. Moments are microseconds; both dates are included."""

    dag_id: str
    from_date: int
    to_date: int
    conf: bytes | None
    max_active_runs: int
    created_at: int
    schedule: bytes
    """Encoded `Schedule` at the time of creation, from which the plan is computed, or an encoded `PlannedRuns`."""
    reprocess_behavior: str
    """Which existing runs are run again: `none`, `failed` or `completed`."""
    run_backwards: bool
    created_by: str
    planned: int
    """Number of runs in the plan."""
    run_on_latest_version: bool | None = None
    """Whether a repeated run moves to the newest version of its bundle; None: as its DAG says."""


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
    """Number of planned runs that were handled."""
    run_on_latest_version: bool | None = None


class BackfillOutcome(NamedTuple):
    """The result of one planned run."""

    ordinal: int
    """Number of the planned run, from 1, in the order in which the runs are handled."""
    logical_date: int
    """Of a run with a partition key: its partition date."""
    run_id: str | None
    outcome: str
    """`new`, `rerun`, or why the run was skipped."""
    partition_key: str | None = None


class AssetRow(NamedTuple):
    """One asset that DAGs use or that has events."""

    id: int
    name: str
    uri: str
    group: str
    extra: bytes | None
    """JSON object."""


class AssetEventRow(NamedTuple):
    """One asset event. `id` is its number among all events. The source fields are None for events that no task emitted."""

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
    partition_key: str | None = None


class WaitingAsset(NamedTuple):
    """Events of one asset that wait for a consuming DAG."""

    asset: AssetRow
    aliases: frozenset[str]
    """Aliases under which these events, or earlier ones of the asset, were emitted."""
    counts: bool
    """False: all arrived while the consuming DAG was paused. They do not count for its condition; its next run consumes them."""
    events: int
    first_at: int
    """When the earliest event was emitted."""
    last: int
    """Number of the latest event."""
    last_at: int


class WaitingPartition(NamedTuple):
    """Events that wait for the run of one partition key of a consuming DAG."""

    key: str
    assets: tuple[tuple[AssetRow, frozenset[str]], ...]
    """Assets with the partition keys of their events."""
    dates: tuple[tuple[int, int], ...]
    """(number of the asset, partition date) of the events that have a partition date."""
    first_at: int
    last: int
    """Number of the latest event."""
    last_at: int
    facts: tuple[tuple[int, KeyFacts], ...] = ()
    """(number of the asset, what its mapper of users said about the key)."""


DEADLINE = "deadline"
"""Kind of outbox items that are future deadlines."""


class OutboxItem(NamedTuple):
    """A callback, mail or deadline that stays in the outbox until it is done. Moments are microseconds."""

    id: int
    kind: str
    identity: str
    payload: bytes
    tries: int
    run: int | None = None
    """Number of the run that it belongs to and is deleted with; None: no run."""
    slot: int = -1
    """Slot of the task instance that it belongs to; −1: the run itself."""
    created_at: int = 0
    due_at: int = 0
    parked: str | None = None
    """Why it is not tried again until a person requests it; None: it is tried again."""
    problem: str | None = None
    """Why its last try failed."""


class RemovedRun(NamedTuple):
    """A run that was deleted: the fields that are still needed after the deletion."""

    id: int
    dag_id: str
    run_id: str
    logical_date: int | None


class Removed(NamedTuple):
    """The result of one step of retention."""

    removed: list[RemovedRun]
    """Ordered by run number."""
    spills: list[str]
    """Names of spill files that nothing refers to any more."""

    @property
    def runs(self) -> int:
        """Number of deleted runs."""
        return len(self.removed)


class JobRow(NamedTuple):
    """One process of a service, as in Airflow's `job` table. Moments are microseconds."""

    id: int
    service_id: str
    job_type: str
    state: str
    """`running`, `success` (it stopped normally) or `failed`."""
    hostname: str
    unixname: str
    pid: int
    executor_class: str | None
    started_at: int
    heartbeat_at: int
    ended_at: int | None
    reason: str | None


class RetiredLog(NamedTuple):
    """A run that was deleted at a moment (microseconds) and whose logs still have to be deleted."""

    dag_id: str
    run_id: str
    at: int


# --- changes that the store takes -------------------------------------------------------------------------------------


class NewJob(NamedTuple):
    """A service that starts, or connects again."""

    service_id: str
    """Identifies the process of the service."""
    job_type: str
    hostname: str
    unixname: str
    """The operating system's user that runs it."""
    pid: int
    executor_class: str | None = None


class InputRequest(NamedTuple):
    """A question to a person that an attempt stores when it ends. Moments are microseconds."""

    slot: int
    fence: int
    try_number: int
    at: int
    wait: InputWait


class InputAnswer(NamedTuple):
    """The answer to the question of an attempt, or the defaults that apply after the timeout. Times are microseconds."""

    slot: int
    fence: int
    at: int
    user_id: str | None
    """None: nobody answered in time, and the defaults are the answer."""
    user_name: str | None
    chosen: tuple[str, ...]
    params: bytes
    """JSON object: name of a form field → its value."""


class TaskWrite(NamedTuple):
    """One guarded write: the new row, and the state and fence that the store must have before it."""

    row: TaskRow
    expected_state: int
    expected_fence: int


class NewTaskRow(NamedTuple):
    """A row to be created: an additional instance of a mapped task, or a task of a newer version."""

    slot: int
    task_id: str
    map_index: int
    max_tries: int


class JournalEntry(NamedTuple):
    """One step of a task instance, with its cause."""

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
    """The end of an attempt, whether it had started or not."""

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
    """JSON object: its rendered template fields."""
    cpu: int | None = None
    """CPU time of its processes, microseconds."""
    peak_memory: int | None = None
    """Greatest resident memory of one of its processes, bytes."""


class AttemptRow(NamedTuple):
    """One attempt, as far as it is known. Moments are microseconds."""

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
    """How it ended; None: it has not ended, or the end is unknown."""
    reason: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    rendered: bytes | None = None
    """JSON object: its rendered template fields."""


class InstanceFacts(NamedTuple):
    """One task instance with its last attempt, for user code that reads it. Moments are microseconds."""

    slot: int
    task_id: str
    map_index: int
    state: TaskState
    try_number: int
    max_tries: int
    queued_at: int | None
    started_at: int | None
    ended_at: int | None
    note: str | None
    map_label: str | None
    pool: str | None
    """The pool that a person chose for it; None: that of its task."""
    hostname: str | None
    pid: int | None
    executor: str | None


class DeadlineMiss(NamedTuple):
    """A run, or one of its tasks, that had not succeeded by its deadline. Moments are microseconds."""

    run: int
    dag_id: str
    run_id: str
    task_id: str | None
    """None: the run itself."""
    name: str
    """`sla/3600000000` or `alert/0`: see `kernel.deadlines`."""
    label: str | None
    """The deadline's name in the DAG file."""
    due_at: int
    noticed_at: int


class NewCallbackRequest(NamedTuple):
    """A callback or mail that is requested together with a change of a run. The outbox has at most one item for each `identity`."""

    kind: str
    identity: str
    payload: bytes
    at: int
    due: int | None = None
    """The earliest time of the call; None: at once."""
    slot: int = -1
    """Slot of the task instance that it belongs to; −1: the run itself."""


class XComWrite(NamedTuple):
    """One XCom to be written: its value, or the name of its spill file."""

    task_id: str
    map_index: int
    key: str
    value: bytes | None
    spill: str | None
    size: int
    at: int


class TaskStateEntry(NamedTuple):
    """One value that a task keeps between its tries."""

    key: str
    value: bytes
    """JSON text."""
    at: int
    """When it was written."""
    expires_at: int | None
    """When it expires; None: never."""


class AssetStateEntry(NamedTuple):
    """One value that belongs to an asset."""

    key: str
    value: bytes
    """JSON text."""
    at: int
    """When it was written."""
    writer: str
    """`task` or `api`."""
    source_dag: str | None = None
    """The task instance that wrote it."""
    source_run: str | None = None
    source_task: str | None = None
    source_index: int | None = None


class UnreadFiles(NamedTuple):
    """How many DAG files there are, and how many of them the parser has not read yet."""

    files: int
    unread: int


class NewAssetEvent(NamedTuple):
    """An update of an asset. In a reference, name or URI is empty: it stands for the asset with the given name or URI."""

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
    origin: str | None = None
    """Token of an asset watcher's event: an asset gets only one event with the same token."""
    partition_key: str | None = None
    partition_date: int | None = None
    """Partition key of the run that emitted the event, if the event has the run's key."""


class WatcherRow(NamedTuple):
    """The state of the trigger of an asset watcher."""

    number: int
    """See `model.assets.watcher_number`."""
    classpath: str
    worker: str | None
    """The worker that runs it; None: it does not run."""
    failures: int
    """Number of failures in a row."""
    error: str | None
    """The error of the last failure, if no event came since."""
    next_start: int | None
    """When the trigger is started again, if it does not run."""
    since: int
    """When this state began."""


class RunWrite(msgspec.Struct):
    """All changes of one run in one batch. They are written completely or not at all."""

    run: int
    revision: int
    """The revision from which the changes were computed; the write increases it."""
    state: RunState
    started_at: int | None
    ended_at: int | None
    reason: str | None
    journal_seq: int
    """Number of the last journal entry before this write."""
    tasks: list[TaskWrite] = []
    journal: list[JournalEntry] = []
    starts: list[AttemptStart] = []
    ends: list[AttemptEnd] = []
    xcoms: list[XComWrite] = []
    cleared_xcoms: list[tuple[str, int]] = []
    """(task_id, map_index) whose XComs of an earlier attempt are deleted."""
    new_rows: list[NewTaskRow] = []
    """Rows to be created before `tasks` are written."""
    labels: list[tuple[int, str]] = []
    """(slot, the label that is shown instead of its map index)."""
    pools: list[tuple[int, str]] = []
    """(slot, the pool that a person chose for this task instance). The choice lasts until the task instance is cleared."""
    deferrals: list[DeferralRow] = []
    """Waits that begin or end; each replaces an earlier one of its slot."""
    ended_waits: list[int] = []
    """Slots whose wait is deleted."""
    asset_events: list[NewAssetEvent] = []
    callback_requests: list[NewCallbackRequest] = []
    """New items of the outbox; see `store.port`."""
    after: frozenset[int] = frozenset()
    """Runs of the same batch, written before this run, on which it depends: if one of them is stale, this run is stale, too."""
    version: int | None = None
    """The new version of the run: its rows match it now. None: unchanged."""
    input_requests: list[InputRequest] = []
    """Questions to people; a question replaces an earlier one of the same try."""
    input_answers: list[InputAnswer] = []
    """Defaults that answer a question. If a person has answered meanwhile, nothing of the run is written."""
    summary: bytes | None = None
    """At the end of the run: the states of its task instances (see `kernel.run_summary`)."""
    bundle_version: str | None = None
    """The version of its bundle that the run keeps to from now on. None: unchanged."""


class NewRun(msgspec.Struct):
    """A run to be created. The creator gives the run id, so that a repeated creation gives the same run."""

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
    """Number of the backfill that creates the run."""
    partition_key: str | None = None
    partition_date: int | None = None


class RunImport(NamedTuple):
    """A run that was executed elsewhere, with all its rows. Moments are microseconds."""

    dag_id: str
    run_id: str
    run_type: RunType
    state: RunState
    version: int
    """A definition with exactly the tasks of `rows`."""
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
    rows: Sequence[TaskRow]
    """By slot, from 0 without gaps."""
    journal: Sequence[JournalEntry]
    attempts: Sequence[AttemptRow]
    hostnames: Mapping[tuple[int, int], str]
    """(Slot, fence) → the machine of the attempt."""
    xcoms: Sequence[XComWrite]
    partition_key: str | None
    partition_date: int | None
    notes: Mapping[int, str]
    """Slot → the note of the task instance."""


class Skipped(NamedTuple):
    """Runs of a schedule that were skipped, because a later run was created instead."""

    from_date: int
    """Logical date of the first skipped run."""
    to_date: int
    """Logical date of the run that was created."""
    reason: str
    at: int


class SchedulePosition(NamedTuple):
    """The position of a DAG's schedule. It is written only if the store still has the position `before`."""

    dag_id: str
    before: tuple[int | None, int | None, int | None, int] | None
    """`last` in the store when the new position was computed; equal to `last` if only `next` is new."""
    last: tuple[int | None, int | None, int | None, int] | None
    next: tuple[int | None, int | None, int | None, int] | None
    skipped: Skipped | None = None


class ScheduledRun(NamedTuple):
    """A run that a schedule creates, and the new position of the schedule. Both are written, or neither."""

    run: NewRun
    position: SchedulePosition


class Batch(msgspec.Struct):
    """One group commit."""

    epoch: int
    at: int
    runs: list[RunWrite] = []
    new_runs: list[ScheduledRun] = []
    positions: list[SchedulePosition] = []
    """Positions of schedules whose next run changed without a run being created."""
    more_rows: list[tuple[int, int]] = []
    """(run, how many) additional task-instance rows of runs that are being created."""


class Committed(NamedTuple):
    """The result of a batch."""

    stale: dict[int, list[int]]
    """Runs of which nothing was written, and the slots whose guard failed (empty: the guard of the run's revision)."""
    created: list[RunRow]
    """In the order of `Batch.new_runs`; an existing run of the same id is returned as it is."""
    rows_created: dict[int, int]
    """Run in `more_rows` → how many task-instance rows it has now."""
    consumers: frozenset[str] = frozenset()
    """DAGs that got new asset events and must be examined, without DAGs for which events of the same assets already waited."""
    moved: frozenset[str] = frozenset()
    """DAGs whose schedule position differs from the position that the batch expects: neither their runs nor their positions were
    written."""


class ParsedDag(NamedTuple):
    """One DAG found in a file: its canonical bytes and their hash."""

    dag_id: str
    definition: bytes
    hash: str


class ImportProblem(NamedTuple):
    """Why a file cannot be imported."""

    message: str
    stack_trace: str
    line: int | None


class ParsedFile(NamedTuple):
    """The result of parsing one file. If there is a `problem` and no DAGs, the last good versions stay."""

    bundle: str
    file: str
    file_hash: str
    dags: tuple[ParsedDag, ...]
    problem: ImportProblem | None
    duration: int
    is_dynamic: bool
    at: int
    bundle_version: str | None = None
