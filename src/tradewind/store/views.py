"""The rows of lists: structs with Airflow 3's field names, ready to be written as JSON.

The API returns them unchanged; the command line shows some of their fields. Moments are ISO 8601 in UTC with `Z`,
durations are seconds. Source of the names: the response schemas of Airflow's REST API v2 (3.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import msgspec

from tradewind.model.errors import StoreError, TradewindError
from tradewind.model.states import RunState, RunType, TaskState
from tradewind.wire import explanations


class BadQuery(TradewindError, ValueError):
    """A list was requested with a filter or an order that does not exist."""


class UnknownValue(BadQuery):
    """A list was requested with a filter for a value that does not exist, such as a state."""


class TooBroad(StoreError):
    """The query would have to read too many rows; the message says how to narrow it."""


Moment = explanations.Moment
Uuid = Annotated[str, msgspec.Meta(extra_json_schema={"format": "uuid"})]
ShownTaskState = Annotated[
    str, msgspec.Meta(extra_json_schema={"enum": [state.value for state in TaskState if state is not TaskState.NONE]})
]
TriggeredBy = Annotated[
    str,
    msgspec.Meta(extra_json_schema={"enum": ["cli", "operator", "rest_api", "ui", "test", "timetable", "asset", "backfill"]}),
]

Item = TypeVar("Item")


class Listing(NamedTuple, Generic[Item]):
    """One page of a list. `total`: number of all matching rows; None if counting would take too long."""

    rows: list[Item]
    total: int | None
    next_cursor: str | None = None
    """For a list that was requested with a cursor: the start of the next page. None: this is the last page."""
    previous_cursor: str | None = None
    """The cursor of the previous page. None: this is the first page."""


class Conditions(NamedTuple):
    """The conditions on the rows of a list, by the name of the field in the API. Each list documents its fields."""

    patterns: Mapping[str, str] = MappingProxyType({})
    """Airflow's search patterns: part of the text in any case, `|` means "or"."""
    prefixes: Mapping[str, str] = MappingProxyType({})
    """The beginning of the text, in the same case."""
    among: Mapping[str, Sequence[str | int]] = MappingProxyType({})
    """One of these values."""
    ranges: Mapping[str, int] = MappingProxyType({})
    """`<field>_gte|gt|lte|lt` → microseconds."""


NO_CONDITIONS = Conditions()


class DagConditions(NamedTuple):
    """Additional conditions of a list of DAGs. An empty field is no condition."""

    among: Mapping[str, Sequence[str | int]] = MappingProxyType({})
    """`bundle_name`: one of these values."""
    display_name_pattern: str | None = None
    display_name_prefix: str | None = None
    has_asset_schedule: bool | None = None
    asset: str | None = None
    """A part of the name or the URI of an asset on which the DAG is scheduled."""
    favorite_of: str | None = None
    """Name of a user: with `is_favorite` only the favorites of this user, otherwise only other DAGs."""
    is_favorite: bool = True
    last_run_states: Sequence[str] = ()
    last_run_ranges: Mapping[str, int] = MappingProxyType({})
    """`start_date|end_date` + `_gte|gt|lte|lt` of the latest run → microseconds."""
    timetable_types: Sequence[str] = ()


ANY_DAG = DagConditions()


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all structs here."""


class TagView(Shape, frozen=True, kw_only=True):
    name: str
    dag_id: str
    dag_display_name: str


class VersionView(Shape, frozen=True, kw_only=True):
    """One version of a DAG's definition."""

    id: Uuid
    version_number: int
    dag_id: str
    bundle_name: str | None
    bundle_version: str | None
    created_at: Moment
    dag_display_name: str
    bundle_url: str | None


class DagView(Shape, frozen=True, kw_only=True):
    """One DAG in a list."""

    dag_id: str
    dag_display_name: str
    is_paused: bool
    is_stale: bool
    """Whether no file defines the DAG any more."""
    last_parsed_time: Moment | None
    last_parse_duration: float | None
    last_expired: Moment | None
    bundle_name: str | None
    bundle_version: str | None
    relative_fileloc: str | None
    fileloc: str
    description: str | None
    timetable_summary: str | None
    timetable_description: str | None
    timetable_partitioned: bool
    timetable_periodic: bool
    tags: list[TagView]
    max_active_tasks: int
    max_active_runs: int | None
    max_consecutive_failed_dag_runs: int
    has_task_concurrency_limits: bool
    has_import_errors: bool
    next_dagrun_logical_date: Moment | None
    next_dagrun_data_interval_start: Moment | None
    next_dagrun_data_interval_end: Moment | None
    next_dagrun_run_after: Moment | None
    allowed_run_types: list[RunType] | None
    owners: list[str]
    is_backfillable: bool
    file_token: str


class DagDetailsView(DagView, frozen=True, kw_only=True):
    """One DAG with all details."""

    catchup: bool
    dag_run_timeout: Annotated[str, msgspec.Meta(extra_json_schema={"format": "duration"})] | None
    asset_expression: dict[str, Any] | None
    doc_md: str | None
    start_date: Moment | None
    end_date: Moment | None
    is_paused_upon_creation: bool | None
    params: dict[str, Any] | None
    render_template_as_native_obj: bool
    template_search_path: list[str] | None
    timezone: str | None
    last_parsed: Moment | None
    default_args: dict[str, Any] | None
    rerun_with_latest_version: bool | None
    owner_links: dict[str, str] | None
    is_favorite: bool
    active_runs_count: int
    concurrency: int
    latest_dag_version: VersionView | None


class DagWarningView(Shape, frozen=True, kw_only=True):
    """A warning about a DAG whose file can be imported."""

    dag_id: str
    warning_type: Annotated[
        str, msgspec.Meta(extra_json_schema={"enum": ["asset conflict", "non-existent pool", "runtime varying value"]})
    ]
    message: str
    timestamp: Moment
    dag_display_name: str


class XComEntryView(Shape, frozen=True, kw_only=True):
    """One XCom, without its value."""

    key: str
    timestamp: Moment
    logical_date: Moment | None
    map_index: int
    task_id: str
    dag_id: str
    run_id: str
    dag_display_name: str
    task_display_name: str
    run_after: Moment


class RunView(Shape, frozen=True, kw_only=True):
    """One run."""

    dag_run_id: str
    dag_id: str
    logical_date: Moment | None
    queued_at: Moment | None
    start_date: Moment | None
    end_date: Moment | None
    duration: float | None
    data_interval_start: Moment | None
    data_interval_end: Moment | None
    run_after: Moment
    last_scheduling_decision: Moment | None
    """Always null: the scheduler reacts to events, it has no rounds in which it decides."""
    run_type: RunType
    state: RunState
    triggered_by: TriggeredBy | None
    triggering_user_name: str | None
    conf: dict[str, Any] | None
    note: str | None
    dag_versions: list[VersionView]
    bundle_version: str | None
    dag_display_name: str
    partition_key: str | None
    partition_date: Moment | None


class TryView(Shape, frozen=True, kw_only=True):
    """One try of a task instance. A try may have several attempts: a rescheduled sensor, a lost worker."""

    task_id: str
    dag_id: str
    dag_run_id: str
    map_index: int
    start_date: Moment | None
    end_date: Moment | None
    duration: float | None
    state: ShownTaskState | None
    try_number: int
    max_tries: int
    task_display_name: str
    dag_display_name: str
    hostname: str | None
    unixname: str | None
    pool: str
    pool_slots: int
    queue: str | None
    priority_weight: int | None
    """Total weight by the task's weight rule; null in DAGs of more than 5,000 tasks, for which it is not computed."""
    operator: str | None
    operator_name: str | None
    queued_when: Moment | None
    scheduled_when: Moment | None
    """Null in lists whose runs have too many journal entries (`JOURNAL_ROWS_MAX`)."""
    pid: int | None
    executor: str | None
    """The executor that the task names; null: the default executor. The attempts have the executor that ran them."""
    executor_config: str
    dag_version: VersionView | None


class TaskInstanceView(TryView, frozen=True, kw_only=True):
    """One task instance with its current state."""

    id: Uuid
    logical_date: Moment | None
    run_after: Moment
    note: str | None
    rendered_map_index: str | None
    rendered_fields: dict[str, Any]
    trigger: dict[str, Any] | None
    triggerer_job: dict[str, Any] | None


class TriedView(TryView, frozen=True, kw_only=True):
    """One try in the list of tries. Airflow does not have the last two fields."""

    reason: str | None
    """The reason of the end of its latest attempt; null if there is no reason."""
    lost_attempts: int
    """Number of attempts of this try that had started and were lost together with their worker."""


class HitlUserView(Shape, frozen=True, kw_only=True):
    """A person who may answer a question, or has answered it."""

    id: str
    name: str


class HitlQuestion(Shape, frozen=True, kw_only=True):
    """A question of a task to a person, and the answer."""

    options: list[str]
    subject: str
    body: str | None
    defaults: list[str] | None
    multiple: bool
    params: dict[str, Any]
    """Form field → `{value, description, schema}`."""
    assigned_users: list[HitlUserView]
    created_at: Moment
    responded_by_user: HitlUserView | None
    """Null if nobody has answered, or if the defaults are the answer."""
    responded_at: Moment | None
    chosen_options: list[str] | None
    params_input: dict[str, Any]
    response_received: bool


class HitlDetailView(HitlQuestion, frozen=True, kw_only=True):
    """A question of a task instance in its current try."""

    task_instance: TaskInstanceView


class HitlTryView(HitlQuestion, frozen=True, kw_only=True):
    """A question of a task instance in one try."""

    task_instance: TryView


class HitlAnswerView(Shape, frozen=True, kw_only=True):
    """The answer to a question."""

    responded_by: HitlUserView
    responded_at: Moment
    chosen_options: list[str]
    params_input: dict[str, Any]


class AttemptView(Shape, frozen=True, kw_only=True):
    """One attempt: one dispatch of a task instance under one fence. Airflow has only tries."""

    try_number: int
    fence: int
    executor: str
    hostname: str | None
    pid: int | None
    queued_when: Moment | None
    start_date: Moment | None
    end_date: Moment | None
    outcome: str | None
    reason: str | None
    exit_code: int | None
    signal: int | None
    cpu_seconds: float | None
    """CPU time of its processes; null: unknown."""
    peak_memory_bytes: int | None
    """Greatest resident memory of one of its processes; null: unknown."""


class StepView(Shape, frozen=True, kw_only=True):
    """One state change of a task instance, from the journal. Airflow does not have this."""

    at: Moment
    state: str | None
    """The new state; null: no state, as before scheduling and after a clear."""
    before: str | None
    attempt: int
    """The fence after the change: it grows with every dispatch."""
    lasted: float | None
    """Seconds until the next change; null for the last one."""
    cause: str


class JobView(Shape, frozen=True, kw_only=True):
    """One process of a service, from its start to its end. Airflow does not have `pid` and `reason`."""

    id: int
    dag_id: str | None
    dag_display_name: str | None
    state: str
    """`running`, `success` (it ended normally) or `failed`."""
    job_type: str
    start_date: Moment
    end_date: Moment | None
    latest_heartbeat: Moment
    executor_class: str | None
    hostname: str
    unixname: str
    pid: int
    reason: str | None


class ImportErrorView(Shape, frozen=True, kw_only=True):
    """Why a DAG file could not be imported. Airflow does not have `line` and `message`."""

    import_error_id: int
    timestamp: Moment
    filename: str
    bundle_name: str | None
    stack_trace: str
    message: str
    line: int | None


class PoolView(Shape, frozen=True, kw_only=True):
    """A pool with its slots by state. -1 slots: unlimited."""

    name: str
    slots: int
    description: str | None
    include_deferred: bool
    occupied_slots: int
    running_slots: int
    queued_slots: int
    scheduled_slots: int
    open_slots: int
    deferred_slots: int
    team_name: str | None


class EventView(Shape, frozen=True, kw_only=True):
    """One entry of the audit log."""

    event_log_id: int
    when: Moment
    dag_id: str | None
    task_id: str | None
    run_id: str | None
    map_index: int | None
    try_number: int | None
    event: str
    logical_date: Moment | None
    owner: str | None
    extra: str | None
    dag_display_name: str | None
    task_display_name: str | None


class StateCount(Shape, frozen=True, kw_only=True):
    state: RunState
    count: int


class DagStatsView(Shape, frozen=True, kw_only=True):
    """Number of runs of a DAG in each state."""

    dag_id: str
    dag_display_name: str
    stats: list[StateCount]


class HealthFacts(NamedTuple):
    """The facts about services in the database. Moments are microseconds."""

    scheduler_epoch: int | None
    scheduler_hostname: str | None
    scheduler_pid: int | None
    scheduler_started_at: int | None
    last_parsed_at: int | None
    worker_hosts: int


class LogFile(NamedTuple):
    """The log of one attempt: its path in the log folder, and when the attempt ended (µs; None: the log may still grow)."""

    fence: int
    path: str
    ended_at: int | None
    earlier: str = ""
    """The path that earlier releases used for the same log."""
    outcome: str | None = None
    """How the attempt ended; None: it has not ended, or the end is unknown."""


class FastApiApp(Shape, frozen=True):
    name: str = ""
    app: str = ""
    url_prefix: str = ""


class FastApiMiddleware(Shape, frozen=True):
    name: str = ""
    middleware: str = ""


class AppBuilderView(Shape, frozen=True):
    name: str | None = None
    category: str | None = None
    label: str | None = None
    view: str | None = None


class MenuItem(Shape, frozen=True):
    name: str = ""
    href: str = ""
    category: str | None = None


class ExternalView(Shape, frozen=True):
    """A link of a plugin. `destination` says where the web page shows it: `nav`, `dag`, `dag_run`, `task`, `task_instance`."""

    name: str = ""
    href: str = ""
    destination: str = "nav"
    category: str | None = None
    icon: str | None = None
    icon_dark_mode: str | None = None
    url_route: str | None = None
    nav_top_level: bool = False


class ReactApp(Shape, frozen=True):
    name: str = ""
    bundle_url: str = ""
    destination: str = "nav"
    category: str | None = None
    icon: str | None = None
    icon_dark_mode: str | None = None
    url_route: str | None = None
    nav_top_level: bool = False


class PluginView(Shape, frozen=True):
    """A plugin: the names of what it provides. Field names are Airflow's, except `listener_events` and `recorded_only`."""

    name: str
    source: str
    macros: list[str] = []
    timetables: list[str] = []
    listeners: list[str] = []
    operator_extra_links: list[str] = []
    global_operator_extra_links: list[str] = []
    priority_weight_strategies: list[str] = []
    flask_blueprints: list[str] = []
    fastapi_apps: list[FastApiApp] = []
    fastapi_root_middlewares: list[FastApiMiddleware] = []
    external_views: list[ExternalView] = []
    react_apps: list[ReactApp] = []
    appbuilder_views: list[AppBuilderView] = []
    appbuilder_menu_items: list[MenuItem] = []
    listener_events: list[str] = []
    """The events for which its listeners have functions."""
    recorded_only: list[str] = []
    """Names of provided objects that have no effect."""


_PLUGIN_TABLES = (
    "fastapi_apps",
    "fastapi_root_middlewares",
    "external_views",
    "react_apps",
    "appbuilder_views",
    "appbuilder_menu_items",
)


class PluginImportErrorView(Shape, frozen=True):
    """A plugin that cannot be loaded."""

    source: str
    error: str


def read_plugins(listed: str) -> list[PluginView]:
    """Decode the plugins in the store (`Reader.plugins`), sorted by name.

    Earlier versions stored only the names of views and apps. Those are left out until the parser sends the list again.
    """
    plain = msgspec.json.decode(listed, type=list[dict[str, Any]])
    for plugin in plain:
        for kind in _PLUGIN_TABLES:
            plugin[kind] = [entry for entry in plugin.get(kind, ()) if isinstance(entry, dict)]
    found = msgspec.convert(plain, list[PluginView])
    return sorted(found, key=lambda plugin: plugin.name)


def listened_events(listed: str) -> frozenset[str]:
    """The events for which plugins have listeners. `listed`: see `read_plugins`."""
    return frozenset(event for plugin in read_plugins(listed) for event in plugin.listener_events)


# --- assets -------------------------------------------------------------------------------------------------------------


class AssetAliasView(Shape, frozen=True, kw_only=True):
    """A name under which tasks emit events of assets that are chosen at run time."""

    id: int
    name: str
    group: str


class AssetDagView(Shape, frozen=True, kw_only=True):
    """A DAG that is scheduled on an asset."""

    dag_id: str
    created_at: Moment
    updated_at: Moment


class AssetTaskView(Shape, frozen=True, kw_only=True):
    """A task that produces or reads an asset."""

    dag_id: str
    task_id: str
    created_at: Moment
    updated_at: Moment


class LastAssetEventView(Shape, frozen=True, kw_only=True):
    id: int | None
    timestamp: Moment | None


class AssetWatcherView(Shape, frozen=True, kw_only=True):
    """A watcher of an asset, and the state of its trigger."""

    name: str
    trigger_id: int
    created_date: Moment
    trigger: str
    """Import path of the trigger's class."""
    worker: str | None
    """The worker that runs the trigger; None: it does not run."""
    failures: int
    """Number of failures in a row."""
    error: str | None
    next_start: Moment | None
    """When a trigger that ended or failed is started again."""


class AssetView(Shape, frozen=True, kw_only=True):
    """One asset."""

    id: int
    name: str
    uri: str
    group: str
    extra: dict[str, Any] | None
    created_at: Moment
    updated_at: Moment
    scheduled_dags: list[AssetDagView]
    producing_tasks: list[AssetTaskView]
    consuming_tasks: list[AssetTaskView]
    aliases: list[AssetAliasView]
    watchers: list[AssetWatcherView]
    last_asset_event: LastAssetEventView


class CreatedRunView(Shape, frozen=True, kw_only=True):
    """A run that consumed an event."""

    run_id: str
    dag_id: str
    logical_date: Moment | None
    start_date: Moment | None
    end_date: Moment | None
    state: RunState
    data_interval_start: Moment | None
    data_interval_end: Moment | None
    partition_key: str | None
    triggering: bool
    """Whether the event is the latest that the run consumed, which has triggered it."""


class AssetEventView(Shape, frozen=True, kw_only=True):
    """One event of an asset; `id` is its number in the sequence of all events."""

    id: int
    asset_id: int
    uri: str | None
    name: str | None
    group: str | None
    extra: dict[str, Any] | None
    source_task_id: str | None
    source_dag_id: str | None
    source_run_id: str | None
    source_map_index: int
    created_dagruns: list[CreatedRunView]
    timestamp: Moment
    partition_key: str | None


class QueuedEventView(Shape, frozen=True, kw_only=True):
    """An asset whose events wait for a DAG. `created_at`: the first of these events."""

    dag_id: str
    asset_id: int
    created_at: Moment
    dag_display_name: str
