"""Lists that the API and the command line show, with Airflow 3's field names (`store.views`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from tradewind.model.rows import XComWrite
from tradewind.store.port.page_lists import PageLists
from tradewind.store.views import (
    ANY_DAG,
    NO_CONDITIONS,
    AssetAliasView,
    AssetEventView,
    AssetView,
    AttemptView,
    Conditions,
    DagConditions,
    DagDetailsView,
    DagStatsView,
    DagView,
    DagWarningView,
    EventView,
    HealthFacts,
    HitlDetailView,
    HitlTryView,
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
    XComEntryView,
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
        more: DagConditions = ANY_DAG,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("dag_id",),
        now: int | None = None,
    ) -> Listing[DagView]:
        """DAGs that match all filters.

        Args:
            paused, active, has_import_errors: None: do not filter by this.
            tags: any of these tags; with `all_tags` all of them.
            owners: any of these owners.

        Raises:
            BadQuery: `order_by` names an unknown field.
        """

    def dag_display_names(self, dag_ids: Sequence[str]) -> dict[str, str]:
        """DAG → the name to show. A DAG that does not exist is left out."""

    def dag_view(self, dag_id: str, now: int | None = None) -> DagView:
        """One DAG. Raises NotFound with the nearest id."""

    def dag_details(self, dag_id: str, now: int | None = None) -> DagDetailsView:
        """One DAG with all details. Raises NotFound with the nearest id."""

    def is_favorite(self, dag_id: str, user: str) -> bool:
        """Whether the DAG is a favorite of this user."""

    def dag_tags(
        self, *, conditions: Conditions = NO_CONDITIONS, limit: int | None = 50, offset: int = 0, descending: bool = False
    ) -> Listing[str]:
        """The tags of active DAGs, by name. The conditions are on the name."""

    def dag_warnings(self, *, dag_id: str | None = None) -> list[DagWarningView]:
        """Warnings of active DAGs, by DAG id."""

    def definition_warnings(self, dag_id: str) -> tuple[str, ...]:
        """The warnings about the file of a DAG, one sentence each (`DagDefinition.warnings`). Raises NotFound."""

    def dag_versions(
        self,
        dag_id: str,
        *,
        conditions: Conditions = NO_CONDITIONS,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("version_number",),
    ) -> Listing[VersionView]:
        """Versions of one DAG, or of all with `~`. Conditions: `version_number`, `bundle_name`, `bundle_version`.

        Raises:
            NotFound: there is no such DAG; the message has the nearest id.
            BadQuery: `order_by` names an unknown field.
        """

    def version_number(self, dag_id: str, number: int) -> VersionView:
        """The version of a DAG with this number, counted from 1. Raises NotFound."""

    def version_file(self, dag_id: str, number: int) -> tuple[str, str | None, str]:
        """The source of a version of a DAG: bundle, version of the bundle, path of the file inside it. Raises NotFound."""


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

    def xcom_entries(
        self,
        dag_id: str = "~",
        run_id: str = "~",
        task_id: str = "~",
        *,
        conditions: Conditions = NO_CONDITIONS,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = (),
    ) -> Listing[XComEntryView]:
        """XComs of a task, a run, a DAG or all DAGs (`~`), without their values.

        Args:
            conditions: on `key`, `map_index`, `run_id`, `task_id`, `dag_display_name`; ranges of `logical_date`, `run_after`.
            order_by: empty: by DAG, task, run, map index and key.

        Raises:
            NotFound: there is no such DAG or run.
            BadQuery: an unknown filter or order.
            TooBroad: the query took too long.
        """

    def list_runs(
        self,
        dag_id: str = "~",
        *,
        states: Sequence[str] = (),
        run_types: Sequence[str] = (),
        ranges: Mapping[str, int] | None = None,
        conditions: Conditions = NO_CONDITIONS,
        conf_contains: str | None = None,
        consuming_asset: str | None = None,
        cursor: str | None = None,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("id",),
    ) -> Listing[RunView]:
        """Runs of a DAG, or of all DAGs with `~`.

        Args:
            states: names of run states; empty: all.
            ranges: `run_after|logical_date|start_date|end_date|duration|updated_at` + `_gte|_gt|_lte|_lt` → microseconds.
            conditions: on `dag_id`, `run_id`, `triggering_user_name`, `partition_key`, `bundle_version`, `dag_version`.
            conf_contains: a part of the conf's JSON text.
            consuming_asset: a part of the name or the URI of an asset whose event the run consumed.
            cursor: cursor of an earlier page; empty: the first page. Then `offset` has no effect and the total is None.

        Raises:
            NotFound: there is no such DAG; the message has the nearest id.
            BadQuery: an unknown filter or order.
            TooBroad: the query took too long.
        """

    def run_details(self, dag_id: str, run_id: str) -> RunView:
        """One run. Raises NotFound with the nearest DAG id or the latest runs."""

    def dag_stats(self, dag_ids: Sequence[str] = ()) -> list[DagStatsView]:
        """Number of runs of each DAG in each state, including states without runs. `dag_ids` empty: all active DAGs."""


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
        conditions: Conditions = NO_CONDITIONS,
        task_group: str | None = None,
        cursor: str | None = None,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = (),
    ) -> Listing[TaskInstanceView]:
        """Task instances of a run, of all runs of a DAG (`run_id` is `~`), or of all DAGs (both are `~`).

        Args:
            states: names of states; None or "none" is the state before scheduling. Empty: all.
            ranges: `run_after|logical_date|start_date|end_date|duration|updated_at` + `_gte|_gt|_lte|_lt` → microseconds.
            conditions: on `dag_id`, `run_id`, `task_id`, `map_index`, `try_number`, `rendered_map_index`, `version_number`,
                `pool`, `queue`, `operator`, `executor`, `task_display_name`.
            task_group: tasks in this group, or in a group within it.
            cursor: cursor of an earlier page; empty: the first page. Then `offset` has no effect and the total is None.
            order_by: empty: by the time when the run became due, then in the order of the DAG file.

        Raises:
            NotFound: there is no such DAG or run.
            BadQuery: an unknown filter or order.
            TooBroad: the query took too long.
        """

    def task_instance(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> TaskInstanceView:
        """One task instance. Raises NotFound with the nearest DAG, run or task."""

    def task_tries(
        self, dag_id: str, run_id: str, task_id: str, map_index: int = -1, *, present_state: bool = False
    ) -> list[TriedView]:
        """Every try of a task instance, the current one last. Raises NotFound.

        Args:
            present_state: the current try of a task that waits for its next one is `up_for_retry`, not `failed`.
        """

    def attempts(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> list[AttemptView]:
        """Every attempt of a task instance, the oldest first. Raises NotFound."""

    def task_history(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> list[StepView]:
        """Every state change of a task instance, the first one first. Raises NotFound."""

    def log_files(self, dag_id: str, run_id: str, task_id: str, map_index: int, try_number: int) -> list[LogFile]:
        """The logs of a try, the oldest attempt first. An attempt that has not started may have no file yet.

        Raises:
            NotFound: there is no such task instance, or no such try.
        """


class HitlFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Filter for a list of questions of tasks. A field that is None, empty or `~` matches all questions."""

    dag_id: str = "~"
    run_id: str = "~"
    dag_id_pattern: str | None = None
    dag_id_prefix: str | None = None
    task_id: str | None = None
    task_id_pattern: str | None = None
    task_id_prefix: str | None = None
    map_index: int | None = None
    states: Sequence[str | None] = ()
    """States of the task instance."""
    answered: bool | None = None
    user_ids: Sequence[str] = ()
    """Names of the people who have answered."""
    user_names: Sequence[str] = ()
    subject: str | None = None
    """Part of the subject."""
    body: str | None = None
    ranges: Mapping[str, int] = {}
    """`created_at` + `_gte|_gt|_lte|_lt` → microseconds."""


class HitlLists(Protocol):
    """Questions of tasks to people (human in the loop)."""

    def hitl_details(
        self, wanted: HitlFilter, *, limit: int | None = 50, offset: int = 0, order_by: Sequence[str] = ()
    ) -> Listing[HitlDetailView]:
        """Questions of the current tries of task instances, the oldest first.

        Raises:
            NotFound: there is no such DAG or run; the message has the nearest one.
            BadQuery: an unknown state, filter or order.
            TooBroad: the query took too long.
        """

    def hitl_detail(self, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> HitlDetailView:
        """The question of the current try of a task instance. Raises NotFound."""

    def hitl_try(self, dag_id: str, run_id: str, task_id: str, map_index: int, try_number: int) -> HitlTryView:
        """The question of one try of a task instance. Raises NotFound."""


class ServiceLists(Protocol):
    """Import errors, pools, jobs, the audit log, health."""

    def import_errors(
        self,
        *,
        filename_pattern: str | None = None,
        conditions: Conditions = NO_CONDITIONS,
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
        conditions: Conditions = NO_CONDITIONS,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("name",),
    ) -> Listing[PoolView]:
        """Pools with their slots by state. Raises BadQuery."""

    def pool_details(self, name: str) -> PoolView:
        """One pool. Raises NotFound with the nearest name."""

    def event_logs(
        self,
        *,
        dag_id: str | None = None,
        task_id: str | None = None,
        run_id: str | None = None,
        event: str | None = None,
        owner: str | None = None,
        excluded_events: Sequence[str] = (),
        conditions: Conditions = NO_CONDITIONS,
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
        """Jobs: one for each process of a service.

        Args:
            now: microseconds; needed for `is_alive`.
            is_alive: True: running, with a heartbeat less than `JOB_ALIVE` before `now`; False: all others.
            ranges: `start_date|end_date` + `_gte|_gt|_lte|_lt` → microseconds.

        Raises:
            BadQuery: an unknown filter or order.
        """

    def health_facts(self) -> HealthFacts:
        """The facts about services in the database. Raises StoreError if it cannot be read."""


class AssetLists(Protocol):
    """Assets, aliases, events."""

    def list_assets(
        self,
        *,
        name_pattern: str | None = None,
        uri_pattern: str | None = None,
        dag_ids: Sequence[str] = (),
        only_active: bool = True,
        conditions: Conditions = NO_CONDITIONS,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("id",),
    ) -> Listing[AssetView]:
        """Assets. `only_active`: only those that an active DAG names, or that have an alias. Raises BadQuery."""

    def asset_details(self, number: int) -> AssetView:
        """One asset. Raises NotFound."""

    def need_asset(self, name: str, uri: str) -> AssetView:
        """The asset with the given name, URI, or both. Raises NotFound with the nearest name."""

    def asset_conflicts(self, number: int) -> list[str]:
        """Sentences about other assets of active DAGs with the same name or the same URI."""

    def list_asset_aliases(
        self,
        *,
        name_pattern: str | None = None,
        conditions: Conditions = NO_CONDITIONS,
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
        conditions: Conditions = NO_CONDITIONS,
        ranges: Mapping[str, int] | None = None,
        limit: int | None = 50,
        offset: int = 0,
        order_by: Sequence[str] = ("timestamp",),
    ) -> Listing[AssetEventView]:
        """Events of assets. `consumed_by`: number of a run. `ranges`: ranges of `timestamp`. Raises BadQuery."""

    def asset_event(self, number: int) -> AssetEventView:
        """One event. Raises NotFound."""

    def queued_events(
        self, *, dag_id: str | None = None, asset: int | None = None, before: int | None = None
    ) -> list[QueuedEventView]:
        """Events that wait for DAGs, one entry for each DAG and asset. `before`: emitted before this time, microseconds.

        Raises:
            NotFound: there is no such DAG; the message has the nearest id.
        """


class ListReader(DagLists, RunLists, TaskLists, HitlLists, ServiceLists, AssetLists, PageLists, Protocol):
    """All lists."""
