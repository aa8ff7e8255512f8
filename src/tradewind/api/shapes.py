"""Responses that are not views of the store: lists, health, version, login."""

from __future__ import annotations

from typing import Any

import msgspec

from tradewind.store.callback_view import CallbackView, MissView
from tradewind.store.views import (
    AssetAliasView,
    AssetEventView,
    AssetView,
    DagStatsView,
    DagView,
    EventView,
    HitlDetailView,
    ImportErrorView,
    JobView,
    PluginImportErrorView,
    PluginView,
    PoolView,
    QueuedEventView,
    StepView,
    TriedView,
    VersionView,
)


class Problem(msgspec.Struct, frozen=True):
    """An error in a sentence; for an invalid request a list of errors."""

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


class HitlDetails(msgspec.Struct, frozen=True):
    """A page of questions of tasks to persons. `total_entries` is null where counting would take too long."""

    hitl_details: list[HitlDetailView]
    total_entries: int | None


class Tries(msgspec.Struct, frozen=True):
    """All tries of a task instance."""

    task_instances: list[TriedView]
    total_entries: int


class ExtraLinks(msgspec.Struct, frozen=True):
    """Extra links of a task instance: URL by name."""

    extra_links: dict[str, str | None]
    total_entries: int


class BackfillView(msgspec.Struct, frozen=True):
    """A backfill. Not in Airflow: `runs` (planned runs) and `handled` (runs that were created, run again or skipped)."""

    id: int
    dag_id: str
    from_date: str
    to_date: str
    dag_run_conf: dict[str, Any] | None
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
    """The outcome of one run of a backfill. Not in Airflow: `outcome` and `run_id`."""

    logical_date: str | None
    outcome: str
    run_id: str | None
    partition_key: str | None = None
    partition_date: str | None = None


class BackfillPlan(msgspec.Struct, frozen=True):
    """The runs of a planned backfill."""

    backfills: list[PlannedRun]
    total_entries: int


class ImportErrors(msgspec.Struct, frozen=True):
    """A page of import errors."""

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
    """Asset events that DAGs have not consumed."""

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
    """The state changes of a task instance, the oldest first."""

    steps: list[StepView]
    total_entries: int


class UnfinishedCallbacks(msgspec.Struct, frozen=True):
    """Unfinished callbacks and mails."""

    callbacks: list[CallbackView]


class DeadlineMisses(msgspec.Struct, frozen=True):
    """Missed deadlines."""

    deadline_misses: list[MissView]


class DagStats(msgspec.Struct, frozen=True):
    """Counts of runs by state, for each DAG."""

    dags: list[DagStatsView]
    total_entries: int


class VariableView(msgspec.Struct, frozen=True):
    """A variable. Its value is masked if its key is the name of a secret."""

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
    """A connection, without its password and the secrets of its extra."""

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
    """Part of a log. A token means that there is, or may be, more: send it to continue."""

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
    """Whether work can be accepted and run now."""

    ready: bool
    reasons: list[str]
    """A sentence for each unhealthy component."""
    warnings: list[str] = []
    """A sentence for each bundle that cannot be fetched. Its last version stays in use, so work is accepted."""


class Health(msgspec.Struct, frozen=True):
    """The health of each component. The status null means that it does not run here."""

    metadatabase: PartHealth
    scheduler: SchedulerHealth
    triggerer: TriggererHealth
    dag_processor: DagProcessorHealth
    worker_host: WorkerHostHealth
    """Not in Airflow: the process that runs the tasks."""


class Dependency(msgspec.Struct, frozen=True):
    """An unmet dependency of a task instance, with Airflow's name."""

    name: str
    reason: str


class Dependencies(msgspec.Struct, frozen=True):
    """The unmet dependencies of a task instance."""

    dependencies: list[Dependency]


class Version(msgspec.Struct, frozen=True):
    """The release of this server."""

    version: str
    git_version: str | None


class Login(msgspec.Struct, frozen=True):
    """A token. Send it as `Authorization: Bearer <token>`."""

    access_token: str
