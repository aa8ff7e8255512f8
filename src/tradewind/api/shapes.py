"""Shapes of answers that are not rows of the store: collections, health, version, login."""

from __future__ import annotations

from typing import Any

import msgspec

from tradewind.store.callback_view import CallbackView, MissView
from tradewind.store.views import (
    AssetAliasView,
    AssetEventView,
    AssetView,
    DagDetailsView,
    DagStatsView,
    DagView,
    EventView,
    ImportErrorView,
    JobView,
    Moment,
    PluginImportErrorView,
    PluginView,
    PoolView,
    QueuedEventView,
    RunView,
    StepView,
    TaskInstanceView,
    TriedView,
    VersionView,
)


class Problem(msgspec.Struct, frozen=True):
    """What went wrong, in a sentence (or, for a malformed body, a list of its faults)."""

    detail: str | list[dict[str, Any]]


class Dags(msgspec.Struct, frozen=True):
    """A page of DAGs."""

    dags: list[DagView]
    total_entries: int


class Plugins(msgspec.Struct, frozen=True):
    """A page of plugins."""

    plugins: list[PluginView]
    total_entries: int


class PluginImportErrors(msgspec.Struct, frozen=True):
    """Plugins that cannot be loaded."""

    import_errors: list[PluginImportErrorView]
    total_entries: int


class Versions(msgspec.Struct, frozen=True):
    """A page of versions of a DAG."""

    dag_versions: list[VersionView]
    total_entries: int


class Runs(msgspec.Struct, frozen=True):
    """A page of runs. `total_entries` is null where counting would take too long."""

    dag_runs: list[RunView]
    total_entries: int | None


class TaskInstances(msgspec.Struct, frozen=True):
    """A page of task instances. `total_entries` is null where counting would take too long."""

    task_instances: list[TaskInstanceView]
    total_entries: int | None


class Tries(msgspec.Struct, frozen=True):
    """All tries of a task instance."""

    task_instances: list[TriedView]
    total_entries: int


class ExtraLinks(msgspec.Struct, frozen=True):
    """Links of a task instance: address by name."""

    extra_links: dict[str, str | None]
    total_entries: int


class ImpossibleWaitView(msgspec.Struct, frozen=True):
    """Why a wait can never end, and what would help."""

    rule: str
    sentence: str
    ends_with: str | None
    command: str | None


class OpenWaitView(msgspec.Struct, frozen=True):
    """A deferred task instance. `kind` is `tasks`, `moment` or `trigger`."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    since: str
    kind: str
    waits_for: str
    until: str | None
    timeout_at: str | None
    impossible: list[ImpossibleWaitView]


class OpenWaits(msgspec.Struct, frozen=True):
    """A page of open waits."""

    waits: list[OpenWaitView]


class BackfillView(msgspec.Struct, frozen=True):
    """A backfill. `runs` and `handled` are ours: how many it plans, and how many have had their turn."""

    id: int
    dag_id: str
    from_date: str
    to_date: str
    dag_run_conf: dict[str, Any]
    is_paused: bool
    reprocess_behavior: str
    max_active_runs: int
    created_at: str
    completed_at: str | None
    updated_at: str
    dag_display_name: str
    runs: int
    handled: int


class Backfills(msgspec.Struct, frozen=True):
    """A page of backfills."""

    backfills: list[BackfillView]
    total_entries: int


class PlannedRun(msgspec.Struct, frozen=True):
    """What would become of one run of a backfill. `outcome` and `run_id` are ours."""

    logical_date: str
    outcome: str
    run_id: str | None
    partition_key: str | None = None
    partition_date: str | None = None


class BackfillPlan(msgspec.Struct, frozen=True):
    """The runs that a backfill would have."""

    backfills: list[PlannedRun]
    total_entries: int


class ImportErrors(msgspec.Struct, frozen=True):
    """A page of files that could not be read."""

    import_errors: list[ImportErrorView]
    total_entries: int


class Assets(msgspec.Struct, frozen=True):
    """A page of assets."""

    assets: list[AssetView]
    total_entries: int


class AssetAliases(msgspec.Struct, frozen=True):
    """A page of asset aliases."""

    asset_aliases: list[AssetAliasView]
    total_entries: int


class AssetEvents(msgspec.Struct, frozen=True):
    """A page of asset events."""

    asset_events: list[AssetEventView]
    total_entries: int


class QueuedEvents(msgspec.Struct, frozen=True):
    """Assets that were updated for DAGs which have not consumed that."""

    queued_events: list[QueuedEventView]
    total_entries: int


class Pools(msgspec.Struct, frozen=True):
    """A page of pools."""

    pools: list[PoolView]
    total_entries: int


class Events(msgspec.Struct, frozen=True):
    """A page of the audit log."""

    event_logs: list[EventView]
    total_entries: int


class Jobs(msgspec.Struct, frozen=True):
    """A page of jobs."""

    jobs: list[JobView]
    total_entries: int


class History(msgspec.Struct, frozen=True):
    """The steps of a task instance, the first one first."""

    steps: list[StepView]
    total_entries: int


class UnfinishedCallbacks(msgspec.Struct, frozen=True):
    """Callbacks and mails that were not acknowledged yet."""

    callbacks: list[CallbackView]


class DeadlineMisses(msgspec.Struct, frozen=True):
    """Deadlines that were missed."""

    deadline_misses: list[MissView]


class DagStats(msgspec.Struct, frozen=True):
    """Runs by state, for each DAG."""

    dags: list[DagStatsView]
    total_entries: int


class VariableView(msgspec.Struct, frozen=True):
    """A variable; the value of one whose key sounds like a secret is masked."""

    key: str
    value: str | None
    description: str | None
    is_encrypted: bool
    team_name: str | None = None


class Variables(msgspec.Struct, frozen=True):
    """A page of variables."""

    variables: list[VariableView]
    total_entries: int


class ConnectionView(msgspec.Struct, frozen=True):
    """A connection; its password and the secrets in its extra are never shown."""

    connection_id: str
    conn_type: str
    description: str | None
    host: str | None
    login: str | None
    schema: str | None
    port: int | None
    password: str | None
    extra: str | None
    team_name: str | None = None


class Connections(msgspec.Struct, frozen=True):
    """A page of connections."""

    connections: list[ConnectionView]
    total_entries: int


class LogPage(msgspec.Struct, frozen=True):
    """Part of a log. With a token there is, or may be, more: ask again with it."""

    content: list[dict[str, Any]]
    continuation_token: str | None


class PartHealth(msgspec.Struct, frozen=True):
    status: str | None


class SchedulerHealth(msgspec.Struct, frozen=True):
    status: str | None
    latest_scheduler_heartbeat: str | None


class TriggererHealth(msgspec.Struct, frozen=True):
    status: str | None
    latest_triggerer_heartbeat: str | None


class DagProcessorHealth(msgspec.Struct, frozen=True):
    status: str | None
    latest_dag_processor_heartbeat: str | None


class WorkerHostHealth(msgspec.Struct, frozen=True):
    status: str | None
    latest_worker_host_heartbeat: str | None


class Readiness(msgspec.Struct, frozen=True):
    """Can this deployment take and run work now?"""

    ready: bool
    reasons: list[str]
    """A sentence for each part that is in the way."""


class Health(msgspec.Struct, frozen=True):
    """Whether each part is healthy. A part that does not run here has the status null."""

    metadatabase: PartHealth
    scheduler: SchedulerHealth
    triggerer: TriggererHealth
    dag_processor: DagProcessorHealth
    worker_host: WorkerHostHealth
    """Not in Airflow: the process that runs the tasks."""


class Dependency(msgspec.Struct, frozen=True):
    """Something that keeps a task instance from running, under Airflow's name."""

    name: str
    reason: str


class Dependencies(msgspec.Struct, frozen=True):
    """Everything that keeps a task instance from running."""

    dependencies: list[Dependency]


class Holder(msgspec.Struct, frozen=True):
    """A task instance, or a run (`task_id` null), that takes what another one waits for."""

    dag_id: str | None
    run_id: str | None
    task_id: str | None
    map_index: int
    state: str | None
    since: Moment | None
    """It has held it since then."""
    started_at: Moment | None


class BlockerView(msgspec.Struct, frozen=True):
    """One thing in the way."""

    rule: str
    """A word for programs."""
    sentence: str
    ends_with: str | None
    """The event that can end it."""
    not_before: Moment | None
    """It cannot end before that."""
    command: str | None
    """The command that removes it, where there is one."""
    by_hand: bool
    """It does not end by itself."""
    holders: list[Holder]
    """The five that have held a full limit the longest."""
    holder_count: int


class First(msgspec.Struct, frozen=True):
    """The first in a queue: a task instance, or a run."""

    dag_id: str
    run_id: str
    task_id: str | None = None
    map_index: int = -1
    priority_weight: int | None = None


class Position(msgspec.Struct, frozen=True):
    """How many come before it for what it lacks."""

    ahead: int
    first: First | None


class Workers(msgspec.Struct, frozen=True):
    """Is somebody there who takes work, and how much is under way? `parallelism` null: without limit."""

    executor: str
    attached: bool
    live: int
    parallelism: int | None


class NextEvent(msgspec.Struct, frozen=True):
    """What can change it next; `at` where that is a moment."""

    event: str
    at: Moment | None
    rule: str


class NextRunView(msgspec.Struct, frozen=True):
    """The next scheduled run of a DAG; the moments are null where nobody knows it, or where there is none."""

    run_after: Moment | None
    logical_date: Moment | None
    data_interval_start: Moment | None
    data_interval_end: Moment | None
    blockers: list[BlockerView]
    notes: list[str]


class OpenTasks(msgspec.Struct, frozen=True):
    """Task instances of a run in one state: how many, and the first few."""

    count: int
    first: list[str]


class Why(msgspec.Struct, frozen=True):
    """Everything that is in the way of a task instance, a run or the next run. No blockers: the next step starts it."""

    dag_id: str
    run_id: str | None
    run_state: str | None
    task_id: str | None
    map_index: int
    state: str | None
    blockers: list[BlockerView]
    position: Position | None
    workers: Workers | None
    next_event: NextEvent | None
    earliest_start: Moment | None
    """Not before this; null where it depends on a person, is under way or has ended."""
    next_run: NextRunView | None
    """Where the run has ended or there is none."""
    callbacks: list[str]
    """Sentences about callbacks and mails that failed; they hold nothing up."""
    open: dict[str, OpenTasks] | None = None
    """Of a running run: by state, what has not ended."""


class ComingView(msgspec.Struct, frozen=True):
    """Something that starts."""

    at: Moment
    local: str
    """The same moment in the zone that was asked for."""
    kind: str
    """run, queued, retry or reschedule."""
    dag_id: str
    run_id: str
    task_id: str | None
    map_index: int
    logical_date: Moment | None
    data_interval_start: Moment | None
    data_interval_end: Moment | None
    held_by: str | None
    """What keeps it although its moment has come."""


class Upcoming(msgspec.Struct, frozen=True):
    """What starts next, the soonest first."""

    upcoming: list[ComingView]
    timezone: str
    paused_dags: int


class Version(msgspec.Struct, frozen=True):
    """Which release answers."""

    version: str
    git_version: str | None


class Login(msgspec.Struct, frozen=True):
    """A token to be sent as `Authorization: Bearer <token>`."""

    access_token: str


ANSWERS: tuple[type[msgspec.Struct], ...] = (
    Problem,
    Dags,
    DagDetailsView,
    Versions,
    Runs,
    TaskInstances,
    Tries,
    History,
    Jobs,
    ExtraLinks,
    ImportErrors,
    Assets,
    AssetAliases,
    AssetEvents,
    QueuedEvents,
    Plugins,
    PluginImportErrors,
    Pools,
    Events,
    UnfinishedCallbacks,
    DeadlineMisses,
    DagStats,
    Variables,
    Connections,
    Backfills,
    BackfillPlan,
    LogPage,
    Health,
    Dependencies,
    Why,
    OpenWaits,
    Upcoming,
    Version,
    Login,
    Readiness,
)
"""Everything the OpenAPI document describes, with what they are made of."""
