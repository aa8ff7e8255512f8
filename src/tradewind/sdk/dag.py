"""`DAG`: tasks, the dependencies between them, and a schedule."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

from tradewind.model.errors import (
    DefinitionError,
    DuplicateTaskId,
    NotFound,
    NotYetSupported,
    UnknownArgument,
    did_you_mean,
)
from tradewind.model.phrases import english, phrase
from tradewind.model.states import RunType, TriggerRule
from tradewind.model.zones import zone_name
from tradewind.sdk import arguments, graph, open_dags, setup_teardown
from tradewind.sdk.arguments import Callback, string
from tradewind.sdk.default_args import accepted_names
from tradewind.sdk.default_attributes import (
    CatchupFromSetting,
    FlagFromSetting,
    FromSetting,
    IsGiven,
    OwnId,
    ScheduleAsGiven,
    UndefinedOfTemplates,
    UtcDate,
    default_zone,
)
from tradewind.sdk.generation import CURRENT
from tradewind.sdk.names import MAX_LENGTH, check_dag_id
from tradewind.sdk.params import NOTSET, DagParam, ParamsDict
from tradewind.sdk.positional import positional_as_in_airflow_1
from tradewind.sdk.taskgroup import TaskGroup
from tradewind.sdk.xcom_arg import XComArg, is_return_value

if TYPE_CHECKING:
    from tradewind.model.definition import MapSource, Schedule
    from tradewind.sdk.assets import BaseAsset
    from tradewind.sdk.deadlines import DeadlineAlert
    from tradewind.sdk.operator import BaseOperator

ScheduleInput = Any
"""None, a preset, a cron expression, a timedelta, a relativedelta, a timetable, an asset, a list or expression of assets."""

_NO_EFFECT = ("default_view", "orientation", "full_filepath")
"""Arguments of Airflow 1 and 2 that configured a page of their web interface: accepted, without effect."""

_RENAMED = {"concurrency": "max_active_tasks", "fail_stop": "fail_fast"}
"""Name in Airflow 1 or 2 → name since then."""

_DATABASE_METHODS = frozenset(
    {
        "bulk_sync_to_db",
        "bulk_write_to_db",
        "clear_dags",
        "deactivate_stale_dags",
        "deactivate_unknown_dags",
        "get_is_active",
        "get_num_task_instances",
        "get_run_data_interval",
        "iter_dagrun_infos_between",
        "next_dagrun_info",
        "pickle",
        "set_task_instance_state",
    }
)
"""Methods of Airflow's DAG that change its database, or read what a task cannot ask for; see `older_dag_methods` for others."""

_LOCAL_METHODS = frozenset(
    {"clear", "create_dagrun", "get_dagruns_between", "get_task_instances", "run", "set_dag_runs_state", "sync_to_db"}
)
"""Methods with which tests create and execute runs in their own process; see `local_dag_methods`."""

_LISTS_OF_DATABASE = frozenset({"get_dagruns_between", "get_task_instances"})
"""Those of them that give an empty list while a DAG file is read: a file that calls them at its top level loads, as in Airflow."""

_CHANGES_OF_DATABASE = frozenset(
    {
        "bulk_sync_to_db",
        "bulk_write_to_db",
        "clear",
        "deactivate_stale_dags",
        "deactivate_unknown_dags",
        "set_dag_runs_state",
        "set_is_paused",
        "set_task_instance_state",
        "sync_to_db",
    }
)
"""Those of them that change nothing while a DAG file is read, with a warning."""

_WRITES_OF_DEFINITIONS = frozenset({"bulk_sync_to_db", "bulk_write_to_db"})
"""Those of them that store the definitions of DAGs. astronomer-cosmos calls one in tasks, after it has added outlets to them."""

_OLDER_METHODS = frozenset(
    {
        "concurrency_reached",
        "date_range",
        "following_schedule",
        "get_active_runs",
        "get_concurrency_reached",
        "get_dagrun",
        "get_doc_md",
        "get_is_paused",
        "get_last_dagrun",
        "get_latest_execution_date",
        "get_num_active_runs",
        "get_run_dates",
        "has_dag_runs",
        "is_fixed_time_schedule",
        "is_paused",
        "latest_execution_date",
        "normalize_schedule",
        "previous_schedule",
        "set_is_paused",
        "test_cycle",
        "validate_schedule_and_params",
    }
)
"""Methods and properties of Airflow 1 and 2's DAG that `older_dag_methods` has."""

_TEST_ARGUMENTS = ("logical_date", "run_conf", "conn_file_path", "variable_file_path", "use_executor", "mark_success_pattern")
"""Arguments that `DAG.test` accepts by position, in Airflow 3's order."""

_FAIL_FAST_RULES = (TriggerRule.ALL_SUCCESS, TriggerRule.ALL_DONE_SETUP_SUCCESS)


def _at_least_one(limit: Any) -> Any:
    """None for a limit of 0 or less, which means that there are no scheduled runs."""
    return None if isinstance(limit, int) and limit <= 0 else limit


def _folders(given: str | Iterable[str] | None) -> Iterable[str] | None:
    return (given,) if isinstance(given, str) else given


def _first(dates: Iterable[Any]) -> Any:
    return next(iter(dates))


class TagSet(set[str]):
    """Tags of a DAG. Files for Airflow 2 append to them as to a list."""

    append = set.add
    extend = set.update


class DAG:
    """A workflow.

    Operators created inside `with DAG(...):` belong to the DAG. Arguments that are not given take their values from the
    configuration when the definition is made, so attributes of a new DAG may be None.

    Args:
        dag_id: letters of any script, digits, `-`, `_`, `.`; at most 250 characters; unique in the DAG folder.
        schedule: None (the DAG runs only when triggered), a preset (`@daily`), a cron expression, a timedelta, a relativedelta, a
            timetable, or assets: one asset, a list (all of them), or assets joined with `&` and `|`. `schedule_interval` and
            `timetable` are older names of this argument.
        start_date, end_date: first and last logical date. The time zone of `start_date` is the time zone of the DAG. A date without
            a time zone is in the default time zone of the configuration.
        catchup: also run the data intervals between `start_date` and now that have no run yet.
        max_active_tasks: limit on the task instances of one run that are queued or running.
        max_active_tasks_all_runs: the same limit over all runs of the DAG together, as `concurrency` meant in Airflow 1 and 2.
            Default: no limit. Airflow does not have this argument.
        max_active_runs: limit on running runs of the DAG.
        max_consecutive_failed_dag_runs: pause the DAG after this many failed runs in a row; 0 means never.
        dagrun_timeout: a run that takes longer than this timedelta fails.
        fail_fast: the first failed task fails the run and stops its other tasks.
        default_args: default arguments for every operator of the DAG, by name.
        params: run parameters by name (`Param` objects or plain default values).
        on_success_callback, on_failure_callback: called when a run has succeeded or failed.
        sla_miss_callback: called when tasks miss their `sla`.
        deadline: a `DeadlineAlert`, or a list: when a run has to be finished, and the callback for a run that is not.
        access_control: what the users of a role may do with the DAG, in addition to their other rights: {"finance": {"can_edit"}}.
        disable_bundle_versioning: runs follow the newest version of their bundle. None: the setting. Without effect for a folder.
        rerun_with_latest_version: whether a clear moves a run to the newest version of its bundle, if the user does not choose.
            None: the setting. Without effect for a folder.
        allowed_run_types: the types of runs that may be created, as `DagRunType` or as text (`manual`, `scheduled`, `backfill`,
            `operator_triggered`, `asset_triggered`, `asset_materialization`). It must contain the type that the schedule creates,
            or `manual` if there is no schedule. None: all types.
        template_searchpath, template_undefined, user_defined_macros, user_defined_filters, jinja_environment_kwargs,
            render_template_as_native_obj: how templates are rendered.
        auto_register: register the DAG when its `with` block is entered, even if no top-level variable holds it.

    Raises:
        UnknownArgument: the argument does not exist; the message names the closest one.
        DefinitionError: an invalid value.
    """

    map_provider_ids: frozenset[str] = frozenset()
    """Ids of the tasks over whose results other tasks are mapped."""
    schedule: ScheduleInput = ScheduleAsGiven()
    start_date: datetime | None = UtcDate(lambda dag, name: (dag.default_args.get(name),), _first)  # type: ignore[assignment]
    end_date: datetime | None = UtcDate(lambda dag, name: (dag.default_args.get(name),), _first)  # type: ignore[assignment]
    """Moments in UTC; without a value those of `default_args`."""
    template_undefined: type = UndefinedOfTemplates()  # type: ignore[assignment]
    """A class of jinja2."""
    disable_bundle_versioning: bool = FlagFromSetting("dag_processor", "disable_bundle_versioning")  # type: ignore[assignment]
    max_consecutive_failed_dag_runs: int = FromSetting(  # type: ignore[assignment]
        "core", "max_consecutive_failed_dag_runs_per_dag"
    )
    dag_display_name: str = OwnId("dag_id")  # type: ignore[assignment]
    max_active_tasks: int = FromSetting("core", "max_active_tasks_per_dag")  # type: ignore[assignment]
    max_active_runs: int = FromSetting("core", "max_active_runs_per_dag")  # type: ignore[assignment]
    catchup: bool = CatchupFromSetting("scheduler", "catchup_by_default")  # type: ignore[assignment]
    """Shown instead of the id; by default the id."""

    @positional_as_in_airflow_1
    def __init__(
        self,
        dag_id: str,
        description: str | None = None,
        schedule: ScheduleInput = NOTSET,
        start_date: datetime | str | None = None,
        end_date: datetime | str | None = None,
        *,
        template_searchpath: str | Iterable[str] | None = None,
        template_undefined: type | None = None,
        user_defined_macros: dict[str, Any] | None = None,
        user_defined_filters: dict[str, Callable[..., Any]] | None = None,
        default_args: Mapping[str, Any] | None = None,
        max_active_tasks: int | None = None,
        max_active_tasks_all_runs: int | None = None,
        max_active_runs: int | None = None,
        max_consecutive_failed_dag_runs: int | None = None,
        dagrun_timeout: timedelta | None = None,
        catchup: bool | None = None,
        doc_md: str | None = None,
        params: Mapping[str, Any] | None = None,
        is_paused_upon_creation: bool | None = None,
        jinja_environment_kwargs: dict[str, Any] | None = None,
        render_template_as_native_obj: bool = False,
        tags: Iterable[str] | None = None,
        owner_links: Mapping[str, str] | None = None,
        auto_register: bool = True,
        fail_fast: bool = False,
        dag_display_name: str | None = None,
        on_success_callback: Callback | Sequence[Callback] | None = None,
        on_failure_callback: Callback | Sequence[Callback] | None = None,
        sla_miss_callback: Callback | Sequence[Callback] | None = None,
        access_control: Mapping[str, Any] | None = None,
        disable_bundle_versioning: bool | None = None,
        rerun_with_latest_version: bool | None = None,
        deadline: Any = None,
        allowed_run_types: Any = None,
        **older: Any,
    ) -> None:
        self.dag_id, self.location = check_dag_id(dag_id), open_dags.caller_location()
        self.fileloc = self.location.file
        """Path of the file that creates this DAG."""
        for name, value in older.items():
            self._check_older(name, value)
        older = {_RENAMED.get(name, name): value for name, value in older.items()}
        self.default_args = self._read_default_args(default_args)
        self.params = self._read_params(params)
        self.description = description
        self.generation = open_dags.generation()
        """The generation of Airflow for which its file was written: 1, 2 or 3."""
        self.schedule, self.time_schedule, self.asset_condition = self._read_schedule(schedule, older, max_active_runs)
        self.allowed_run_types = self._read_run_types(allowed_run_types)
        tasks = older.get("max_active_tasks", max_active_tasks)
        self._read_limits(tasks, max_active_tasks_all_runs, _at_least_one(max_active_runs), max_consecutive_failed_dag_runs)
        self.dagrun_timeout = None if dagrun_timeout is None else self._read("dagrun_timeout", dagrun_timeout, duration=True)
        self.catchup, self.fail_fast = self._flag("catchup", catchup), bool(older.get("fail_fast", fail_fast))  # type: ignore[assignment]
        self._read_callbacks(on_success_callback, on_failure_callback, sla_miss_callback, deadline)
        self.access_control = access_control
        self.__dict__["disable_bundle_versioning"] = disable_bundle_versioning
        self.rerun_with_latest_version, self.auto_register = rerun_with_latest_version, auto_register
        self.is_paused_upon_creation = self._flag("is_paused_upon_creation", is_paused_upon_creation)
        self._read_dates(start_date, end_date)
        self._describe(doc_md, tags, owner_links, dag_display_name)
        self.template_searchpath = _folders(template_searchpath)
        self.template_undefined = template_undefined  # type: ignore[assignment]
        self.user_defined_macros, self.user_defined_filters = user_defined_macros, user_defined_filters
        self.jinja_environment_kwargs = jinja_environment_kwargs
        self.render_template_as_native_obj = render_template_as_native_obj
        self.task_dict: dict[str, BaseOperator] = {}
        """Tasks by id, in the order of creation."""
        self.ids: dict[str, TaskGroup | BaseOperator] = {}
        """All used ids, of tasks and of task groups."""
        self.suffixes: dict[str, int] = {}
        """Last number added to a repeated id (see `names.with_suffix`)."""
        self.task_group_dict: dict[str, TaskGroup] = {}
        self.edge_info: dict[str, dict[str, dict[str, str | None]]] = {}
        self.task_group = TaskGroup.create_root(self)
        self.schedule_definition: Schedule | None = None
        """The schedule as plain values; set when the definition is made."""
        open_dags.record_created(self)

    # --- reading arguments ---------------------------------------------------------------------------------------------

    def located_message(self, text: object) -> str:
        """The text with the DAG id and the source location of the DAG in front."""
        return f"DAG {self.dag_id!r} ({self.location}): {text}"

    def _read(self, name: str, value: Any, duration: bool = False) -> Any:
        try:
            return arguments.timedelta_only(name, value) if duration else arguments.date_time(name, value)
        except DefinitionError as error:
            raise DefinitionError(self.located_message(error)) from None

    def _read_callbacks(self, on_success: Any, on_failure: Any, sla_miss: Any, deadline: Any) -> None:
        self.deadline: list[DeadlineAlert] | None = self._read_deadline(deadline) if deadline else None
        self.on_success_callback, self.on_failure_callback = on_success, on_failure
        self.sla_miss_callback = sla_miss
        for name in ("on_success_callback", "on_failure_callback", "sla_miss_callback"):
            given = getattr(self, name)
            try:
                found = arguments.callbacks(name, given)
            except DefinitionError as error:
                raise DefinitionError(self.located_message(error)) from None
            if isinstance(given, list | tuple | set) or not found:
                setattr(self, name, found or None)

    def _read_deadline(self, value: Any) -> list[DeadlineAlert]:
        from tradewind.sdk import deadlines  # lazy import: needs msgspec; few DAGs have a deadline

        try:
            return deadlines.read(value)
        except DefinitionError as error:
            raise type(error)(self.located_message(error)) from None

    def _read_limits(self, tasks: Any, tasks_of_all_runs: Any, runs: Any, failed_runs: Any) -> None:
        self.max_active_tasks = self._integer("max_active_tasks", tasks, 0)  # type: ignore[assignment]
        self.max_active_tasks_all_runs = self._integer("max_active_tasks_all_runs", tasks_of_all_runs, 1)
        self.max_active_runs = self._integer("max_active_runs", runs, 1)  # type: ignore[assignment]
        self.max_consecutive_failed_dag_runs = self._integer(  # type: ignore[assignment]
            "max_consecutive_failed_dag_runs", failed_runs, 0
        )

    def _read_run_types(self, given: Any) -> frozenset[RunType] | None:
        if not given:
            return None
        names = [given] if isinstance(given, str | Enum) else list(given)
        valid = [kind.value for kind in RunType]
        found = set[RunType]()
        for one in names:
            name = one.value if isinstance(one, Enum) else one
            if name not in valid:
                near = did_you_mean(str(name), valid)
                message = f"allowed_run_types contains {name!r}; the types of runs are {', '.join(valid)}.{near}"
                raise DefinitionError(self.located_message(message))
            found.add(RunType(name))
        implied = self._implied_run_type()
        if implied not in found:
            message = f"allowed_run_types must contain {implied.value!r}, the type of the runs that its schedule creates"
            if implied is RunType.MANUAL:
                message = "allowed_run_types must contain 'manual', because the DAG has no schedule"
            raise DefinitionError(self.located_message(message))
        return frozenset(found)

    def _implied_run_type(self) -> RunType:
        """The type of the runs that the schedule creates; `MANUAL` without a schedule."""
        if self.asset_condition is not None:
            return RunType.ASSET_TRIGGERED
        schedule = self.time_schedule
        if schedule is None or schedule is NOTSET or not getattr(schedule, "can_be_scheduled", True):
            return RunType.MANUAL
        return RunType.SCHEDULED

    def _integer(self, name: str, value: Any, minimum: int) -> int | None:
        try:
            return None if value is None else int(arguments.integer(minimum)(name, value))
        except DefinitionError as error:
            raise DefinitionError(self.located_message(error)) from None

    def _flag(self, name: str, value: Any) -> bool | None:
        try:
            return None if value is None else arguments.boolean(name, value)
        except DefinitionError as error:
            raise DefinitionError(self.located_message(error)) from None

    def given(self, name: str) -> Any:
        """What the author gave for an attribute whose default is a setting; None: nothing."""
        return vars(self).get(name)

    def _check_older(self, name: str, value: Any) -> None:
        """Check an argument that is not in the signature: an old name, or unknown."""
        if name in _NO_EFFECT:
            message = f"{name} configured only the web interface of Airflow 1 and 2; it has no effect"
            open_dags.warn_author(message, DeprecationWarning, self)
        elif name in _RENAMED:
            message = f"{name} was renamed to {_RENAMED[name]} in Airflow 2; use {_RENAMED[name]}"
            open_dags.warn_author(message, DeprecationWarning, self)
        elif name not in ("schedule_interval", "timetable"):
            known = [*DAG.__init__.__annotations__, *_RENAMED, "schedule_interval", "timetable"]
            raise UnknownArgument(self.located_message(f"DAG takes no argument {name!r}.{did_you_mean(name, known)}"))

    def _only_one(self, given: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
        """Of several schedule arguments, the one that Airflow 2 uses. It counts only values that are true.

        Raises:
            DefinitionError: several have a value.
        """
        names = " and ".join(name for name, _ in given)
        if sum(bool(value) for _, value in given) > 1:
            raise DefinitionError(self.located_message(f"{names} mean the same; give only schedule"))
        chosen = given[-1] if given[-1][0] == "timetable" else given[0]
        message = english(phrase("warning_two_schedules", names=names, chosen=f"{chosen[0]}={chosen[1]!r}"))
        open_dags.warn_author(message, dag=self)
        return [chosen]

    def _read_schedule(
        self, schedule: ScheduleInput, older: Mapping[str, Any], max_active_runs: int | None = None
    ) -> tuple[ScheduleInput, ScheduleInput, BaseAsset | None]:
        """The schedule as given, its time part, and its asset part. With `max_active_runs=0`, Airflow creates no scheduled runs."""
        if isinstance(max_active_runs, int) and max_active_runs <= 0:
            message = f"max_active_runs is {max_active_runs}: the DAG has no scheduled runs, as in Airflow; use schedule=None"
            open_dags.warn_author(message, dag=self)
            return None, None, None
        given = [] if schedule is NOTSET else [("schedule", schedule)]
        given += [("schedule_interval", value)] if (value := older.get("schedule_interval", NOTSET)) is not NOTSET else []
        given += [("timetable", value)] if (value := older.get("timetable")) is not None else []
        if len(given) > 1:
            given = self._only_one(given)
        found = given[0][1] if given else NOTSET
        if found is NOTSET or isinstance(found, str | timedelta | None):
            return found, found, None
        if isinstance(found, list | tuple | set | frozenset | dict) and not found:
            message = "the list in schedule= contains no asset, so the DAG runs only when it is triggered, as in Airflow"
            open_dags.warn_author(message, dag=self)
            return None, None, None
        # lazy import: a plain schedule needs no assets
        from tradewind.sdk.assets import split_schedule

        try:
            return (found, *split_schedule(found))
        except DefinitionError as error:
            raise DefinitionError(self.located_message(error)) from None

    def _read_default_args(self, default_args: Mapping[str, Any] | None) -> dict[str, Any]:
        if default_args is not None and not isinstance(default_args, Mapping):
            raise DefinitionError(self.located_message(f"default_args is {default_args!r}; it must be a dictionary"))
        found = dict(default_args or {})
        for name in ("start_date", "end_date"):
            if found.get(name) == "" and open_dags.generation() < CURRENT:
                found[name] = None  # Airflow 1 read an empty text as no date
            if found.get(name) is not None:
                found[name] = self._read(f"default_args[{name!r}]", found[name])
        return found

    def _read_params(self, params: Mapping[str, Any] | None) -> ParamsDict:
        inherited = self.default_args.pop("params", None) or {}
        return ParamsDict({**ParamsDict(params)._params, **ParamsDict(inherited)._params})

    def _read_dates(self, start_date: datetime | str | None, end_date: datetime | str | None) -> None:
        start = None if start_date is None else self._read("start_date", start_date)
        end = None if end_date is None else self._read("end_date", end_date)
        zoned: datetime | None = start or self.default_args.get("start_date")
        self.zone: tzinfo | None = zoned.tzinfo if zoned is not None else None
        """Time zone of the start date; None: the default time zone of the configuration applies."""
        self.start_date, self.end_date = start, end

    def _describe(
        self,
        doc_md: str | None,
        tags: Iterable[str] | None,
        owner_links: Mapping[str, str] | None,
        display_name: str | None,
    ) -> None:
        if isinstance(tags, str) and tags:
            message = f"tags is the text {tags!r}, which is read as one tag; Airflow reads its letters as tags"
            open_dags.warn_author(message, dag=self)
            tags = [tags]
        given = [tag for tag in tags or () if tag]
        self.tags: set[str] = TagSet(map(str, given) if self.generation < CURRENT else given)
        for tag in self.tags:
            if not isinstance(tag, str) or not 0 < len(tag) <= 100:
                raise DefinitionError(self.located_message(f"tag {tag!r} must be a string of 1 to 100 characters"))
        self.owner_links = dict(owner_links or {})
        for owner, address in list(self.owner_links.items()):
            if not re.match(r"([a-z][a-z0-9+.-]*://|mailto:).", str(address)):
                raise DefinitionError(
                    self.located_message(f"owner_links[{owner!r}] is {address!r}; it must begin with https:// or mailto:")
                )
            if not re.match("https?:|ftps?:|mailto:", str(address)):
                message = f"owner_links[{owner!r}] is {address!r}, which is no link to a web page, and is left out"
                open_dags.warn_author(message, dag=self)
                del self.owner_links[owner]
        if display_name:
            self.dag_display_name = display_name
        self.doc_md = self._read_doc(doc_md)

    def _read_doc(self, doc_md: str | None) -> str | None:
        """The text of `doc_md`, or the content of the `.md` file that it names (absolute, or relative to the DAG file)."""
        if doc_md is None:
            return None
        doc_md = string("doc_md", doc_md)
        if not doc_md.strip().endswith(".md") or "\n" in doc_md.strip():
            return doc_md
        path = Path(self.folder, doc_md.strip())
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            open_dags.warn_author(f"doc_md names the file {path}, which cannot be read: {error.strerror}", dag=self)
            return doc_md

    # --- with block ----------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if self.auto_register:
            open_dags.record_entered(self)
        open_dags.open_dags.append(self)
        open_dags.open_groups.append(self.task_group)
        return self

    def __exit__(self, *exc_info: object) -> None:
        open_dags.open_groups.pop()
        open_dags.open_dags.pop()

    # --- adding tasks and groups -----------------------------------------------------------------------------------------

    def add_task(self, task: BaseOperator) -> None:
        """Add a task that was created outside of the DAG."""
        if task._dag is self:
            return
        if task._dag is not None:
            raise DefinitionError(self.located_message(f"task {task.task_id!r} already belongs to DAG {task._dag.dag_id!r}"))
        self.task_group.add(task)

    def add_tasks(self, tasks: Iterable[BaseOperator]) -> None:
        for task in tasks:
            self.add_task(task)

    def register_task(self, task: BaseOperator, group: TaskGroup) -> None:
        """Register a new task under its full id. Task groups call this.

        Raises:
            DuplicateTaskId: the DAG already uses this id, and its file was not written for Airflow 1.
        """
        task_id = task.task_id if group.prefix is None else f"{group.prefix}.{task.task_id}"
        if self.generation == 1 and task_id in self.task_dict:
            self._keep_first(self.task_dict[task_id], task, group)
            return
        replaced = self.ids.get(task_id)
        if replaced is not None and not isinstance(replaced, TaskGroup) and task_id not in self.task_dict:
            del self.ids[task_id]  # its author has deleted it from `task_dict`, to put another task in its place
        if task_id in self.ids:
            kind = "task" if task_id in self.task_dict else "task group"
            raise DuplicateTaskId(self.located_message(f"there is already a {kind} {task_id!r}"))
        if len(task_id) > MAX_LENGTH:
            raise DefinitionError(
                self.located_message(
                    f"task_id {task_id[:40]!r}… has {len(task_id)} characters with its group prefix; "
                    f"at most {MAX_LENGTH} are allowed"
                )
            )
        task.task_id = task_id
        task._dag = self
        task.task_group = group
        self.ids[task_id] = self.task_dict[task_id] = group.children[task_id] = task
        task.added_to_dag(self)

    def _keep_first(self, first: BaseOperator, second: BaseOperator, group: TaskGroup) -> None:
        """Handle a task id that is used twice as Airflow 1 does: warn, and leave the second task out. Its dependencies count."""
        message = english(phrase("warning_task_twice", task=repr(first.task_id)))
        open_dags.warn_author(message, dag=self)
        first._upstream, first._downstream = first._upstream or {}, first._downstream or {}
        second._upstream, second._downstream = first._upstream, first._downstream
        second.task_id, second._dag, second.task_group = first.task_id, self, group

    def register_group(self, group: TaskGroup) -> None:
        """Register a new task group under its id."""
        assert group.group_id is not None
        self.ids[group.group_id] = self.task_group_dict[group.group_id] = group

    def record_map_providers(self, sources: Iterable[MapSource]) -> None:
        """Record the tasks over whose results other tasks are mapped. These tasks have to return lists or dictionaries."""
        # lazy import: definitions need msgspec, and only mapped tasks need them here
        from tradewind.model.definition import map_providers

        self.map_provider_ids = self.map_provider_ids.union(map_providers(sources))

    def add_result(self, xcom_arg: XComArg) -> XComArg:
        """Make the return value of a task a result of each run: who waits for the end of a run gets it.

        Raises:
            ValueError: it is not the return value of a task.
        """
        if not is_return_value(xcom_arg):
            raise ValueError(
                f"DAG {self.dag_id!r}: a result has to be the return value of a task, such as task.output; got {xcom_arg!r}"
            )
        xcom_arg.operator.returns_dag_result = True
        return xcom_arg

    def param(self, name: str, default: Any = NOTSET) -> DagParam:
        """A DAG parameter as a task argument. The value is filled in when the task runs."""
        return DagParam(self, name, default)

    # --- tasks and properties -------------------------------------------------------------------------------------------

    @property
    def tasks(self) -> list[BaseOperator]:
        """All tasks, in the order of creation."""
        return list(self.task_dict.values())

    @property
    def task_ids(self) -> list[str]:
        return list(self.task_dict)

    @property
    def task_count(self) -> int:
        return len(self.task_dict)

    @property
    def roots(self) -> list[BaseOperator]:
        """Tasks without upstream tasks."""
        return [task for task in self.task_dict.values() if not task._upstream]

    @property
    def leaves(self) -> list[BaseOperator]:
        """Tasks without downstream tasks."""
        return [task for task in self.task_dict.values() if not task._downstream]

    def has_task(self, task_id: str) -> bool:
        return task_id in self.task_dict or self._sub_dag_group(task_id) is not None

    def _sub_dag_group(self, task_id: str) -> TaskGroup | None:
        """The task group that a `SubDagOperator` with this id became."""
        group = self.task_group_dict.get(task_id)
        return group if group is not None and "subdag" in vars(group) else None

    def has_task_group(self, group_id: str) -> bool:
        return group_id in self.task_group_dict

    def get_task(self, task_id: str, include_subdags: bool = False) -> BaseOperator:
        """The task with this id; for the id of a `SubDagOperator`, its task group.

        Raises:
            NotFound: there is no such task; the message names the closest id.
        """
        try:
            return self.task_dict[task_id]
        except KeyError:
            group = self._sub_dag_group(task_id)
            if group is not None:
                return group  # type: ignore[return-value]
            guess = did_you_mean(task_id, self.task_dict)
            raise NotFound(f"DAG {self.dag_id!r} has no task {task_id!r}.{guess}") from None

    def __getitem__(self, node_id: str) -> BaseOperator | TaskGroup:
        """The task or task group with this id."""
        try:
            return self.ids[node_id]
        except KeyError:
            guess = did_you_mean(node_id, self.ids)
            raise KeyError(f"DAG {self.dag_id!r} has no task or task group {node_id!r}.{guess}") from None

    def __contains__(self, node_id: object) -> bool:
        return node_id in self.ids

    def get_edge_info(self, upstream_task_id: str, downstream_task_id: str) -> dict[str, str | None]:
        """`{"label": …}` of a dependency, or an empty dictionary."""
        return self.edge_info.get(upstream_task_id, {}).get(downstream_task_id, {})

    def set_edge_info(self, upstream_task_id: str, downstream_task_id: str, info: Mapping[str, str | None]) -> None:
        """Set the label of a dependency: `{"label": …}`."""
        self.edge_info.setdefault(upstream_task_id, {})[downstream_task_id] = dict(info)

    @property
    def teardowns(self) -> list[BaseOperator]:
        return [task for task in self.task_dict.values() if task.is_teardown]

    @property
    def tasks_upstream_of_teardowns(self) -> list[BaseOperator]:
        """Each direct upstream task of each teardown."""
        return [before for task in self.teardowns for before in task.upstream_list if not before.is_teardown]

    has_on_success_callback = IsGiven("on_success_callback")
    has_on_failure_callback = IsGiven("on_failure_callback")

    @property
    def owner(self) -> str:
        """The owners of the tasks, sorted, separated by commas."""
        return ", ".join(sorted({task.owner for task in self.task_dict.values()}))

    @property
    def folder(self) -> str:
        """The folder of the DAG file."""
        return str(Path(self.fileloc).parent)

    @property
    def timezone(self) -> Any:
        """The time zone of the start date as an object of pendulum; without one, the default time zone of the configuration."""
        import pendulum  # lazy import: 80 ms, and few files read it

        return pendulum.instance(datetime(2000, 1, 1, tzinfo=self.zone_in_use)).timezone

    @property
    def zone_in_use(self) -> tzinfo:
        """The time zone of the start date; without one, the default time zone of the configuration."""
        return self.zone or default_zone()

    @property
    def timezone_name(self) -> str | None:
        """The name of the start date's time zone; None if the start date has none."""
        return zone_name(self.zone)

    @property
    def schedule_interval(self) -> ScheduleInput:
        """Airflow 2's name for `schedule`."""
        return self.schedule

    @schedule_interval.setter
    def schedule_interval(self, value: ScheduleInput) -> None:
        self.schedule, self.time_schedule, self.asset_condition = self._read_schedule(value, {})

    @property
    def _schedule_interval(self) -> ScheduleInput:
        """Airflow 1's attribute, which DAG files print."""
        return self.schedule_interval

    @property
    def display_name(self) -> str:
        return self.dag_display_name

    # --- older names ---------------------------------------------------------------------------------------------------

    @property
    def task(self) -> Any:
        """`@dag.task`, `@dag.task.branch`, …: `@task` for a task of this DAG."""
        # lazy import: decorators.py imports this module
        from tradewind.sdk.decorators import TaskDecorators

        return TaskDecorators(dag=self)

    def __rshift__(self, other: Any) -> Any:
        """`dag >> task` of Airflow 1: the task belongs to the DAG."""
        self.add_tasks(other if isinstance(other, list | tuple) else [other])
        return other

    __lshift__ = __rshift__

    def __rlshift__(self, other: Any) -> Any:
        """`task << dag` of Airflow 1."""
        self.__rshift__(other)
        return self

    __rrshift__ = __rlshift__

    def tree_view(self) -> None:
        """Print the tasks as a tree that begins with the tasks without upstream tasks."""
        sys.stdout.write(self.get_tree_view())

    def get_tree_view(self) -> str:
        """What `tree_view` prints."""
        lines: list[str] = []
        pending = [(task, 0) for task in reversed(self.roots)]
        while pending:
            task, depth = pending.pop()
            lines.append(f"{'    ' * depth}{task!r}\n")
            pending += [(child, depth + 1) for child in reversed(task.downstream_list)]
        return "".join(lines)

    @property
    def normalized_schedule_interval(self) -> ScheduleInput:
        """`schedule`; None for `@once`."""
        return None if self.schedule_interval == "@once" else self.schedule_interval

    @property
    def timetable(self) -> Any:
        """The schedule as a timetable: of a schedule on assets, an `AssetTriggeredTimetable` or `AssetOrTimeSchedule`."""
        if self.asset_condition is not None:
            from tradewind.sdk.assets import timetable_of_assets  # lazy import: a plain schedule needs no assets

            return timetable_of_assets(self.schedule)
        from tradewind.timetables.of_schedule import timetable_of  # lazy import: few DAG files ask for it

        return timetable_of(None if self.time_schedule is NOTSET else self.time_schedule, self.timezone_name or "UTC")

    def sub_dag(self, task_regex: str, include_downstream: bool = False, include_upstream: bool = True) -> DAG:
        """Airflow 1's name for `partial_subset`."""
        return self.partial_subset(task_regex, include_downstream, include_upstream)

    default_view = "grid"
    orientation = "LR"

    # --- names of Airflow 3 ----------------------------------------------------------------------------------------------

    partial = False
    last_loaded: datetime | None = None
    relative_fileloc: str | None = None
    """Airflow sets these after a DAG file is read."""

    def resolve_template_files(self) -> None:
        """Replace the names of template files in the tasks by the content of the files."""
        for task in self.tasks:
            task.resolve_template_files()

    def validate_setup_teardown(self) -> None:
        """Check the setups and teardowns.

        Raises:
            DefinitionError: a trigger rule that a setup or a teardown does not allow.
        """
        setup_teardown.validate(self)

    pickle_id: int | None = None
    allow_future_exec_dates = False

    def get_default_view(self) -> str:
        """Airflow 1's name of `default_view`."""
        return self.default_view

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The names of `_OlderName`."""

    def _older(self, name: str) -> Any:
        """A method of Airflow 1 and 2. Those that need its database raise NotYetSupported when they are called."""
        if name in _CHANGES_OF_DATABASE and open_dags.is_reading():
            return functools.partial(self._change_nothing, name)
        if name in _OLDER_METHODS:
            from tradewind.execution.older_dag_methods import OlderDagMethods  # lazy import: few files use them

            return getattr(OlderDagMethods(self), name)
        if name in _LISTS_OF_DATABASE and open_dags.is_reading():
            return functools.partial(self._empty_list, name)
        if name in _LOCAL_METHODS:
            from tradewind.execution.local_dag_methods import LocalDagMethods  # lazy import: only tests use them

            return getattr(LocalDagMethods(self), name)
        if name in _WRITES_OF_DEFINITIONS:
            return functools.partial(_write_no_definition, f"dag.{name}()")
        return functools.partial(self._refuse, name)

    def _empty_list(self, name: str, *_args: Any, **_kwargs: Any) -> list[Any]:
        open_dags.warn_author(f"dag.{name}() gives an empty list while the DAG file is read", dag=self)
        return []

    def _change_nothing(self, name: str, *_args: Any, **_kwargs: Any) -> None:
        open_dags.warn_author(f"dag.{name}() changes nothing while the DAG file is read", dag=self)

    def _refuse(self, name: str, *_args: Any, **_kwargs: Any) -> NoReturn:
        raise NotYetSupported(
            self.located_message(
                f"dag.{name}() needs Airflow's database, which DAG files cannot reach; use the command `tradewind dags` or the "
                "REST API (/api/v2). To run the DAG here, use dag.test()"
            )
        )

    def set_dependency(self, upstream_task_id: str, downstream_task_id: str) -> None:
        """Make one task depend on another; both are given by their ids."""
        self.get_task(upstream_task_id).set_downstream(self.get_task(downstream_task_id))

    @property
    def filepath(self) -> str:
        """The name of the DAG file, without its folder."""
        return str(Path(self.fileloc).name)

    @property
    def full_filepath(self) -> str:
        """`fileloc` in Airflow 1."""
        return self.fileloc

    @property
    def fail_stop(self) -> bool:
        """`fail_fast` in Airflow 2."""
        return self.fail_fast

    @property
    def concurrency(self) -> int:
        """`max_active_tasks` in Airflow 1."""
        return self.max_active_tasks

    @property
    def safe_dag_id(self) -> str:
        """The id, as a part of a file name."""
        return self.dag_id.replace(".", "__dot__")

    subdags: Sequence[DAG] = ()
    """Always empty: a sub-DAG is a task group here."""
    is_subdag = False
    parent_dag: DAG | None = None

    # --- order ---------------------------------------------------------------------------------------------------------

    def topological_sort(self) -> tuple[BaseOperator, ...]:
        """All tasks, each after its upstream tasks.

        Raises:
            CycleError: the dependencies contain a cycle; the message lists its tasks.
        """
        return graph.topological_order(self)

    def validate(self) -> None:
        """Check the complete DAG.

        Raises:
            CycleError: the dependencies contain a cycle.
            DefinitionError: a trigger rule that `fail_fast`, a setup or a teardown does not allow.
        """
        for task in self.task_dict.values():
            task.add_xcom_dependencies()
        self.topological_sort()
        if self.fail_fast:
            for task in self.task_dict.values():
                if task.trigger_rule not in _FAIL_FAST_RULES:
                    raise DefinitionError(
                        self.located_message(
                            f"fail_fast does not allow the trigger rule {task.trigger_rule} of task {task.task_id!r}; use "
                            f"{' or '.join(_FAIL_FAST_RULES)}"
                        )
                    )
        setup_teardown.validate(self)
        self._check_default_args()

    check_cycle = validate

    def _check_default_args(self) -> None:
        """Warn about default arguments that no operator of the DAG accepts: they are probably misspelt."""
        if not self.default_args or not self.task_dict:
            return
        taken: set[str] = set()
        for cls in {type(task) for task in self.task_dict.values()}:
            taken |= accepted_names(cls)
        for name in self.default_args:
            if name not in taken:
                guess = did_you_mean(name, taken)
                open_dags.warn_author(f"default_args has {name!r}, which no operator of this DAG accepts.{guess}", dag=self)

    # --- subsets -------------------------------------------------------------------------------------------------------

    def partial_subset(
        self,
        task_ids: str | Iterable[str],
        include_downstream: bool = False,
        include_upstream: bool = True,
        include_direct_upstream: bool = False,
    ) -> DAG:
        """A copy with only some of the tasks, and the setups and teardowns that these need.

        Args:
            task_ids: a regular expression that is searched for in the task ids, or a list of task ids.
            include_downstream: include all tasks downstream of the matching ones.
            include_upstream: include all tasks upstream of the matching ones.
            include_direct_upstream: include the direct upstream tasks of the matching ones.
        """
        if isinstance(task_ids, str):
            pattern = re.compile(task_ids)
            chosen = [task for task in self.task_dict.values() if pattern.search(task.task_id)]
        else:
            chosen = [self.get_task(task_id) for task_id in task_ids]
        kept = {task.task_id for task in chosen}
        if include_downstream:
            kept.update(graph.reachable(chosen))
        if include_upstream:
            kept.update(graph.reachable(chosen, upstream=True))
        if include_direct_upstream:
            kept.update(up for task in chosen for up in task._upstream or ())
        kept |= setup_teardown.required_by(self, kept)
        return graph.copy_with(self, kept)

    # --- running -------------------------------------------------------------------------------------------------------

    def test(self, *args: Any, **kwargs: Any) -> Any:
        """Run the DAG in this process, with the same decisions as in production; breakpoints work.

        For the arguments see `tradewind.testing.dag_test.run_dag_test`. By position, as in Airflow: logical_date, run_conf,
        conn_file_path, variable_file_path, use_executor, mark_success_pattern.
        """
        # lazy import: the testing package has a higher import rank
        from tradewind.testing.dag_test import run_dag_test

        if len(args) > len(_TEST_ARGUMENTS):
            names = ", ".join(_TEST_ARGUMENTS)
            raise TypeError(f"dag.test() takes at most {len(_TEST_ARGUMENTS)} positional arguments: {names}")
        for name, value in zip(_TEST_ARGUMENTS, args, strict=False):
            if name in kwargs:
                raise TypeError(f"dag.test() got two values for the argument {name}")
            kwargs[name] = value
        return run_dag_test(self, **kwargs)

    def cli(self) -> NoReturn:
        raise NotYetSupported(self.located_message("dag.cli() is not supported yet; use `tradewind dags test`, or dag.test()"))

    def get_template_env(self, **kwargs: Any) -> Any:
        """The Jinja environment of the DAG's templates."""
        # lazy import: jinja2 is needed only where a task runs
        from tradewind.execution.templates import environment_for

        return environment_for(self, **kwargs)

    def __repr__(self) -> str:
        return f"<DAG: {self.dag_id}>"


def _write_no_definition(call: str, *_args: Any, **_kwargs: Any) -> None:
    """Airflow would store the definition of DAGs. Here a task may not change them, and need not: its result names its outlets."""
    open_dags.warn_author(f"{call} changes nothing: Tradewind reads the definition of a DAG only from its file")


class _OlderName:
    """A name of Airflow 1 and 2's DAG. It is a name of the class, too, so that tests can replace it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, dag: DAG | None, owner: type[DAG]) -> Any:
        return self if dag is None else dag._older(self._name)

    def __call__(self, *_args: Any, **_kwargs: Any) -> None:
        """A call on the class: `DAG.bulk_write_to_db([dag])`. It changes nothing.

        Raises:
            NotYetSupported: the method is no function of the class, or it is one that changes runs.
        """
        if self._name not in _WRITES_OF_DEFINITIONS:
            raise NotYetSupported(
                f"DAG.{self._name}() needs Airflow's database, which DAG files cannot reach; use the command `tradewind dags` or "
                "the REST API (/api/v2)"
            )
        _write_no_definition(f"DAG.{self._name}()")


for _name in sorted(_OLDER_METHODS | _LOCAL_METHODS | _DATABASE_METHODS):
    setattr(DAG, _name, _OlderName(_name))
