"""Responses of `/api/tradewind/v1` for the web page. Moments are ISO 8601 in UTC with `Z`, durations are seconds."""

from __future__ import annotations

from typing import Literal

import msgspec

from tradewind.model.phrases import Phrase
from tradewind.store.views import (
    AssetEventView,
    AssetView,
    AttemptView,
    DagDetailsView,
    DagWarningView,
    Moment,
    QueuedEventView,
    RunView,
    TaskInstanceView,
    TriedView,
)


class Structure(msgspec.Struct, frozen=True):
    """The rows of a DAG's grid as columns: row i is the i-th entry of `ids`, `parents`, `kinds`, …"""

    dag_id: str
    display_name: str
    version: int
    """Number of the version, from 1."""
    task_count: int
    ids: list[str]
    """Ids of tasks and groups, from top to bottom: a group before its members, upstream before downstream."""
    parents: list[int]
    """Row of the group; -1: none."""
    kinds: list[int]
    """0 task, 1 group, 2 mapped task (or a task in a mapped group), 3 mapped group."""
    ends: list[int]
    """The row after the last row inside a group; for a task the row after it. The members of group i are rows i+1 … ends[i]-1."""
    operators: list[str]
    operator: list[int]
    """Index in `operators`; -1 for a group."""
    trigger_rules: list[str]
    trigger_rule: list[int]
    """Index in `trigger_rules`; -1 for a group."""
    pools: list[str]
    pool: list[int]
    """Index in `pools`; -1 for a group."""
    retries: list[int]
    """-1 for a group."""
    edges: list[int]
    """Rows of tasks in pairs: upstream, downstream, upstream, downstream, …"""
    edge_labels: list[tuple[int, int, str]]
    """(upstream row, downstream row, label)."""
    labels: dict[str, str]
    """Row → the name to show, where the author gave one. The default is the id without that of the parent group and the dot."""
    docs: dict[str, str]
    """Row → the task's documentation or the group's tooltip, where there is one."""
    setups: list[int]
    """Rows of setup tasks."""
    teardowns: list[int]
    """Rows of teardown tasks."""


class UsualDuration(msgspec.Struct, frozen=True):
    """How long the latest successful runs of a DAG took, seconds."""

    low: float
    median: float
    high: float
    runs: int
    """Number of runs."""


class PageDagHead(msgspec.Struct, frozen=True):
    """What the pages of one DAG show at their top."""

    details: DagDetailsView
    schedule_text: str | None
    """In English words: "Every day at 06:00 (UTC)."; null: its cron expression cannot be read."""
    schedule_phrase: Phrase | None
    """The same for other languages, without the full stop."""
    usual: UsualDuration | None
    """How long its latest successful runs took; null: too little history."""
    warnings: list[DagWarningView]
    """What is wrong with the DAG, although its file can be imported."""
    definition_warnings: list[str]
    """Warnings about the DAG file, one English sentence each, as `tradewind dags show` prints them."""


class CellsRun(msgspec.Struct, frozen=True):
    """One run: a column of the grid."""

    id: int
    """Number of the run, unique among all DAGs. Runs with a greater number were created later."""
    run_id: str
    run_type: str
    state: str
    version: int
    """Number of the version of the DAG that the run has."""
    logical_date: Moment | None
    run_after: Moment
    queued_at: Moment
    start_date: Moment | None
    end_date: Moment | None
    has_note: bool
    triggering_user: str | None
    totals: list[int]
    """How many of all its task instances are in each state, in the order of `states`."""
    cells: list[int]
    """The states of the rows of the window as stretches of equal states: length, state, length, state, … A state is an index of
    `states`; -1: the run has no such task instance. A group and a mapped task have their worst state."""
    mapped: dict[str, list[int]]
    """Row of a task with several instances → how many are in which state: state, count, state, count, …"""


class Cells(msgspec.Struct, frozen=True):
    """The states of a window of the grid: rows of the structure × runs."""

    dag_id: str
    version: int
    """Number of the version of the DAG whose structure gives the rows."""
    rows: int
    """How many rows the structure has."""
    rows_from: int
    rows_to: int
    """The window: rows from `rows_from` up to, and without, `rows_to`."""
    states: list[str]
    """Names of the states, by code."""
    order: list[int]
    """Numbers of all runs of the window, the oldest first."""
    runs: list[CellsRun]
    """The runs that are new or have changed since `since`; without `since` all of `order`, in its order."""
    older: bool
    """Whether there are older runs: ask with `before` = the run id of the first run."""
    token: str
    """For `since` in the next request."""
    head: PageDagHead | None
    """With `head=true`: the same as `GET /dags/{dag_id}`, so that a page with the grid needs one request less."""


class RunBar(msgspec.Struct, frozen=True):
    """One of the last runs of a DAG."""

    run_id: str
    state: str
    run_after: Moment
    start_date: Moment | None
    duration: float | None
    """Seconds; null while the run has not ended, and for a run that never started."""


class PageDag(msgspec.Struct, frozen=True):
    """One DAG in the list of all DAGs."""

    dag_id: str
    display_name: str
    description: str | None
    file: str
    """Path inside the DAG folder."""
    tags: list[str]
    owners: list[str]
    is_paused: bool
    is_favourite: bool
    """The caller has marked it (`POST /api/v2/dags/{dag_id}/favorite`)."""
    has_import_error: bool
    """The file has an import error now. The page shows the last good version of the DAG."""
    schedule: str | None
    """As the author wrote it: `@daily`, `0 6 * * *`."""
    schedule_text: str | None
    """In English words: "Every day at 06:00 (UTC)."."""
    schedule_phrase: Phrase | None
    """The same for other languages, without the full stop."""
    next_run: Moment | None
    """When the next scheduled run starts; null: there is none. A paused DAG starts no runs."""
    task_count: int
    last_state: str | None
    """State of the newest run; null: there is no run."""
    last_runs: list[RunBar]
    """The newest runs, the oldest of them first."""
    queued: int
    running: int
    failed: int
    """How many of all its runs are in these states."""


class DagCounts(msgspec.Struct, frozen=True):
    """How many DAGs would match each value of a filter if the other filters stay the same."""

    paused: int
    unpaused: int
    favourites: int
    import_errors: int
    last_state: dict[str, int]
    """State of the newest run → DAGs; `none`: without runs."""
    tags: dict[str, int]
    owners: dict[str, int]


class PageDags(msgspec.Struct, frozen=True):
    """A page of the list of all DAGs."""

    dags: list[PageDag]
    total: int
    """How many DAGs match."""
    all_dags: int
    """How many active DAGs there are."""
    next: str | None
    """`cursor` of the next page; null: this is the last one."""
    counts: DagCounts
    broken_files: int
    """How many DAG files have import errors."""


class TriageFailure(msgspec.Struct, frozen=True):
    """A task instance that failed in the newest ended run of its DAG, or in a run that has not ended."""

    dag_id: str
    run_id: str
    run_state: str
    run_after: Moment
    task_id: str
    map_index: int
    """-1: the task is not mapped."""
    try_number: int
    tries: int
    """The largest number of tries of one instance."""
    start_date: Moment | None
    end_date: Moment | None
    error: str | None
    """The first line of the reason."""
    upstream_failed: int
    """How many task instances of its run did not run because of failures."""


class TriageRun(msgspec.Struct, frozen=True):
    """A run that has not ended."""

    dag_id: str
    run_id: str
    run_type: str
    state: str
    run_after: Moment
    start_date: Moment | None
    elapsed: float | None
    """Seconds since its start; null: it has not started."""
    usual: UsualDuration | None
    """Null: too little history."""
    expected_from: Moment | None
    expected_to: Moment | None
    """Estimated end, from the duration of the latest runs. Null: too few runs, or the run has not started."""
    late_because: str | None
    """`deadline`: it has missed a deadline; `longer_than_usual`: it takes longer than each of the latest runs; null: not late."""
    deadline: str | None
    """Name of the deadline that it has missed."""
    deadline_at: Moment | None
    tasks: int
    unfinished: int | None
    """How many of its task instances have not ended; null: no scheduler answers, or it has not started."""


class TriageInstance(msgspec.Struct, frozen=True):
    """A task instance that runs, or waits for a limit."""

    dag_id: str
    run_id: str
    task_id: str | None
    """Null: its run is set aside after an error, and only the run is known."""
    map_index: int
    state: str | None
    since: Moment | None
    started_at: Moment | None = None
    try_number: int = 0


class TriageBlock(msgspec.Struct, frozen=True):
    """A limit that has no free slot, and the task instances that wait for it."""

    rule: str
    """The rule of `why`: `pool`, `parallelism`, `max_active_tasks`, `max_active_tis_per_dag`, `paused`, …"""
    owner: str
    """The pool or DAG that has the limit, or "DAG RUN"; empty for parallelism."""
    capacity: int | None
    """Null: the pool does not exist."""
    used: int
    waiting: int
    """How many task instances wait for it."""
    first: list[TriageInstance]
    """The first of them, in the order in which they start."""


class TriageFixed(msgspec.Struct, frozen=True):
    """A DAG whose newest ended run succeeded after a failed one."""

    dag_id: str
    run_id: str
    end_date: Moment | None
    failed_run_id: str
    failed_at: Moment | None


class TriageNext(msgspec.Struct, frozen=True):
    """A run, or a further try of a task, that starts soon."""

    at: Moment
    kind: str
    """run, queued, retry or reschedule."""
    dag_id: str
    run_id: str
    task_id: str | None
    held_by: str | None


class PartState(msgspec.Struct, frozen=True):
    """The health of one component."""

    status: str | None
    """healthy or unhealthy; null: it does not run here, and nothing needs it."""
    problem: str
    """Why it is unhealthy."""


class AssetUse(msgspec.Struct, frozen=True):
    """An asset with what its page shows."""

    asset: AssetView
    events: list[AssetEventView]
    """The latest 100, the newest first."""
    queued: list[QueuedEventView]
    """Events that DAGs have not consumed."""


class AwaitedAsset(msgspec.Struct, frozen=True):
    """An asset or alias in the schedule of a DAG, and whether its next run still waits for it."""

    id: int | None
    """Number of the asset; null: it is an alias, or no asset fits the reference yet."""
    name: str
    is_alias: bool
    is_complete: bool
    """Its updates suffice for the run."""
    updated_at: Moment | None
    """When its latest event that waits for the run was emitted; null: there is none, or the DAG has partitions."""
    arrived: int
    """With partitions: how many of the expected partition keys have come; else 0 or 1."""
    needed: int
    """How many have to come."""
    missing: list[str]
    """Expected partition keys that have not come: the first 20, sorted."""
    missing_count: int
    problem: str | None
    """Why the expected partition keys are not known."""


class AwaitedRun(msgspec.Struct, frozen=True):
    """A run that waits for assets."""

    partition_key: str | None
    """null: the DAG has no partitions."""
    since: Moment | None
    """When the first event that waits for the run was emitted."""
    is_due: bool
    """The condition of the schedule is met."""
    assets: list[AwaitedAsset]


class AwaitedAssets(msgspec.Struct, frozen=True):
    """What the next runs of a DAG that is scheduled by assets wait for."""

    rule: Literal["all", "any", "mixed"]
    """`all`: all assets have to be updated; `any`: one of them; `mixed`: a condition of both kinds."""
    is_partitioned: bool
    """Each partition key has a run of its own."""
    is_paused: bool
    """Updates do not count while the DAG is paused."""
    runs: list[AwaitedRun]
    """With partitions: the keys that wait, by first event, at most 20. Else exactly one; none: no assets schedule the DAG."""
    has_more: bool
    """More partition keys wait."""
    dropped: str | None
    """Why the latest event of the DAG's assets was dropped; null: it was not."""


class AssetLinks(msgspec.Struct, frozen=True):
    """An asset and its neighbours in the graph of assets."""

    id: int
    name: str
    uri: str
    producers: list[str]
    """DAGs with a task that updates it."""
    consumers: list[str]
    """DAGs that are scheduled on it."""
    last_event_at: Moment | None


class AssetGraph(msgspec.Struct, frozen=True):
    """The assets by name, 2000 at most."""

    assets: list[AssetLinks]
    total_entries: int
    """How many assets exist, including those that are left out."""


class TriageHealth(msgspec.Struct, frozen=True):
    """The health of all components."""

    database: PartState
    scheduler: PartState
    worker_host: PartState
    triggerer: PartState
    dag_processor: PartState
    workers: int
    """How many worker hosts are connected."""


class Triage(msgspec.Struct, frozen=True):
    """Everything that needs attention now. Each `…_total` also counts the entries that its list leaves out."""

    at: Moment
    """When the answer was computed."""
    failed: list[TriageFailure]
    failed_total: int
    """How many runs failed: newest ended runs of DAGs, and runs that have not ended but have a failed task instance."""
    late: list[TriageRun]
    running: list[TriageRun]
    """Runs that have not ended and are not late, the earliest first."""
    unfinished_total: int
    """How many runs have not ended: late, running and queued."""
    tasks_running: list[TriageInstance]
    """The attempts that run the longest."""
    tasks_running_total: int
    blocked: list[TriageBlock]
    blocked_total: int
    """How many task instances wait for a limit."""
    fixed: list[TriageFixed]
    """In the last two days, the latest first."""
    next: list[TriageNext]
    """The next three starts."""
    broken_files: int
    """How many DAG files have import errors."""
    health: TriageHealth


class PageRun(msgspec.Struct, frozen=True):
    """One run and a summary of its tasks, as columns in the rows of the structure of its version."""

    run: RunView
    version: int
    """Number of the version whose structure gives the rows."""
    structure: Structure | None
    """The rows of this version, if they were asked for."""
    reason: str | None
    """Why the run failed or was ended."""
    usual: UsualDuration | None
    """How long the latest successful runs before it took; null: too little history."""
    states: list[str]
    """Names of the states, by code."""
    totals: list[int]
    """How many task instances are in each state, in the order of `states`."""
    state: list[int]
    """By row; -1: the run has no such task instance."""
    start_ms: list[int]
    """By row: milliseconds after the start of the run; -1: not started."""
    duration_ms: list[int]
    """By row; -1: it has not ended."""
    tries: list[int]
    """By row: the greatest number of the current try."""
    instances: list[int]
    """By row: how many task instances it has. A group: how many of its tasks have any."""


class GanttBar(msgspec.Struct, frozen=True):
    """One task instance of the Gantt chart."""

    row: int
    map_index: int
    state: int
    """Index in `states`."""
    spans: list[int]
    """Phase, start, length, phase, start, length, …: a phase is an index in `phases`; times are milliseconds, starts after the
    start of the run."""


class Gantt(msgspec.Struct, frozen=True):
    """How a run spent its time: waiting and running of each task instance."""

    dag_id: str
    run_id: str
    version: int
    origin: Moment
    """The start of the run (or when it was queued, while it has not started)."""
    length_ms: int
    """From the start of the run to its end, or until now."""
    phases: list[str]
    states: list[str]
    bars: list[GanttBar]
    """By row and map index."""
    omitted: int
    """How many task instances of the window are left out, because it has too many."""
    critical: list[int]
    """Rows of the tasks that decided when the run ended, the first one first."""
    usual: dict[str, tuple[int, int]]
    """Row → median start and median duration in former runs, milliseconds."""
    usual_runs: int
    """Of how many former runs; 0: there are none, or the DAG has too many tasks."""


class XComKeyView(msgspec.Struct, frozen=True):
    """An XCom without its value."""

    key: str
    size: int
    """Size in bytes."""
    timestamp: Moment


class PageTask(msgspec.Struct, frozen=True):
    """One task instance with its tries."""

    instance: TaskInstanceView
    tries: list[TriedView]
    """The current one last."""
    attempts: list[AttemptView]
    """All attempts, the oldest first; a try may have several."""
    xcoms: list[XComKeyView]
    doc: str | None
    template_fields: list[str]
    """Fields that are rendered before the task runs; `instance.rendered_fields` has them after that."""
    ui_color: str | None
    """The colour of its operator class, as its author wrote it; null: Airflow's default."""
    upstream: list[str]
    """Ids of the direct upstream tasks."""
    downstream: list[str]
    instances: int
    """How many instances the task has in this run."""
    extra_links: dict[str, str | None]
    """Links that the operator defines: URL by name; null: the task instance has not set it."""


class LogPieceView(msgspec.Struct, frozen=True):
    """Lines of the log of one try, as columns. The offset of its first byte identifies a line and never changes."""

    size: int
    """Bytes of the whole log now."""
    start: int
    end: int
    """The lines are the bytes from `start` up to `end`; ask from `end` for those after, before `start` for those before."""
    grows: bool
    """More may be written: ask again from `end`, with `wait`."""
    first_error: int | None
    """Offset of the first line of level error or critical; null: there is none as far as it was searched."""
    searched: bool
    """Whether the whole log was searched for errors. At most 64 MB are searched by one request; ask again."""
    offsets: list[int]
    times: list[str | None]
    """As written: ISO 8601; null: the line has no time."""
    levels: list[str | None]
    loggers: list[str | None]
    texts: list[str]
    """With the escape sequences for colours that the task wrote. Never put them into a page as HTML."""
    notice: str | None
    """Why there is no log: for example, the task wrote nothing."""


class ChangedTask(msgspec.Struct, frozen=True):
    """A task instance that an action changes."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    state: str
    """State before the action."""
    to: str
    """State after the action. `none`: the task runs again. `restarting`: the task is stopped first, and then runs again."""


class TaskCount(msgspec.Struct, frozen=True):
    """How many instances of a task an action changes."""

    dag_id: str
    task_id: str
    count: int


class ChangePreview(msgspec.Struct, frozen=True):
    """The preview, or the result, of a clear or a mark."""

    total: int
    runs: int
    """In how many runs."""
    by_state: dict[str, int]
    """State before the action → number of task instances."""
    by_task: list[TaskCount]
    """At most 100 tasks, those with the most instances first."""
    task_instances: list[ChangedTask]
    """The first of them, at most 500."""
    fingerprint: str
    """Send it with the action: the action is refused (409) if it would change something else by then."""
    dry_run: bool
    """True: nothing was changed."""


class BackfillRunPlan(msgspec.Struct, frozen=True):
    """One run that a backfill plans."""

    logical_date: Moment
    """Of a run with a partition key: its partition date."""
    run_id: str | None
    outcome: str
    """`new`, `rerun`, or why the run is skipped."""
    partition_key: str | None


class BackfillPreview(msgspec.Struct, frozen=True):
    """What a backfill would create."""

    total: int
    by_outcome: dict[str, int]
    runs: list[BackfillRunPlan]
    """The first of them, at most 500."""
    fingerprint: str
    """Send it with the backfill: the backfill is refused (409) if its plan has changed by then."""
    backfill_id: int | None
    """The backfill that was created; null for a preview."""


class PoolHolder(msgspec.Struct, frozen=True):
    """A task instance that holds slots of a pool, or waits for them."""

    dag_id: str
    run_id: str
    task_id: str | None
    """Null: its run is set aside after an error, and only the run is known."""
    map_index: int
    state: str | None
    since: Moment | None
    slots: int
    started_at: Moment | None = None
    try_number: int = 0
    priority_weight: int | None = None
    """The total priority weight of a waiting task instance."""
    place: int | None = None
    """The position of a waiting task instance in the queue of this pool, from 1."""


class PoolUse(msgspec.Struct, frozen=True):
    """The task instances that hold slots of a pool, and those that wait for slots."""

    name: str
    description: str | None
    slots: int
    """-1: unlimited."""
    include_deferred: bool
    used: int
    holders: list[PoolHolder]
    """The longest first, at most 200."""
    holder_count: int
    waiting: list[PoolHolder]
    """In the order in which they start, at most 200."""
    waiting_count: int


class CalendarDay(msgspec.Struct, frozen=True):
    """The runs that were due on one day."""

    date: str
    """YYYY-MM-DD, in the time zone of the request."""
    state: str | None
    """The worst state: failed, running, queued, success; null: only future runs."""
    queued: int
    running: int
    success: int
    failed: int
    planned: int
    """Runs of the schedule that do not exist yet."""


class Calendar(msgspec.Struct, frozen=True):
    """The runs of a DAG by day. Days without runs are left out."""

    dag_id: str
    timezone: str
    days: list[CalendarDay]
    next_runs: list[Moment]
    """When the first of the planned runs start, at most ten."""
    planned_known: bool
    """False: the scheduler did not answer, so future runs are not known. It names at most 1,000 of them."""


class SearchHit(msgspec.Struct, frozen=True):
    """One thing that a search has found."""

    kind: str
    """dag, task, run or pool."""
    name: str
    """What to show."""
    dag_id: str | None = None
    run_id: str | None = None
    task_id: str | None = None
    pool: str | None = None
    state: str | None = None
    """Of a DAG: the state of its newest run; of a run: its state."""


class SearchHits(msgspec.Struct, frozen=True):
    """What a search has found, the best first."""

    found: list[SearchHit]
