"""Convert an author's `DAG` object to its definition: plain values without code, with all defaults filled in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar
from zoneinfo import ZoneInfo

from tradewind import timetables
from tradewind.model.assets import AssetSchedule, AssetUse, AssetWatch
from tradewind.model.definition import (
    ContinuousSchedule,
    CronSchedule,
    CustomSchedule,
    DagDefinition,
    DefinitionDefaults,
    DeltaSchedule,
    EventsSchedule,
    GroupDefinition,
    NoSchedule,
    ParamDefinition,
    Schedule,
    TaskDefinition,
)
from tradewind.model.errors import DefinitionError, ScheduleError
from tradewind.model.moments import duration_micros, to_micros
from tradewind.model.states import RunType, WeightRule
from tradewind.sdk import access_control, dag_warnings, graph
from tradewind.sdk.arguments import CALLBACKS, as_list, backoff_factor, callbacks, trigger_rule, weight_rule
from tradewind.sdk.exceptions import ParamValidationError
from tradewind.sdk.generation import CURRENT
from tradewind.sdk.operator_link import key_of
from tradewind.sdk.params import NOTSET, Param, ParamsDict, as_json
from tradewind.sdk.pod_override import pod_override
from tradewind.sdk.shown_arguments import shown_config, shown_default_args
from tradewind.sdk.taskgroup import TaskGroup
from tradewind.timetables.base import Timetable

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG
    from tradewind.sdk.operator import BaseOperator

_T = TypeVar("_T")


def to_definition(dag: DAG, fileloc: str, defaults: DefinitionDefaults) -> DagDefinition:
    """The definition of a complete DAG. The same DAG always gives the same bytes.

    Args:
        fileloc: path of the DAG file, relative to the DAG folder, with forward slashes.

    Raises:
        CycleError, ScheduleError, ParamValidationError, DefinitionError: an invalid value; the message names the DAG and its
            source location.
    """
    dag.validate()
    older = dag.generation < CURRENT and defaults.schedule_meaning == "auto"
    defaults = defaults.of_file(fileloc, dag.generation)
    older = older and defaults.schedule_meaning == "airflow2"
    schedule = dag.schedule_definition = _schedule(dag, defaults)
    assets, uses = _assets(dag, defaults)
    zone = dag.timezone_name or defaults.timezone
    start = _start(dag, defaults)
    end = _end(dag, defaults)
    catchup = bool(_value_or(dag.given("catchup"), bool(defaults.catchup)))
    never = _is_never_scheduled(schedule, start, catchup)
    if never or (dag.allowed_run_types is not None and RunType.SCHEDULED not in dag.allowed_run_types):
        schedule = dag.schedule_definition = NoSchedule()
    _check_calendar(dag, schedule, start, end, catchup)
    return DagDefinition(
        dag_id=dag.dag_id,
        tasks=tuple(_task(task, start, end, defaults) for task in dag.task_dict.values()),
        schedule=schedule,
        schedule_summary=_summary(dag, defaults),
        start_date=start,
        end_date=end,
        timezone=zone,
        catchup=catchup,
        max_active_tasks=_value_or(dag.given("max_active_tasks"), defaults.max_active_tasks),
        max_active_tasks_all_runs=dag.max_active_tasks_all_runs
        or (dag.given("max_active_tasks") if older else None)
        or defaults.max_active_tasks_all_runs,
        max_active_runs=_max_active_runs(dag, schedule, defaults),
        max_consecutive_failed_dag_runs=_value_or(
            dag.given("max_consecutive_failed_dag_runs"), defaults.max_consecutive_failed_dag_runs
        ),
        dagrun_timeout=None if dag.dagrun_timeout is None else duration_micros(dag.dagrun_timeout),
        fail_fast=dag.fail_fast,
        description=dag.description,
        doc_md=dag.doc_md,
        tags=tuple(sorted(dag.tags or ())),
        owners=tuple(sorted({task.owner for task in dag.task_dict.values()})),
        owner_links=dag.owner_links,
        display_name=dag.__dict__.get("dag_display_name"),
        is_paused_upon_creation=dag.is_paused_upon_creation,
        disable_bundle_versioning=bool(_value_or(dag.given("disable_bundle_versioning"), defaults.disable_bundle_versioning)),
        rerun_with_latest_version=_flag(dag.rerun_with_latest_version, defaults.rerun_with_latest_version),
        params=_params(dag, assets is not None or not isinstance(schedule, NoSchedule)),
        default_args=shown_default_args(dag.default_args),
        groups=tuple(
            GroupDefinition(
                group_id=group_id,
                parent=group.parent_group.group_id if group.parent_group is not None else None,
                mapped=group.expand_input is not None,
                expand=group.expand_input.sources() if group.expand_input is not None else (),
                tooltip=group.tooltip or group.doc_md or "",
                display_name=group.group_display_name or None,
                ui_color=group.ui_color if group.ui_color != TaskGroup.DEFAULT_COLOR else None,
                ui_fgcolor=group.ui_fgcolor if group.ui_fgcolor != TaskGroup.DEFAULT_FGCOLOR else None,
            )
            for group_id, group in dag.task_group_dict.items()
        ),
        edge_labels=graph.edge_labels(dag),
        render_template_as_native_obj=dag.render_template_as_native_obj,
        allowed_run_types=tuple(sorted(dag.allowed_run_types or ())),
        access_control=access_control.granted(dag.access_control),
        fileloc=fileloc,
        callbacks=_callbacks(dag, DAG_CALLBACKS),
        deadlines=tuple(alert.definition() for alert in dag.deadline or ()),
        slas=tuple(sorted({_micros(task.sla) for task in dag.task_dict.values() if task.sla is not None})),
        warnings=dag_warnings.all_of(dag, defaults.executors, catchup, never=never, older=older),
        assets=assets,
        asset_uses=uses,
    )


def _flag(value: bool | None, default: bool | None) -> bool | None:
    return default if value is None else bool(value)


def _value_or(value: int | None, default: int) -> int:
    return default if value is None else value


# --- schedule and dates -----------------------------------------------------------------------------------------------


def _schedule(dag: DAG, defaults: DefinitionDefaults) -> Schedule:
    try:
        return timetables.parse_schedule(
            _time_schedule(dag, defaults),
            timezone=dag.timezone_name or defaults.timezone,
            defaults="trigger" if defaults.schedule_meaning == "airflow3" else "data",
        )
    except ScheduleError as error:
        raise ScheduleError(dag.located_message(error)) from None


def _time_schedule(dag: DAG, defaults: DefinitionDefaults) -> Any:
    """The time part of the schedule as the author gave it, or the default schedule."""
    if dag.given("schedule") is not NOTSET:
        return dag.time_schedule
    return timedelta(days=1) if defaults.schedule_meaning == "airflow2" else None


def _summary(dag: DAG, defaults: DefinitionDefaults) -> str | None:
    written = _time_schedule(dag, defaults)
    if dag.asset_condition is not None:
        return "Asset" if written is None else str(dag.schedule.summary)
    if written is None:
        return None
    return str(written.summary) if isinstance(written, Timetable) else str(written)


def _assets(dag: DAG, defaults: DefinitionDefaults) -> tuple[AssetSchedule | None, tuple[AssetUse, ...]]:
    """The asset schedule of the DAG, and the assets that its tasks produce and read."""
    condition = dag.asset_condition
    uses = []
    for task in dag.task_dict.values():
        if task.outlets or task.inlets:
            uses += _uses(task)
    if condition is None and not uses:
        return None, ()
    from tradewind.sdk.assets import check_conflicts, leaves_of  # lazy import: a file without assets does not need it

    all_assets = [*(leaves_of(condition) if condition is not None else ()), *(use.what for use in uses)]
    check_conflicts(dag.located_message, all_assets)
    if condition is None:
        return None, tuple(uses)
    watchers: tuple[AssetWatch, ...] = ()
    if any(asset.watchers for _, asset in condition.iter_assets()):
        from tradewind.sdk.asset_watchers import watches_of  # lazy import: only where an asset has watchers

        try:
            watchers = watches_of(condition)
        except DefinitionError as error:
            raise DefinitionError(dag.located_message(error)) from error
    rules = getattr(dag.schedule, "rules", None) if isinstance(dag.schedule, Timetable) and dag.schedule.partitioned else None
    try:
        partitions = None if rules is None else rules()
    except DefinitionError as error:
        raise DefinitionError(dag.located_message(error)) from error
    dated = partitions is None and defaults.schedule_meaning == "airflow2"
    return AssetSchedule(condition.condition(), dated, watchers, partitions), tuple(uses)


def _uses(task: BaseOperator) -> list[AssetUse]:
    from tradewind.sdk.assets import as_leaf  # lazy import: a file without assets does not need it

    outlets = [AssetUse(task.task_id, "outlet", leaf) for one in task.outlets if (leaf := as_leaf(one)) is not None]
    inlets = [AssetUse(task.task_id, "inlet", leaf) for one in task.inlets if (leaf := as_leaf(one)) is not None]
    return list(dict.fromkeys([*outlets, *inlets]))


def _is_never_scheduled(schedule: Schedule, start: int | None, catchup: bool) -> bool:
    """With catchup and without a start date there is no first run; Airflow loads such a DAG and schedules nothing."""
    return catchup and start is None and isinstance(schedule, CronSchedule | DeltaSchedule | EventsSchedule)


def _check_calendar(dag: DAG, schedule: Schedule, start: int | None, end: int | None, catchup: bool) -> None:
    try:
        timetables.validate(schedule, timetables.Bounds(earliest=start, latest=end, catchup=catchup))
    except ScheduleError as error:
        raise ScheduleError(dag.located_message(error)) from None


def _max_active_runs(dag: DAG, schedule: Schedule, defaults: DefinitionDefaults) -> int:
    given: int | None = dag.given("max_active_runs")
    if isinstance(schedule, CustomSchedule) and schedule.active_runs_limit is not None:
        limit = schedule.active_runs_limit
        if given is not None and given > limit:
            raise DefinitionError(
                dag.located_message(f"the timetable {schedule.name} allows max_active_runs of at most {limit}, not {given}")
            )
        return min(_value_or(given, defaults.max_active_runs), limit)
    if not isinstance(schedule, ContinuousSchedule):
        return _value_or(given, defaults.max_active_runs)
    if given not in (None, 1):
        raise DefinitionError(
            dag.located_message(
                f"schedule='@continuous' starts a run when the previous run has ended, so max_active_runs must be 1, "
                f"not {given}"
            )
        )
    return 1


def _as_micros(value: datetime | None, defaults: DefinitionDefaults) -> int | None:
    if value is None:
        return None
    return to_micros(value if value.tzinfo is not None else value.replace(tzinfo=ZoneInfo(defaults.timezone)))


def _given_date(task: BaseOperator, name: str) -> datetime | None:
    """The date that the author gave to a task, without the bounds of its DAG."""
    found: datetime | None = vars(task).get(name)
    return found


def _start(dag: DAG, defaults: DefinitionDefaults) -> int | None:
    """The DAG's start date; without one, the earliest start date of its tasks (for example from `default_args`)."""
    if dag.given("start_date") is not None:
        return _as_micros(dag.given("start_date"), defaults)
    starts = {_as_micros(date, defaults) for date in {_given_date(task, "start_date") for task in dag.task_dict.values()}}
    return min((start for start in starts if start is not None), default=None)


def _end(dag: DAG, defaults: DefinitionDefaults) -> int | None:
    """The DAG's end date; without one, the latest end date of its tasks if every task has one."""
    if dag.given("end_date") is not None:
        return _as_micros(dag.given("end_date"), defaults)
    ends = [_as_micros(date, defaults) for date in {_given_date(task, "end_date") for task in dag.task_dict.values()}]
    known = [end for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None


# --- parameters -------------------------------------------------------------------------------------------------------


def _params(dag: DAG, scheduled: bool) -> tuple[ParamDefinition, ...]:
    """Definitions of the DAG's parameters.

    `scheduled`: runs start without a person who could give values. Otherwise a default need not fit its schema, as in Airflow:
    `Param(None, type="string")` asks for a value.
    """
    found = []
    for name, param in dag.params.param_items():
        if scheduled:
            try:
                param.resolve()
            except ParamValidationError as error:
                why = " (the DAG has a schedule, so its parameters need defaults)" if scheduled else ""
                raise ParamValidationError(dag.located_message(f"parameter {name!r}: {error}{why}")) from None
        found.append(_param(name, param))
    return tuple(found)


def _param(name: str, param: Param) -> ParamDefinition:
    return ParamDefinition(
        name=name,
        has_default=param.has_value,
        default=as_json(param.value) if param.has_value else None,
        schema=as_json(param.schema),
        description=param.description,
    )


def _own_params(task: BaseOperator) -> tuple[ParamDefinition, ...]:
    """The parameters that a task gives itself and that are more than a value. Those of its DAG are in the DAG's definition."""
    if not task._params:
        return ()
    dag = getattr(task, "dag", None)
    of_dag = {} if dag is None else dict(dag.params.param_items())
    own = [(name, param) for name, param in task._params.param_items() if param.schema or param.description]
    return tuple(_param(name, param) for name, param in own if param != of_dag.get(name))


def _plain(params: ParamsDict | None) -> dict[str, Any]:
    return as_json(params.dump()) if params else {}


# --- tasks ------------------------------------------------------------------------------------------------------------

_OTHER_DAG_FIELDS = ("external_dag_id", "trigger_dag_id")
"""Attributes in which operators store the id of another DAG; the names are Airflow's."""


def _task(task: BaseOperator, start: int | None, end: int | None, defaults: DefinitionDefaults) -> TaskDefinition:
    cls = task.operator_class
    own = task.__dict__
    given = own.get("expand_input")
    weight = _weight(task)
    group = task.task_group
    return TaskDefinition(
        task_id=task.task_id,
        operator=task.operator_name,
        module=cls.__module__,
        upstream=tuple(sorted(task._upstream)) if task._upstream else (),
        trigger_rule=_rule(task, trigger_rule, "trigger_rule"),
        weight_rule=weight[0],
        retries=own.get("retries", defaults.retries),
        retry_delay=_micros(own["retry_delay"]) if "retry_delay" in own else defaults.retry_delay,
        retry_exponential_backoff=backoff_factor(task.retry_exponential_backoff),
        max_retry_delay=_micros_or_none(task.max_retry_delay),
        lost_attempts=task.lost_attempts,
        execution_timeout=_micros_or_none(task.execution_timeout),
        depends_on_past=task.depends_on_past,
        ignore_first_depends_on_past=task.ignore_first_depends_on_past,
        wait_for_past_depends_before_skipping=task.wait_for_past_depends_before_skipping,
        wait_for_downstream=task.wait_for_downstream,
        pool=task.pool,
        pool_slots=task.pool_slots,
        priority_weight=weight[1],
        queue=task.queue,
        executor=task.executor,
        executor_config=shown_config(task.executor_config),
        pod_override=pod_override(task.executor_config) if task.executor_config else "",
        max_active_tis_per_dag=task.max_active_tis_per_dag,
        max_active_tis_per_dagrun=task.max_active_tis_per_dagrun,
        start_date=_later(_as_micros(own.get("start_date"), defaults), start),
        end_date=_earlier(_as_micros(own.get("end_date"), defaults), end),
        owner=task.owner,
        group=group.group_id if group is not None else None,
        empty=_does_nothing(task),
        wait=task.wait_plan() if given is None else None,
        is_setup=task.is_setup,
        is_teardown=task.is_teardown,
        on_failure_fail_dagrun=task.on_failure_fail_dagrun,
        do_xcom_push=task.do_xcom_push,
        run_as_user=task.run_as_user,
        mapped=given is not None,
        expand=given.sources() if given is not None else (),
        template_fields=tuple(task.template_fields),
        params=_plain(task._params) or None,
        own_params=_own_params(task),
        doc=task.doc_md or task.doc or task.doc_rst or task.doc_yaml or task.doc_json,
        display_name=task.__dict__.get("task_display_name"),
        ui_color=task.ui_color if task.ui_color != "#fff" else None,
        waits_for=_other_dags(task),
        external=getattr(task, "external_mark", None),
        callbacks=_callbacks(task, CALLBACKS) or None,
        email=tuple(as_list("email", task.email)) if task.email else (),
        email_on_failure=task.email_on_failure,
        email_on_retry=task.email_on_retry,
        sla=_micros_or_none(task.sla),
        inlets=tuple(map(_data_name, task.inlets)),
        outlets=tuple(map(_data_name, task.outlets)),
        extra_links=tuple((str(link.name), key_of(link)) for link in task.operator_extra_links),
        returns_dag_result=task.returns_dag_result,
    )


DAG_CALLBACKS = ("on_success_callback", "on_failure_callback", "sla_miss_callback")


def _callbacks(owner: DAG | BaseOperator, arguments: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Names of the callbacks that are set, by argument. Authors may have set one after its owner was made."""
    return {
        name: tuple(map(dag_warnings.callback_name, callbacks(name, given)))
        for name in arguments
        if (given := getattr(owner, name))
    }


def _data_name(data: Any) -> str:
    """The name of an inlet or outlet: an asset's URI or name, a string itself, the class name of any other object."""
    if isinstance(data, str):
        return data
    for attribute in ("uri", "name", "url"):
        found = getattr(data, attribute, None)
        if isinstance(found, str) and found:
            return found
    return type(data).__name__


def _weight(task: BaseOperator) -> tuple[WeightRule, int]:
    """The weight rule and the priority weight. A priority weight strategy computes the weight here, once, for the first try.

    Raises:
        DefinitionError: the strategy raises an exception, or does not return an integer.
    """
    rule = _rule(task, weight_rule, "weight_rule")
    if isinstance(rule, WeightRule):
        return rule, task.priority_weight
    first = SimpleNamespace(
        task=task, task_id=task.task_id, dag_id=task.dag_id, priority_weight=task.priority_weight, try_number=1, map_index=-1
    )
    try:
        return WeightRule.ABSOLUTE, int(rule.get_weight(first))
    except Exception as error:
        raise DefinitionError(
            task.dag.located_message(f"task {task.task_id!r}: the weight strategy {type(rule).__name__} failed: {error!r}")
        ) from error


def _rule(task: BaseOperator, read: Callable[[str, Any], _T], name: str) -> _T:
    """Check a rule again, because the attribute may have been set after the task was created."""
    try:
        return read(name, getattr(task, name))
    except DefinitionError as error:
        raise type(error)(task.dag.located_message(f"task {task.task_id!r}: {error}")) from None


def _micros(value: timedelta | float) -> int:
    return duration_micros(value if isinstance(value, timedelta) else timedelta(seconds=value))


def _micros_or_none(value: timedelta | None) -> int | None:
    return None if value is None else _micros(value)


def _later(own: int | None, bound: int | None) -> int | None:
    """The start date of a task if it is later than the DAG's."""
    return own if own is not None and (bound is None or own > bound) else None


def _earlier(own: int | None, bound: int | None) -> int | None:
    """The end date of a task if it is earlier than the DAG's."""
    return own if own is not None and (bound is None or own < bound) else None


def _does_nothing(task: BaseOperator) -> bool:
    """True for an empty operator without hooks and callbacks that does not override `execute`."""
    cls = task.operator_class
    if not cls.inherits_from_empty_operator or task._pre_execute_hook is not None or task._post_execute_hook is not None:
        return False
    if task.on_execute_callback or task.on_success_callback or task.inlets or task.outlets:
        return False
    declares = next(base for base in cls.__mro__ if "inherits_from_empty_operator" in base.__dict__)
    return cls.execute is declares.execute  # type: ignore[attr-defined]


def _other_dags(task: BaseOperator) -> tuple[str, ...]:
    named = {value for field in _OTHER_DAG_FIELDS if isinstance(value := getattr(task, field, None), str)}
    named.update(getattr(task, "other_dag_ids", ()))
    return tuple(sorted(name for name in named if "{{" not in name))
