"""The definition of a DAG: the content of a DAG file as plain values without code.

The parser creates it in a child process, the store keeps it under the hash of its canonical bytes, and the scheduler and the
command line read it. Moments and durations are integer microseconds (see `moments`).

Equal definitions give equal bytes and so the same version: tuples have the author's order where order matters (tasks, edges),
and are sorted where it does not (tags).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypeVar

import msgspec

from tradewind.model.assets import AssetSchedule, AssetUse
from tradewind.model.executor_names import LOCAL
from tradewind.model.partitions import CronPartition
from tradewind.model.states import RunType, TriggerRule, WeightRule
from tradewind.model.wait_plans import WaitPlan

_V = TypeVar("_V")

DEFINITION_FORMAT = 1
"""Increased when a field changes its meaning; an unknown format is refused with an error message."""


# --- schedules ------------------------------------------------------------------------------------------------------


class Delta(msgspec.Struct, frozen=True, omit_defaults=True, tag="delta"):
    """A step in time: exact (`micros`) plus calendar parts that follow a relativedelta (`months`, `years`, …).

    `parts` are the non-zero keyword arguments of dateutil's relativedelta, sorted by name.
    """

    micros: int = 0
    parts: tuple[tuple[str, int], ...] = ()


class NoSchedule(msgspec.Struct, frozen=True, omit_defaults=True, tag="none"):
    """The DAG runs only when it is triggered."""

    partitioned_at_runtime: bool = False
    """The person or program that triggers it may give a partition key, and its tasks name the keys of their asset events."""


class OnceSchedule(msgspec.Struct, frozen=True, tag="once"):
    """One run, at the start date."""


class ContinuousSchedule(msgspec.Struct, frozen=True, tag="continuous"):
    """The next run starts as soon as the last one has ended."""


class CronSchedule(msgspec.Struct, frozen=True, omit_defaults=True, tag="cron"):
    """Fires when the wall clock of `timezone` matches one of `expressions` (presets are already replaced).

    `interval_kind` "data": the run of [start, end) fires at its end and its logical date is the start (Airflow 1 and 2).
    `interval_kind` "trigger": the interval is `interval` long and ends when it fires; its start is the logical date (without an
    `interval`: the moment when it fires). Several expressions that fire at the same moment fire once. `run_immediately`: whether
    the latest missed moment still gets a run, if there is no start date and no earlier run. True: always; False or None: if it was
    missed by at most a tenth of the interval or 5 minutes; an int: within that many microseconds.
    """

    expressions: tuple[str, ...]
    timezone: str = "UTC"
    interval_kind: str = "trigger"
    interval: Delta = Delta()
    run_immediately: bool | int | None = False
    partition: CronPartition | None = None
    """Set: runs have a partition key and date instead of a logical date and a data interval."""


class DeltaSchedule(msgspec.Struct, frozen=True, omit_defaults=True, tag="every"):
    """Fires every `delta` after the start date. `interval_kind` and `interval` as in `CronSchedule`."""

    delta: Delta
    interval_kind: str = "trigger"
    interval: Delta = Delta()


class EventsSchedule(msgspec.Struct, frozen=True, omit_defaults=True, tag="events"):
    """Fires at the listed moments (sorted, microseconds)."""

    dates: tuple[int, ...]
    restrict_to_events: bool = False
    description: str | None = None


class CustomSchedule(msgspec.Struct, frozen=True, omit_defaults=True, tag="custom"):
    """A timetable written by users: the name of its class, and its arguments. Only a child process without credentials runs it."""

    module: str
    """Name of its module; empty if the class is in the DAG file itself."""
    name: str
    data: bytes = b"{}"
    """Return value of its `serialize`, as canonical JSON."""
    description: str | None = None
    manual_only: bool = False
    """The timetable schedules no runs."""
    active_runs_limit: int | None = None
    """Maximum number of runs at the same time."""
    partitioned_at_runtime: bool = False
    """As in `NoSchedule`."""
    names_runs: bool = False
    """Its class has a `generate_run_id` of its own."""
    periodic: bool = True
    """It has more than one run, so a backfill is possible."""


class PlannedRuns(msgspec.Struct, frozen=True, tag="planned"):
    """The runs of a backfill whose schedule only user code can compute, in order: the fields of `timetables.RunTimes`."""

    runs: tuple[tuple[int | None, int | None, int | None, int, str | None, int | None, str | None], ...]


Schedule = NoSchedule | OnceSchedule | ContinuousSchedule | CronSchedule | DeltaSchedule | EventsSchedule | CustomSchedule


# --- what a mapped task expands over ----------------------------------------------------------------------------------


class MapLiteral(msgspec.Struct, frozen=True, tag="literal"):
    """A list or dict in the DAG file; only its length is stored."""

    length: int


class MapXCom(msgspec.Struct, frozen=True, tag="xcom"):
    """The return value of `task_id`; for a mapped task, the list of its instances' return values."""

    task_id: str


class MapZip(msgspec.Struct, frozen=True, omit_defaults=True, tag="zip"):
    """Tuples of the elements of several lists: as many as the shortest list has, or the longest."""

    of: tuple[MapSource, ...]
    longest: bool = False


class MapConcat(msgspec.Struct, frozen=True, tag="concat"):
    """Several lists, concatenated."""

    of: tuple[MapSource, ...]


MapSource = MapLiteral | MapXCom | MapZip | MapConcat
"""One dimension of an expansion. The last dimension varies fastest."""


def map_providers(sources: Iterable[MapSource]) -> Iterator[str]:
    """Yield the ids of the tasks whose return values these lists need, with repetitions."""
    for source in sources:
        if isinstance(source, MapXCom):
            yield source.task_id
        elif isinstance(source, MapZip | MapConcat):
            yield from map_providers(source.of)


# --- defaults ----------------------------------------------------------------------------------------------------------


ScheduleMeaning = Literal["auto", "airflow3", "airflow2"]
"""The generation of Airflow that defines the meaning of a schedule."""


class DefinitionDefaults(msgspec.Struct, frozen=True):
    """Values from the configuration for arguments that a DAG file does not set. Durations are microseconds."""

    retries: int = 0
    retry_delay: int = 300_000_000
    max_active_tasks: int = 16
    max_active_tasks_all_runs: int | None = None
    max_active_runs: int = 16
    max_consecutive_failed_dag_runs: int = 0
    catchup: bool | None = None
    """None: off, but on for files for Airflow 1 or 2, in which it was on by default."""
    schedule_meaning: ScheduleMeaning = "airflow3"
    """airflow3: the logical date of a run of a cron expression or timedelta is the moment when it fires, and a DAG without
    `schedule` runs only when triggered. airflow2: the run covers the interval before that moment, and a DAG without `schedule` runs
    daily. auto: airflow2 for files that use names which Airflow 3 does not have."""
    timezone: str = "UTC"
    """Time zone of dates that are written without one."""
    meanings: tuple[tuple[str, ScheduleMeaning], ...] = ()
    """(folder inside the DAG folder, `schedule_meaning` of the files below it)."""
    max_active_tasks_of_folders: tuple[tuple[str, int | None], ...] = ()
    """(folder inside the DAG folder, `max_active_tasks_all_runs` of the files below it; None: no limit)."""
    disable_bundle_versioning: bool = False
    rerun_with_latest_version: bool | None = None
    executors: str = LOCAL
    """The setting `core.executor`: the executors that tasks may name."""

    def of_file(self, file: str, generation: int = 3) -> DefinitionDefaults:
        """Return the defaults for one file. Values of the innermost folder apply.

        Args:
            file: path inside the DAG folder, with forward slashes.
            generation: the generation of Airflow for which the file was written. It decides if `schedule_meaning` is `auto`.
        """
        meaning = _of_folder(self.meanings, file, self.schedule_meaning)
        older = meaning == "auto" and generation < 3
        return msgspec.structs.replace(
            self,
            schedule_meaning=("airflow2" if older else "airflow3") if meaning == "auto" else meaning,
            catchup=older if self.catchup is None else self.catchup,
            max_active_tasks_all_runs=_of_folder(self.max_active_tasks_of_folders, file, self.max_active_tasks_all_runs),
        )


def _of_folder(values: tuple[tuple[str, _V], ...], file: str, default: _V) -> _V:
    """Return the value of the innermost folder that contains the file; `default` if no folder does."""
    found = [(len(folder), value) for folder, value in values if file.startswith(f"{folder}/")]
    return max(found, key=lambda one: one[0])[1] if found else default


# --- tasks and DAGs -------------------------------------------------------------------------------------------------


class ExternalMark(msgspec.Struct, frozen=True):
    """A task of another DAG that is cleared with a task: in the run of the same date, with its downstream tasks."""

    dag_id: str
    task_id: str
    depth: int
    """Maximum number of such marks that are followed one after another."""


FAIL, REPEAT = "fail", "repeat"
LOST_ATTEMPTS = (FAIL, REPEAT)
"""What happens when a started attempt is lost together with its worker: its try fails, or the try is repeated."""


class ParamDefinition(msgspec.Struct, frozen=True, omit_defaults=True):
    """One DAG parameter: its default (absent if required) and its JSON schema."""

    name: str
    has_default: bool = True
    default: Any = None
    schema: dict[str, Any] = {}
    description: str | None = None


class TaskDefinition(msgspec.Struct, frozen=True, omit_defaults=True):
    """One task, without its code. Field names are Airflow's."""

    task_id: str
    operator: str = "BaseOperator"
    """Class name, shown to people."""
    module: str = ""
    upstream: tuple[str, ...] = ()
    """Direct upstream task ids, sorted."""
    trigger_rule: TriggerRule = TriggerRule.ALL_SUCCESS
    retries: int = 0
    retry_delay: int = 300_000_000
    retry_exponential_backoff: float = 0.0
    """Factor by which the delay grows with each try; 0: off."""
    max_retry_delay: int | None = None
    lost_attempts: str | None = None
    """One of `LOST_ATTEMPTS`; None: the setting `scheduler.lost_attempts`."""
    execution_timeout: int | None = None
    depends_on_past: bool = False
    ignore_first_depends_on_past: bool = True
    wait_for_past_depends_before_skipping: bool = False
    wait_for_downstream: bool = False
    pool: str = "default_pool"
    pool_slots: int = 1
    priority_weight: int = 1
    weight_rule: WeightRule = WeightRule.DOWNSTREAM
    queue: str = "default"
    executor: str | None = None
    executor_config: str = ""
    """The text of the argument, as Airflow shows it; empty: not given."""
    pod_override: str = ""
    """What `executor_config` changes in the pod of the KubernetesExecutor: JSON of a pod; empty: nothing."""
    max_active_tis_per_dag: int | None = None
    max_active_tis_per_dagrun: int | None = None
    start_date: int | None = None
    end_date: int | None = None
    owner: str = "airflow"
    group: str | None = None
    """Id of the innermost task group."""
    empty: bool = False
    """The task does nothing: the scheduler sets it to success without starting a process."""
    wait: WaitPlan | None = None
    """The wait of a task that does nothing else: the scheduler waits instead, without starting a process."""
    is_setup: bool = False
    is_teardown: bool = False
    on_failure_fail_dagrun: bool = False
    do_xcom_push: bool = True
    run_as_user: str | None = None
    mapped: bool = False
    """The task is mapped itself. (Tasks of a mapped group are expanded with their group.)"""
    expand: tuple[MapSource, ...] = ()
    """The lists that a mapped task is expanded over: one instance for each element of their cross product."""
    template_fields: tuple[str, ...] = ()
    params: dict[str, Any] | None = None
    """None instead of an empty dictionary, to save memory in DAGs of 100,000 tasks."""
    own_params: tuple[ParamDefinition, ...] = ()
    """Those of `params` that the task gives itself with a schema or a description."""
    doc: str | None = None
    display_name: str | None = None
    ui_color: str | None = None
    waits_for: tuple[str, ...] = ()
    """Ids of other DAGs that this task waits for or triggers: shown as dependencies."""
    external: ExternalMark | None = None
    callbacks: dict[str, tuple[str, ...]] | None = None
    """Argument (`on_failure_callback`) → names of the callbacks."""
    email: tuple[str, ...] = ()
    email_on_failure: bool = True
    email_on_retry: bool = True
    sla: int | None = None
    """Airflow 2's sla: the task should have succeeded within this time after the run was due."""
    inlets: tuple[str, ...] = ()
    outlets: tuple[str, ...] = ()
    """Names of the objects that it reads (`inlets`) and writes (`outlets`)."""
    extra_links: tuple[tuple[str, str], ...] = ()
    """Links that are shown with the task: (name, key of the XCom that holds the URL)."""
    returns_dag_result: bool = False
    """Its return value is a result of the run: who waits for the end of the run gets it."""


class GroupDefinition(msgspec.Struct, frozen=True, omit_defaults=True):
    """A task group."""

    group_id: str
    parent: str | None = None
    tooltip: str = ""
    display_name: str | None = None
    ui_color: str | None = None
    ui_fgcolor: str | None = None
    mapped: bool = False
    """Every task in the group has one instance for each element of `expand`."""
    expand: tuple[MapSource, ...] = ()


class DeadlineDefinition(msgspec.Struct, frozen=True, omit_defaults=True):
    """The time by which each run of a DAG should have succeeded: `interval` after its reference. Durations are microseconds."""

    reference: str
    """`logical_date`, `queued_at`, `fixed` or `average`."""
    interval: int
    at: int | None = None
    """The moment of `fixed`."""
    max_runs: int = 0
    """For `average`: the number of latest runs whose durations are averaged."""
    min_runs: int = 0
    """For `average`: the minimum number of ended runs; with fewer there is no deadline."""
    name: str | None = None
    callback: str = ""
    """Name of the callback that is called when the deadline is missed."""


class DagDefinition(msgspec.Struct, frozen=True, omit_defaults=True):
    """One DAG, without its code."""

    dag_id: str
    tasks: tuple[TaskDefinition, ...] = ()
    """In the author's order."""
    schedule: Schedule = NoSchedule()
    schedule_summary: str | None = None
    """The schedule as the author wrote it: `@daily`, `0 6 * * *`, `1 day, 0:00:00`."""
    start_date: int | None = None
    end_date: int | None = None
    timezone: str = "UTC"
    catchup: bool = False
    max_active_tasks: int = 16
    """Limit for one run."""
    max_active_tasks_all_runs: int | None = None
    """Limit for all runs together; None: no limit."""
    max_active_runs: int = 16
    max_consecutive_failed_dag_runs: int = 0
    dagrun_timeout: int | None = None
    fail_fast: bool = False
    description: str | None = None
    doc_md: str | None = None
    tags: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    owner_links: dict[str, str] = {}
    display_name: str | None = None
    is_paused_upon_creation: bool | None = None
    disable_bundle_versioning: bool = False
    """Runs follow the newest version of the bundle; otherwise each run keeps the version that it was created with."""
    rerun_with_latest_version: bool | None = None
    """Whether a clear moves a run to the newest version of the bundle, if the person does not say. None: only a backfill does."""
    params: tuple[ParamDefinition, ...] = ()
    default_args: dict[str, Any] = {}
    """As JSON values, in Airflow's form: durations in ISO 8601, without callbacks."""
    groups: tuple[GroupDefinition, ...] = ()
    edge_labels: tuple[tuple[str, str, str], ...] = ()
    """(upstream, downstream, label), sorted."""
    render_template_as_native_obj: bool = False
    fileloc: str = ""
    """Path inside the DAG folder, with forward slashes."""
    callbacks: dict[str, tuple[str, ...]] = {}
    """Argument → names of the callbacks that are called when a run ends."""
    deadlines: tuple[DeadlineDefinition, ...] = ()
    slas: tuple[int, ...] = ()
    """The different `sla` values of the tasks, sorted."""
    warnings: tuple[str, ...] = ()
    """Warnings about the DAG file, one sentence each."""
    assets: AssetSchedule | None = None
    """The DAG also runs when these assets were updated, in addition to its `schedule`."""
    asset_uses: tuple[AssetUse, ...] = ()
    """The assets that its tasks produce and read, in the author's order."""
    allowed_run_types: tuple[RunType, ...] = ()
    """The types of runs that may be created, sorted; empty: all."""
    access_control: dict[str, tuple[str, ...]] = {}
    """Role → what its users may do with this DAG (`model.accounts.GRANT_ACTIONS`), in addition to their other permissions."""
    format: int = DEFINITION_FORMAT

    def task(self, task_id: str) -> TaskDefinition | None:
        """Return the task with this id, or None."""
        for task in self.tasks:
            if task.task_id == task_id:
                return task
        return None


_encoder = msgspec.msgpack.Encoder(order="deterministic")
_decoder = msgspec.msgpack.Decoder(DagDefinition)


def encode_definition(definition: DagDefinition) -> bytes:
    """Return the canonical bytes: equal definitions give equal bytes."""
    return _encoder.encode(definition)


def decode_definition(data: bytes) -> DagDefinition:
    """Read canonical bytes.

    Raises:
        msgspec.ValidationError: the bytes are not a definition of this format.
    """
    definition = _decoder.decode(data)
    _share(definition)
    return definition


_SHARED = ("operator", "module", "template_fields", "ui_color", "pool", "queue", "owner", "group")
"""Fields that have equal values in most tasks of a DAG."""


def _share(definition: DagDefinition) -> None:
    """Keep equal texts only once. Decoding creates one text for each task: 400 bytes each, and a DAG may have 100,000 tasks."""
    known: dict[object, object] = {task.task_id: task.task_id for task in definition.tasks}
    keep = known.setdefault
    change = msgspec.structs.force_setattr
    for task in definition.tasks:
        for name in _SHARED:
            value = getattr(task, name)
            shared = keep(value, value)
            if shared is not value:
                change(task, name, shared)
        if task.upstream:
            change(task, "upstream", tuple([keep(up, up) for up in task.upstream]))


_schedule_decoder: msgspec.msgpack.Decoder[Schedule] = msgspec.msgpack.Decoder(Schedule)
_plan_decoder: msgspec.msgpack.Decoder[Schedule | PlannedRuns] = msgspec.msgpack.Decoder(Schedule | PlannedRuns)


def encode_schedule(schedule: Schedule) -> bytes:
    return _encoder.encode(schedule)


def decode_schedule(data: bytes) -> Schedule:
    return _schedule_decoder.decode(data)


def encode_plan(plan: PlannedRuns) -> bytes:
    return _encoder.encode(plan)


def decode_plan(data: bytes) -> Schedule | PlannedRuns:
    """Read the schedule or the plan of a backfill."""
    return _plan_decoder.decode(data)


def version_hash(encoded: bytes) -> str:
    """Return the hash of a version: the first 32 hex digits of the SHA-256 of the canonical bytes."""
    return hashlib.sha256(encoded).hexdigest()[:32]
