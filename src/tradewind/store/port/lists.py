"""Lists that the API and the command line show, with Airflow 3's field names (`store.views`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tradewind.model.rows import XComWrite
from tradewind.store.views import (
    AssetAliasView,
    AssetEventView,
    AssetView,
    AttemptView,
    DagDetailsView,
    DagStatsView,
    DagView,
    EventView,
    HealthFacts,
    ImportErrorView,
    JobView,
    Listing,
    LogFile,
    PoolView,
    QueuedEventView,
    RunView,
    StepView,
    TaskInstanceView,
    TriedView,
    VersionView,
)


class DagLists(Protocol):
    """DAGs and their versions."""

    def list_dags(
        self,
        *,
        paused: bool | None = None,
        active: bool | None = True,
        tags: Sequence[str] = (),
        all_tags: bool = False,
        owners: Sequence[str] = (),
        dag_id_pattern: str | None = None,
        dag_id_prefix: str | None = None,
        has_import_errors: bool | None = None,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("dag_id",),
    ) -> Listing[DagView]:
        """DAGs that match all filters.

        Args:
            paused, active, has_import_errors: None: either.
            tags: any of these tags; with `all_tags` all of them.
            owners: any of these owners.

        Raises:
            BadQuery: `order_by` names an unknown field.
        """

    def dag_view(self, dag_id: str) -> DagView:
        """One DAG. Raises NotFound, naming the nearest id."""

    def dag_details(self, dag_id: str) -> DagDetailsView:
        """One DAG with all details. Raises NotFound, naming the nearest id."""

    def dag_versions(
        self, dag_id: str, *, limit: int | None = 50, offset: int = 0, order_by: Sequence[str] = ("version_number",)
    ) -> Listing[VersionView]:
        """Versions of one DAG, or of all with `~`.

        Raises:
            NotFound: there is no such DAG; names the nearest id.
            BadQuery: `order_by` names an unknown field.
        """

    def version_number(self, dag_id: str, number: int) -> VersionView:
        """The version of a DAG with this number, counted from 1. Raises NotFound."""


class RunLists(Protocol):
    """DAG runs."""

    def list_xcoms(
        self,
        run: int,
        *,
        task_id: str | None = None,
        map_index: int | None = None,
        key: str | None = None,
        limit: int | None = None,
    ) -> list[XComWrite]:
        """XComs that tasks of a run have pushed, by task, map index and key. A filter that is None matches all."""

    def list_runs(
        self,
        dag_id: str = "~",
        *,
        states: Sequence[str] = (),
        run_types: Sequence[str] = (),
        ranges: Mapping[str, int] | None = None,
        run_id_pattern: str | None = None,
        run_id_prefix: str | None = None,
        dag_id_pattern: str | None = None,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("id",),
    ) -> Listing[RunView]:
        """Runs of a DAG, or of all DAGs with `~`.

        Args:
            states: names of run states; empty: all.
            ranges: `run_after|logical_date|start_date|end_date` + `_gte|_gt|_lte|_lt` → microseconds.

        Raises:
            NotFound: there is no such DAG; names the nearest id.
            BadQuery: an unknown filter or order.
            TooBroad: the query took too long.
        """

    def run_details(self, dag_id: str, run_id: str) -> RunView:
        """One run. Raises NotFound, naming the nearest DAG id or the latest runs."""

    def dag_stats(self, dag_ids: Sequence[str] = ()) -> list[DagStatsView]:
        """How many runs of each DAG are in each state, states without runs included. `dag_ids` empty: all active DAGs."""


class TaskLists(Protocol):
    """Task instances, their tries, attempts and logs."""

    def list_task_instances(
        self,
        dag_id: str = "~",
        run_id: str = "~",
        *,
        task_id: str | None = None,
        states: Sequence[str | None] = (),
        ranges: Mapping[str, int] | None = None,
        map_indexes: Sequence[int] = (),
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = (),
    ) -> Listing[TaskInstanceView]:
        """Task instances of a run, of all runs of a DAG (`run_id` is `~`), or of all DAGs (both are `~`).

        Args:
            states: names of states; None or "none" is the state before scheduling. Empty: all.
            ranges: `run_after|logical_date|start_date|end_date` + `_gte|_gt|_lte|_lt` → microseconds.
            order_by: empty: by run as it became due, then in the order of the DAG file.

        Raises:
            NotFound: there is no such DAG or run.
            BadQuery: an unknown filter or order.
            TooBroad: the query took too long.
        """

    def task_instance(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> TaskInstanceView:
        """One task instance. Raises NotFound, naming the nearest DAG, run or task."""

    def task_tries(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> list[TriedView]:
        """Every try of a task instance, the current one last. Raises NotFound."""

    def attempts(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> list[AttemptView]:
        """Every attempt of a task instance, the oldest first. Raises NotFound."""

    def task_history(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> list[StepView]:
        """Every state change of a task instance, the first one first. Raises NotFound."""

    def log_files(self, dag_id: str, run_id: str, task_id: str, map_index: int, try_number: int) -> list[LogFile]:
        """The logs of a try, the oldest attempt first. An attempt that has not started may have no file yet.

        Raises:
            NotFound: there is no such task instance, or it had no such try.
        """


class ServiceLists(Protocol):
    """Import errors, pools, jobs, the audit log, health."""

    def import_errors(
        self,
        *,
        filename_pattern: str | None = None,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("id",),
    ) -> Listing[ImportErrorView]:
        """Import errors of DAG files. Raises BadQuery."""

    def import_error(self, number: int) -> ImportErrorView:
        """One import error. Raises NotFound."""

    def list_pools(
        self,
        *,
        name_pattern: str | None = None,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("name",),
    ) -> Listing[PoolView]:
        """Pools with their slots by state. Raises BadQuery."""

    def pool_details(self, name: str) -> PoolView:
        """One pool. Raises NotFound, naming the nearest name."""

    def event_logs(
        self,
        *,
        dag_id: str | None = None,
        task_id: str | None = None,
        run_id: str | None = None,
        event: str | None = None,
        owner: str | None = None,
        ranges: Mapping[str, int] | None = None,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("id",),
    ) -> Listing[EventView]:
        """The audit log. `ranges`: `when_gte|gt|lte|lt` → microseconds. Raises BadQuery, TooBroad."""

    def event_log(self, number: int) -> EventView:
        """One entry of the audit log. Raises NotFound."""

    def list_jobs(
        self,
        *,
        now: int,
        is_alive: bool | None = None,
        state: str | None = None,
        job_type: str | None = None,
        hostname: str | None = None,
        executor_class: str | None = None,
        ranges: Mapping[str, int] | None = None,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("id",),
    ) -> Listing[JobView]:
        """Jobs: one for each time that a service ran.

        Args:
            now: microseconds; with `is_alive`.
            is_alive: True: running, with a heartbeat less than `JOB_ALIVE` before `now`; False: all others.
            ranges: `start_date|end_date` + `_gte|_gt|_lte|_lt` → microseconds.

        Raises:
            BadQuery: an unknown filter or order.
        """

    def health_facts(self) -> HealthFacts:
        """What the database knows about the services. Raises StoreError if it cannot be read."""


class AssetLists(Protocol):
    """Assets, aliases, events."""

    def list_assets(
        self,
        *,
        name_pattern: str | None = None,
        uri_pattern: str | None = None,
        dag_ids: Sequence[str] = (),
        only_active: bool = True,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("id",),
    ) -> Listing[AssetView]:
        """Assets. `only_active`: those that an active DAG names, or that have an alias. Raises BadQuery."""

    def asset_details(self, number: int) -> AssetView:
        """One asset. Raises NotFound."""

    def need_asset(self, name: str, uri: str) -> AssetView:
        """The asset with this name and URI, as far as given. Raises NotFound, naming the nearest name."""

    def asset_conflicts(self, number: int) -> list[str]:
        """Sentences about other assets of active DAGs with the same name or the same URI."""

    def list_asset_aliases(
        self,
        *,
        name_pattern: str | None = None,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("id",),
    ) -> Listing[AssetAliasView]:
        """Aliases of assets. Raises BadQuery."""

    def asset_alias(self, number: int) -> AssetAliasView:
        """One alias. Raises NotFound."""

    def list_asset_events(
        self,
        *,
        asset: int | None = None,
        source_dag_id: str | None = None,
        source_task_id: str | None = None,
        source_run_id: str | None = None,
        source_map_index: int | None = None,
        name_pattern: str | None = None,
        consumed_by: int | None = None,
        ranges: Mapping[str, int] | None = None,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("timestamp",),
    ) -> Listing[AssetEventView]:
        """Events of assets. `consumed_by`: number of a run. `ranges`: of `timestamp`. Raises BadQuery."""

    def asset_event(self, number: int) -> AssetEventView:
        """One event. Raises NotFound."""

    def queued_events(
        self, *, dag_id: str | None = None, asset: int | None = None, before: int | None = None
    ) -> list[QueuedEventView]:
        """Events that wait for DAGs, one entry for each DAG and asset. `before`: emitted before this moment, µs.

        Raises:
            NotFound: there is no such DAG; names the nearest id.
        """


class ListReader(DagLists, RunLists, TaskLists, ServiceLists, AssetLists, Protocol):
    """All lists."""
