"""`DAG`: tasks, the arrows between them, and when to run them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self
from zoneinfo import ZoneInfo

from tradewind.model.errors import (
    DefinitionError,
    DuplicateTaskId,
    NotFound,
    NotYetSupported,
    UnknownArgument,
    did_you_mean,
)
from tradewind.model.states import TriggerRule
from tradewind.model.zones import zone_name
from tradewind.sdk import arguments, graph, open_dags, setup_teardown
from tradewind.sdk.arguments import Callback
from tradewind.sdk.default_args import accepted_names
from tradewind.sdk.names import MAX_LENGTH, check_dag_id
from tradewind.sdk.params import NOTSET, DagParam, ParamsDict
from tradewind.sdk.taskgroup import TaskGroup

if TYPE_CHECKING:
    from tradewind.model.definition import MapSource, Schedule
    from tradewind.sdk.assets import BaseAsset
    from tradewind.sdk.deadlines import DeadlineAlert
    from tradewind.sdk.operator import BaseOperator

ScheduleInput = Any
"""None, a preset, a cron expression, a timedelta, a relativedelta, a timetable, an asset, a list or expression of assets."""

_LATER = {
    "allowed_run_types": "limits on kinds of runs",
    "rerun_with_latest_version": "versioned DAG folders",
}
"""Airflow's arguments whose behaviour is not built yet, and what they belong to."""

_COSMETIC = ("default_view", "orientation", "full_filepath")
"""Arguments of Airflow 1 and 2 that chose a page of their web interface: accepted, without effect."""

_RENAMED = {"concurrency": "max_active_tasks", "fail_stop": "fail_fast"}
"""Names of Airflow 1 and 2 for the same thing."""

_TEST_PLACES = ("logical_date", "run_conf", "conn_file_path", "variable_file_path", "use_executor", "mark_success_pattern")
"""Arguments of `DAG.test` in Airflow 3's order."""

_FAIL_FAST_RULES = (TriggerRule.ALL_SUCCESS, TriggerRule.ALL_DONE_SETUP_SUCCESS)


class DAG:
    """A workflow.

    Operators made inside `with DAG(...):` belong to it. What is not given comes from the configuration when the file is
    read, so the attributes of a fresh DAG may be None.

    Args:
        dag_id: letters, digits, `-`, `_`, `.`; at most 250 characters; unique in the DAG folder.
        schedule: None (runs only when triggered), a preset (`@daily`), a cron expression, a timedelta, a relativedelta, a
            timetable, or assets: one, a list (all of them), or some joined by `&` and `|`. `schedule_interval` and `timetable`
            are older names.
        start_date, end_date: first and last logical date. The zone of `start_date` is the DAG's; without a zone, the
            configured default is meant.
        catchup: run the intervals missed since `start_date`.
        max_active_tasks: task instances of one run that may be queued or running at a time.
        max_active_tasks_all_runs: the same over all runs of the DAG together, as `concurrency` meant in Airflow 1 and 2; without it
            there is no such limit. Airflow does not know this argument.
        max_active_runs: runs that may be running at a time.
        max_consecutive_failed_dag_runs: pause the DAG after so many failed runs; 0 is never.
        dagrun_timeout: a run that takes longer fails.
        fail_fast: the first failure ends the run.
        default_args: arguments for every operator, by name.
        params: parameters (`Param` or plain defaults).
        on_success_callback, on_failure_callback: called when a run has ended.
        sla_miss_callback: called when tasks miss their `sla`.
        deadline: a `DeadlineAlert`, or several: by when a run should have succeeded, and what is called when it has not.
        access_control: kept; the definition's warnings say what becomes of it.
        disable_bundle_versioning: accepted; DAG folders have no versions, so it changes nothing.
        template_searchpath, template_undefined, user_defined_macros, user_defined_filters, jinja_environment_kwargs,
            render_template_as_native_obj: how templates are rendered.
        auto_register: a file's DAG counts once its `with` block is entered, even when no top-level name holds it.

    Raises:
        UnknownArgument: a misspelt argument.
        NotYetSupported: an argument of Airflow whose behaviour is not built yet.
        DefinitionError: a value that cannot be.
    """

    mapped_over: frozenset[str] = frozenset()
    """Ids of the tasks whose results others are mapped over."""

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
        deadline: Any = None,
        **older: Any,
    ) -> None:
        self.dag_id = check_dag_id(dag_id)
        self.place = open_dags.caller_place()
        self.fileloc = self.place.file
        """The file that makes this DAG."""
        for name, value in older.items():
            self._check_older(name, value)
        older = {_RENAMED.get(name, name): value for name, value in older.items()}
        self.default_args = self._read_default_args(default_args)
        self.params = self._read_params(params)
        self.description = description
        self.schedule, self.time_schedule, self.asset_condition = self._read_schedule(schedule, older)
        tasks = older.get("max_active_tasks", max_active_tasks)
        self._read_limits(tasks, max_active_tasks_all_runs, max_active_runs, max_consecutive_failed_dag_runs)
        self.dagrun_timeout = None if dagrun_timeout is None else self._read("dagrun_timeout", dagrun_timeout, duration=True)
        self.catchup = catchup
        self.fail_fast = bool(older.get("fail_fast", fail_fast))
        self._read_callbacks(on_success_callback, on_failure_callback, sla_miss_callback, deadline)
        self.access_control = access_control
        self.disable_bundle_versioning = disable_bundle_versioning
        self.is_paused_upon_creation, self.auto_register = is_paused_upon_creation, auto_register
        self._read_dates(start_date, end_date)
        self._describe(doc_md, tags, owner_links, dag_display_name)
        self.template_searchpath: list[str] = arguments.several("template_searchpath", template_searchpath or [])
        self.template_undefined = template_undefined
        """A class of jinja2; None stands for `StrictUndefined`."""
        self.user_defined_macros = user_defined_macros
        self.user_defined_filters = user_defined_filters
        self.jinja_environment_kwargs = jinja_environment_kwargs
        self.render_template_as_native_obj = render_template_as_native_obj
        self.task_dict: dict[str, BaseOperator] = {}
        """Tasks by id, in the author's order."""
        self.ids: dict[str, TaskGroup | BaseOperator] = {}
        """Every id that is taken, by a task or a group."""
        self.suffixes: dict[str, int] = {}
        """Last number given to repeated ids (see `names.with_suffix`)."""
        self.task_group_dict: dict[str, TaskGroup] = {}
        self.edge_info: dict[str, dict[str, dict[str, str | None]]] = {}
        self.task_group = TaskGroup.create_root(self)
        self.schedule_definition: Schedule | None = None
        """The schedule as read, once the definition is made."""
        open_dags.note_made(self)

    # --- reading arguments ---------------------------------------------------------------------------------------------

    def fault(self, sentence: object) -> str:
        """A sentence about this DAG, with its name and place in front."""
        return f"DAG {self.dag_id!r} ({self.place}): {sentence}"

    def _read(self, name: str, value: Any, duration: bool = False) -> Any:
        try:
            return arguments.strict_duration(name, value) if duration else arguments.moment(name, value)
        except DefinitionError as error:
            raise DefinitionError(self.fault(error)) from None

    def _read_callbacks(self, on_success: Any, on_failure: Any, sla_miss: Any, deadline: Any) -> None:
        self.deadline: list[DeadlineAlert] = self._read_deadline(deadline) if deadline else []
        try:
            self.on_success_callback = arguments.callbacks("on_success_callback", on_success)
            self.on_failure_callback = arguments.callbacks("on_failure_callback", on_failure)
            self.sla_miss_callback = arguments.callbacks("sla_miss_callback", sla_miss)
        except DefinitionError as error:
            raise DefinitionError(self.fault(error)) from None

    def _read_deadline(self, value: Any) -> list[DeadlineAlert]:
        from tradewind.sdk import deadlines  # lazy door: brings msgspec; few DAGs have one

        try:
            return deadlines.read(value)
        except DefinitionError as error:
            raise type(error)(self.fault(error)) from None

    def _read_limits(self, tasks: Any, tasks_of_all_runs: Any, runs: Any, failed_runs: Any) -> None:
        self.max_active_tasks = self._whole("max_active_tasks", tasks, 1)
        self.max_active_tasks_all_runs = self._whole("max_active_tasks_all_runs", tasks_of_all_runs, 1)
        self.max_active_runs = self._whole("max_active_runs", runs, 1)
        self.max_consecutive_failed_dag_runs = self._whole("max_consecutive_failed_dag_runs", failed_runs, 0)

    def _whole(self, name: str, value: Any, minimum: int) -> int | None:
        try:
            return None if value is None else int(arguments.whole(minimum)(name, value))
        except DefinitionError as error:
            raise DefinitionError(self.fault(error)) from None

    def _check_older(self, name: str, value: Any) -> None:
        """Look at an argument that Airflow 3 does not have, or that is not built yet; anything else is misspelt."""
        if name in _LATER:
            if value:
                raise NotYetSupported(
                    self.fault(f"the argument {name} belongs to {_LATER[name]}, which comes with a later release; remove it")
                )
        elif name in _COSMETIC:
            message = f"{name} only concerned the web interface of Airflow 1 and 2 and has no effect"
            open_dags.warn_author(self.fault(message), DeprecationWarning)
        elif name in _RENAMED:
            message = f"{name} is called {_RENAMED[name]} since Airflow 2"
            open_dags.warn_author(self.fault(message), DeprecationWarning)
        elif name not in ("schedule_interval", "timetable"):
            known = [*DAG.__init__.__annotations__, *_RENAMED, "schedule_interval", "timetable"]
            raise UnknownArgument(self.fault(f"DAG takes no argument {name!r}.{did_you_mean(name, known)}"))

    def _read_schedule(
        self, schedule: ScheduleInput, older: Mapping[str, Any]
    ) -> tuple[ScheduleInput, ScheduleInput, BaseAsset | None]:
        """What was given, its part that is about time, and the assets that it waits for."""
        given = [] if schedule is NOTSET else [("schedule", schedule)]
        given += [(name, older[name]) for name in ("schedule_interval", "timetable") if older.get(name, NOTSET) is not NOTSET]
        if len(given) > 1:
            names = " and ".join(name for name, _ in given)
            raise DefinitionError(self.fault(f"{names} say the same thing; give schedule only"))
        found = given[0][1] if given else NOTSET
        if found is NOTSET or isinstance(found, str | timedelta | None):
            return found, found, None
        # lazy door: a plain schedule needs no assets
        from tradewind.sdk.assets import split_schedule

        try:
            return (found, *split_schedule(found))
        except DefinitionError as error:
            raise DefinitionError(self.fault(error)) from None

    def _read_default_args(self, default_args: Mapping[str, Any] | None) -> dict[str, Any]:
        if default_args is not None and not isinstance(default_args, Mapping):
            raise DefinitionError(self.fault(f"default_args is {default_args!r}; it must be a dictionary"))
        found = dict(default_args or {})
        for name in ("start_date", "end_date"):
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
        """The zone of the start date; None where it has none: the configured default is meant."""
        self.start_date: datetime | None = start
        self.end_date: datetime | None = end

    def _describe(
        self,
        doc_md: str | None,
        tags: Iterable[str] | None,
        owner_links: Mapping[str, str] | None,
        display_name: str | None,
    ) -> None:
        if isinstance(tags, str):
            raise DefinitionError(self.fault(f"tags is {tags!r}; it must be a list of texts"))
        self.tags: set[str] = set(tags or ())
        for tag in self.tags:
            if not isinstance(tag, str) or not 0 < len(tag) <= 100:
                raise DefinitionError(self.fault(f"tag {tag!r} must be a text of 1 to 100 characters"))
        self.owner_links = dict(owner_links or {})
        for owner, address in self.owner_links.items():
            if not re.match(r"(https?://|mailto:).", str(address)):
                raise DefinitionError(
                    self.fault(f"owner_links[{owner!r}] is {address!r}; it must begin with https:// or mailto:")
                )
        self.dag_display_name = display_name
        self.doc_md = self._read_doc(doc_md)

    def _read_doc(self, doc_md: str | None) -> str | None:
        """The text; where it is the name of a `.md` file (beside the DAG file, or absolute), the file's."""
        if doc_md is None or not doc_md.strip().endswith(".md") or "\n" in doc_md.strip():
            return doc_md
        path = Path(self.folder, doc_md.strip())
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            open_dags.warn_author(self.fault(f"doc_md names the file {path}, which cannot be read: {error.strerror}"))
            return doc_md

    # --- the block -----------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        if self.auto_register:
            open_dags.note_registered(self)
        open_dags.open_dags.append(self)
        open_dags.open_groups.append(self.task_group)
        return self

    def __exit__(self, *exc_info: object) -> None:
        open_dags.open_groups.pop()
        open_dags.open_dags.pop()

    # --- filling -------------------------------------------------------------------------------------------------------

    def add_task(self, task: BaseOperator) -> None:
        """Take in a task that was made outside."""
        if task._dag is self:
            return
        if task._dag is not None:
            raise DefinitionError(self.fault(f"task {task.task_id!r} belongs to DAG {task._dag.dag_id!r} already"))
        self.task_group.add(task)

    def add_tasks(self, tasks: Iterable[BaseOperator]) -> None:
        for task in tasks:
            self.add_task(task)

    def take_in(self, task: BaseOperator, group: TaskGroup) -> None:
        """Give a new task its full id and its place. Called by groups.

        Raises:
            DuplicateTaskId: the id is taken.
        """
        task_id = task.task_id if group.prefix is None else f"{group.prefix}.{task.task_id}"
        if task_id in self.ids:
            kind = "task" if task_id in self.task_dict else "task group"
            raise DuplicateTaskId(self.fault(f"there is a {kind} {task_id!r} already"))
        if len(task_id) > MAX_LENGTH:
            raise DefinitionError(
                self.fault(f"task_id {task_id[:40]!r}… has {len(task_id)} characters with its groups; at most {MAX_LENGTH}")
            )
        task.task_id = task_id
        task._dag = self
        task.task_group = group
        self.ids[task_id] = self.task_dict[task_id] = group.children[task_id] = task

    def note_group(self, group: TaskGroup) -> None:
        """Keep the id of a new group."""
        assert group.group_id is not None
        self.ids[group.group_id] = self.task_group_dict[group.group_id] = group

    def note_mapped_over(self, sources: Iterable[MapSource]) -> None:
        """Keep which tasks' results others are mapped over: these have to return lists."""
        # lazy door: definitions bring msgspec, and only mapped tasks need them here
        from tradewind.model.definition import map_providers

        self.mapped_over = self.mapped_over.union(map_providers(sources))

    def param(self, name: str, default: Any = NOTSET) -> DagParam:
        """A parameter as a value for task arguments: replaced when the task runs."""
        return DagParam(self, name, default)

    # --- looking in ----------------------------------------------------------------------------------------------------

    @property
    def tasks(self) -> list[BaseOperator]:
        """In the author's order."""
        return list(self.task_dict.values())

    @property
    def task_ids(self) -> list[str]:
        return list(self.task_dict)

    @property
    def task_count(self) -> int:
        return len(self.task_dict)

    @property
    def roots(self) -> list[BaseOperator]:
        """Tasks that wait for none."""
        return [task for task in self.task_dict.values() if not task._upstream]

    @property
    def leaves(self) -> list[BaseOperator]:
        """Tasks that none waits for."""
        return [task for task in self.task_dict.values() if not task._downstream]

    def has_task(self, task_id: str) -> bool:
        return task_id in self.task_dict

    def has_task_group(self, group_id: str) -> bool:
        return group_id in self.task_group_dict

    def get_task(self, task_id: str, include_subdags: bool = False) -> BaseOperator:
        """The task of that id.

        Raises:
            NotFound: with the nearest id.
        """
        try:
            return self.task_dict[task_id]
        except KeyError:
            guess = did_you_mean(task_id, self.task_dict)
            raise NotFound(f"DAG {self.dag_id!r} has no task {task_id!r}.{guess}") from None

    def __getitem__(self, node_id: str) -> BaseOperator | TaskGroup:
        """The task or group of that id."""
        try:
            return self.ids[node_id]
        except KeyError:
            guess = did_you_mean(node_id, self.ids)
            raise KeyError(f"DAG {self.dag_id!r} has no task or group {node_id!r}.{guess}") from None

    def __contains__(self, node_id: object) -> bool:
        return node_id in self.ids

    def get_edge_info(self, upstream_task_id: str, downstream_task_id: str) -> dict[str, str | None]:
        """`{"label": …}` of an arrow, or an empty dictionary."""
        return self.edge_info.get(upstream_task_id, {}).get(downstream_task_id, {})

    @property
    def owner(self) -> str:
        """The owners of its tasks, sorted, with commas between."""
        return ", ".join(sorted({task.owner for task in self.task_dict.values()}))

    @property
    def folder(self) -> str:
        """The folder of its file."""
        return str(Path(self.fileloc).parent)

    @property
    def timezone(self) -> tzinfo:
        """The zone of the start date, else UTC."""
        return self.zone or ZoneInfo("UTC")

    @property
    def timezone_name(self) -> str | None:
        """The zone of the start date by name; None where it has none."""
        return zone_name(self.zone)

    @property
    def schedule_interval(self) -> ScheduleInput:
        """The older name of `schedule`."""
        return None if self.schedule is NOTSET else self.schedule

    @property
    def display_name(self) -> str:
        return self.dag_display_name or self.dag_id

    # --- order ---------------------------------------------------------------------------------------------------------

    def topological_sort(self) -> tuple[BaseOperator, ...]:
        """Every task after the tasks that it waits for.

        Raises:
            CycleError: naming the tasks that wait for each other.
        """
        return graph.topological_order(self)

    def validate(self) -> None:
        """Check what can be known only when the DAG is complete.

        Raises:
            CycleError: tasks wait for each other.
            DefinitionError: a trigger rule that fail_fast, a setup or a teardown forbids.
        """
        for task in self.task_dict.values():
            task.draw_xcom_edges()
        self.topological_sort()
        if self.fail_fast:
            for task in self.task_dict.values():
                if task.trigger_rule not in _FAIL_FAST_RULES:
                    raise DefinitionError(
                        self.fault(f"with fail_fast, task {task.task_id!r} cannot have the trigger rule {task.trigger_rule}")
                    )
        setup_teardown.check(self)
        self._check_default_args()

    check_cycle = validate

    def _check_default_args(self) -> None:
        """Warn of default arguments that no operator takes: most likely misspelt."""
        if not self.default_args or not self.task_dict:
            return
        taken: set[str] = set()
        for cls in {type(task) for task in self.task_dict.values()}:
            taken |= accepted_names(cls)
        for name in self.default_args:
            if name not in taken:
                guess = did_you_mean(name, taken)
                open_dags.warn_author(self.fault(f"default_args has {name!r}, which none of its operators takes.{guess}"))

    # --- a part of it --------------------------------------------------------------------------------------------------

    def partial_subset(
        self,
        task_ids: str | Iterable[str],
        include_downstream: bool = False,
        include_upstream: bool = True,
        include_direct_upstream: bool = False,
    ) -> DAG:
        """A copy with only some tasks, and the setups and teardowns that they need.

        Args:
            task_ids: a regular expression that is searched for in the ids, or ids.
            include_downstream: with everything after them.
            include_upstream: with everything before them.
            include_direct_upstream: with the tasks directly before them.
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
        kept |= setup_teardown.needed(self, kept)
        return graph.copy_with(self, kept)

    # --- running -------------------------------------------------------------------------------------------------------

    def test(self, *args: Any, **kwargs: Any) -> Any:
        """Run it here and now, in this process, with the same decisions as in production; breakpoints work.

        Arguments are those of `tradewind.testing.dag_test.run_dag_test`, by place as in Airflow: logical_date, run_conf,
        conn_file_path, variable_file_path, use_executor, mark_success_pattern.
        """
        # lazy door: the test kit stands above this package
        from tradewind.testing.dag_test import run_dag_test

        if len(args) > len(_TEST_PLACES):
            raise TypeError(f"dag.test() takes at most {len(_TEST_PLACES)} arguments by place: {', '.join(_TEST_PLACES)}")
        for name, value in zip(_TEST_PLACES, args, strict=False):
            if name in kwargs:
                raise TypeError(f"dag.test() is given {name} twice")
            kwargs[name] = value
        return run_dag_test(self, **kwargs)

    def cli(self) -> NoReturn:
        raise NotYetSupported(self.fault("dag.cli() comes with a later release; use `tradewind dags test`, or dag.test()"))

    def get_template_env(self, **kwargs: Any) -> Any:
        """The Jinja environment of its templates."""
        # lazy door: jinja2 is needed only where a task runs
        from tradewind.execution.templates import environment_for

        return environment_for(self, **kwargs)

    def __repr__(self) -> str:
        return f"<DAG: {self.dag_id}>"
