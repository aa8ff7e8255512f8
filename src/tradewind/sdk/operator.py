"""`BaseOperator`: the base class of all operators.

An operator object stores only the arguments that the author gave. All other attributes are class attributes, so that a DAG of
100,000 tasks needs little memory.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import logging
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, Unpack

from tradewind.model.errors import DefinitionError, NotYetSupported, UnknownArgument, did_you_mean
from tradewind.model.operator_classes import class_name
from tradewind.model.phrases import english, phrase
from tradewind.model.states import TriggerRule, WeightRule
from tradewind.sdk import open_dags, setup_teardown
from tradewind.sdk.arguments import (
    KNOWN_ARGUMENTS,
    NOT_SUPPORTED,
    OWN_ARGUMENTS,
    READERS,
    RENAMED,
    Callback,
    OperatorArguments,
    refuse_unsupported,
)
from tradewind.sdk.default_args import InitParameters, accepted_names, dag_and_group_of, refuse_or_warn, wrap_init
from tradewind.sdk.default_attributes import IsGiven, OwnId, OwnList, UtcDate
from tradewind.sdk.dependencies import Node, link
from tradewind.sdk.exceptions import ParamValidationError, TaskDeferred
from tradewind.sdk.graph import reachable
from tradewind.sdk.names import check_task_id
from tradewind.sdk.older_operator_names import OlderOperatorNames
from tradewind.sdk.params import NOTSET, ParamsDict
from tradewind.sdk.templater import Templater
from tradewind.sdk.xcom_arg import XComArg, referenced_operators

if TYPE_CHECKING:
    from tradewind.model.wait_plans import WaitPlan
    from tradewind.sdk.dag import DAG
    from tradewind.sdk.mapping import OperatorPartial
    from tradewind.sdk.taskgroup import TaskGroup

Context = Mapping[str, Any]


def _dates_of_dag(task: BaseOperator, name: str) -> tuple[datetime | None, ...]:
    return () if task._dag is None else (getattr(task._dag, name),)


class BaseOperator(Templater, Node, OlderOperatorNames):
    """One task. Subclasses define `execute(context)`.

    Args:
        task_id: unique in the DAG; the ids of its task groups are put in front.
        arguments: see `OperatorArguments`. None means the same as leaving the argument out.

    Raises:
        UnknownArgument: no `__init__` of this operator accepts an argument of this name.
        NotYetSupported: an argument of Airflow that is not supported yet.
        DuplicateTaskId: the DAG already uses this id.
        DefinitionError: an invalid value.
    """

    template_fields: Collection[str] = ()
    """Names of the attributes that are rendered with Jinja before `execute`."""
    template_ext: Sequence[str] = ()
    """If a templated string ends with one of these, it names a template file."""
    template_fields_renderers: Mapping[str, str] = {}
    operator_extra_links: Collection[Any] = ()
    start_from_trigger: bool = False
    """Wait for the trigger of `start_trigger_args` first. `execute` is never called; the task starts in its `next_method`."""
    start_trigger_args: Any = None
    ui_color: str = "#fff"
    ui_fgcolor: str = "#000"
    shallow_copy_attrs: Sequence[str] = ()
    custom_operator_name: str | None = None
    inherits_from_empty_operator: ClassVar[bool] = False
    """True for operators that do nothing: the scheduler sets their tasks to success without starting a process."""

    task_id: str
    task_group: TaskGroup | None = None
    owner: str = "airflow"
    retries: int = 0
    retry_delay: timedelta = timedelta(seconds=300)
    retry_exponential_backoff: float = 0
    lost_attempts: str | None = None
    """What the scheduler does with a lost attempt that had started: `fail`, `repeat`, or None for `scheduler.lost_attempts`."""
    max_retry_delay: timedelta | None = None
    retry_policy: Any = None
    """Decides from the exception whether to retry, and after which delay. Called in the process of the task."""
    start_date: datetime | None = UtcDate(_dates_of_dag, max)  # type: ignore[assignment]
    end_date: datetime | None = UtcDate(_dates_of_dag, min)  # type: ignore[assignment]
    depends_on_past: bool = False
    ignore_first_depends_on_past: bool = False
    wait_for_past_depends_before_skipping: bool = False
    wait_for_downstream: bool = False
    priority_weight: int = 1
    weight_rule: WeightRule = WeightRule.DOWNSTREAM
    queue: str = "default"
    pool: str = "default_pool"
    pool_slots: int = 1
    execution_timeout: timedelta | None = None
    trigger_rule: TriggerRule = TriggerRule.ALL_SUCCESS
    max_active_tis_per_dag: int | None = None
    max_active_tis_per_dagrun: int | None = None
    do_xcom_push: bool = True
    multiple_outputs: bool = False
    doc: str | None = None
    doc_md: str | None = None
    doc_json: str | None = None
    doc_yaml: str | None = None
    doc_rst: str | None = None
    task_display_name: str = OwnId("task_id")  # type: ignore[assignment]
    logger_name: str | None = None
    run_as_user: str | None = None
    executor: str | None = None
    render_template_as_native_obj: bool | None = None
    email: str | Sequence[str] | None = None
    email_on_retry: bool = True
    email_on_failure: bool = True
    on_execute_callback: Sequence[Callback] = OwnList()  # type: ignore[assignment]
    on_success_callback: Sequence[Callback] = OwnList()  # type: ignore[assignment]
    on_failure_callback: Sequence[Callback] = OwnList()  # type: ignore[assignment]
    on_retry_callback: Sequence[Callback] = OwnList()  # type: ignore[assignment]
    on_skipped_callback: Sequence[Callback] = OwnList()  # type: ignore[assignment]
    sla: timedelta | None = None
    inlets: list[Any] = OwnList()  # type: ignore[assignment]
    outlets: list[Any] = OwnList()  # type: ignore[assignment]
    executor_config: Mapping[str, Any] = {}
    resources: Any = None
    is_setup: bool = False
    is_teardown: bool = False
    on_failure_fail_dagrun: bool = False

    is_mapped: ClassVar[bool] = False
    _cached_logger: logging.Logger | None = None
    _log: logging.Logger | None = None
    _dag: DAG | None = None
    _upstream: dict[str, BaseOperator] | None = None
    _downstream: dict[str, BaseOperator] | None = None
    _params: ParamsDict | None = None
    _is_copy: bool = False
    """True for a copy for another DAG object. Its XComArgs refer to tasks of the original DAG; the copier adds its dependencies."""
    _pre_execute_hook: Callable[[Any], None] | None = None
    map_index_template: str | None = None
    returns_dag_result: bool = False
    """Template of the text that is shown instead of the map index."""
    _default_params: dict[str, Any] | None = None
    """Set by `warm_up`: the validated parameters of a run without a conf."""
    _constant_fields: bytes | None = None
    """Set by `warm_up` if no templated field contains a template: the encoded fields (see `rendered_fields.stored_fields`)."""
    _post_execute_hook: Callable[[Any, Any], None] | None = None
    _init_parameters: ClassVar[InitParameters]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if isinstance(cls.template_fields, str):
            warnings.warn(
                f"{cls.__name__}.template_fields is the text {cls.template_fields!r}; it should be a tuple of names, "
                f"such as ({cls.template_fields!r},), and is read as one",
                UserWarning,
                stacklevel=2,
            )
            cls.template_fields = (cls.template_fields,)
        if "__init__" in cls.__dict__:
            wrap_init(cls, InitParameters(cls.__dict__["__init__"]))

    def __init__(self, task_id: str, **arguments: Unpack[OperatorArguments]) -> None:
        given: dict[str, Any] = arguments  # type: ignore[assignment]
        dag = given.pop("dag", None)
        group = given.pop("task_group", None)
        given.pop("default_args", None)
        params = given.pop("params", None)
        self.task_id = check_task_id(task_id)
        self._read(given)
        dag, group = dag_and_group_of(dag, group)
        around = dag if dag is not None else self._dag
        if params or (around is not None and around.params):
            self._params = ParamsDict(around.params if around is not None else {})
            self._params.update(ParamsDict(params))
        if group is not None:
            group.add(self)
        elif dag is not None:
            dag.add_task(self)
        setup_teardown.add_to_open_scope(self)

    def _read(self, given: dict[str, Any]) -> None:
        """Check the arguments and store them as attributes."""
        state = self.__dict__
        for name, value in given.items():
            reader = READERS.get(name)
            if reader is None:
                self._read_name_without_reader(name, value)
            elif value is not None:
                try:
                    state[name] = reader(name, value)
                except DefinitionError as error:
                    raise type(error)(f"{self._name_in_errors()}: {error}") from None
        if "pre_execute" in state:
            self._pre_execute_hook = state.pop("pre_execute")
        if "post_execute" in state:
            self._post_execute_hook = state.pop("post_execute")
        if self.wait_for_downstream:
            self.depends_on_past = True

    def _read_name_without_reader(self, name: str, value: Any) -> None:
        """Handle a name without a reader: not supported yet, an older name, or unknown."""
        if name in NOT_SUPPORTED:
            try:
                refuse_unsupported(name, value)
            except NotYetSupported as error:
                raise NotYetSupported(f"{self._name_in_errors()}: {error}") from None
        elif name in RENAMED:
            newer = RENAMED[name]
            message = f"{self._name_in_errors()}: {name} was renamed to {newer} in Airflow 2; use {newer}"
            open_dags.warn_author(message, DeprecationWarning)
            self._read({newer: value})
        else:
            refuse_or_warn(self, name)

    def _unknown_argument(self, name: str) -> UnknownArgument:
        guess = did_you_mean(name, accepted_names(type(self)))
        return UnknownArgument(f"{self._name_in_errors()} takes no argument {name!r}.{guess}")

    def _name_in_errors(self) -> str:
        """The name of this task in error messages, also before it has its full id."""
        task_id = self.__dict__.get("task_id") or self.__dict__.get("_task_id_given")
        return f"{self.operator_name} {task_id!r}" if task_id else self.operator_name

    # --- methods for subclasses ---------------------------------------------------------------------------------------

    def execute(self, context: Any) -> Any:
        """Do the work. The return value is pushed as XCom `return_value` (with `do_xcom_push`)."""
        raise NotImplementedError(f"{type(self).__name__} does not define execute(context)")

    def pre_execute(self, context: Any) -> None:
        """Called before `execute`."""

    def post_execute(self, context: Any, result: Any = None) -> None:
        """Called after `execute` with its return value."""

    def wait_plan(self) -> WaitPlan | None:
        """The waits of a task that only waits, if the definition alone describes them; None: the task needs a process."""
        return None

    def on_kill(self) -> None:
        """Called when the running task is stopped: stop processes and jobs that it started."""

    def warm_up(self) -> None:
        """Compute once, in the template process, what every task process forked from it would compute."""
        # lazy import: needed only where a task runs
        from tradewind.execution.context import own_params
        from tradewind.execution.rendered_fields import stored_fields
        from tradewind.execution.templates import needs_rendering

        if type(self).render_template_fields is BaseOperator.render_template_fields and not needs_rendering(self):
            self._constant_fields = stored_fields(self)
        with contextlib.suppress(ParamValidationError):  # a parameter without a default needs the conf of the run
            self._default_params = own_params(self).validate()
        if self.outlets:
            # lazy import: only tasks with outlets need it, and the template imports it for all of them
            import tradewind.execution.asset_events  # noqa: F401

    def defer(
        self,
        *,
        trigger: Any,
        method_name: str,
        kwargs: dict[str, Any] | None = None,
        timeout: timedelta | int | float | None = None,
    ) -> NoReturn:
        """End this attempt without a result. When the trigger fires, `method_name(context, event=…, **kwargs)` is called.

        Args:
            timeout: how long to wait, as a timedelta or seconds; after that the task fails with TaskDeferralTimeout.
        """
        raise TaskDeferred(trigger=trigger, method_name=method_name, kwargs=kwargs, timeout=timeout)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Any) -> Any:
        """Continue after a deferral. Raises TaskDeferralError or TaskDeferralTimeout if the trigger failed or timed out."""
        # lazy import: needed only by deferred tasks
        from tradewind.execution.deferral_request import call_method

        return call_method(self, next_method, dict(next_kwargs or {}), context)

    # --- templates ----------------------------------------------------------------------------------------------------

    def render_template_fields(self, context: Any, jinja_env: Any = None) -> None:
        """Replace the templated attributes by their rendered values."""
        if self._constant_fields is not None:
            return
        # lazy import: jinja2 is needed only where a task runs
        from tradewind.execution.templates import render_fields

        render_fields(self, context, jinja_env)

    def dry_run(self) -> None:
        """Log the templated fields."""
        for name in self.template_fields:
            self.log.info("%s: %s", name, getattr(self, name, None))

    def run(
        self,
        start_date: datetime | None = None,
        end_date: datetime | None = None,
        *_ignored: Any,
        mark_success: bool = False,
        **_more: Any,
    ) -> None:
        """Execute this task alone in this process, for each date of the schedule, as tests for Airflow 1 and 2 do.

        Args:
            start_date: default is the start date of the task or of the DAG.
            end_date: default is now.
            mark_success: the task counts as success and does not run.

        Raises:
            NotYetSupported: a scheduler has started this process.
            Exception: what the task raises.
        """
        # lazy import: only tests use it
        from tradewind.execution.local_dag_methods import run_task_of_dates

        run_task_of_dates(self, start_date, end_date, mark_success)

    def clear(self, start_date: datetime | None = None, end_date: datetime | None = None, **_more: Any) -> int:
        """Remove the states of this task from the runs of this process. Returns how many it had. Raises as `run`."""
        cleared: int = self.dag.clear(task_ids=[self.task_id], start_date=start_date, end_date=end_date, dag_run_state=None)
        return cleared

    # --- DAG and task group -------------------------------------------------------------------------------------------

    @property
    def dag(self) -> DAG:
        """The DAG of this task.

        Raises:
            DefinitionError: the task is in no DAG.
        """
        if self._dag is None:
            raise DefinitionError(f"{self._name_in_errors()} is in no DAG")
        return self._dag

    @dag.setter
    def dag(self, dag: DAG | None) -> None:
        if dag is not None and self._dag is not dag:
            dag.add_task(self)

    def added_to_dag(self, dag: DAG) -> None:
        """Called when a DAG has registered this task. Mapped tasks need it."""

    def has_dag(self) -> bool:
        return self._dag is not None

    def get_dag(self) -> DAG | None:
        return self._dag

    @property
    def schedule_interval(self) -> Any:
        """The schedule of the DAG: tasks of Airflow 1 know it. Operators of users may have an attribute of this name."""
        if "schedule_interval" in self.__dict__:
            return self.__dict__["schedule_interval"]
        return self._dag.schedule_interval if self._dag is not None else None

    @schedule_interval.setter
    def schedule_interval(self, value: Any) -> None:
        self.__dict__["schedule_interval"] = value

    @property
    def dag_id(self) -> str:
        return self._dag.dag_id if self._dag is not None else f"adhoc_{self.owner}"

    @property
    def params(self) -> ParamsDict:
        """The parameters of the DAG, overridden by those of this task."""
        if self._params is None:
            self._params = ParamsDict()
        return self._params

    @params.setter
    def params(self, params: Mapping[str, Any]) -> None:
        self._params = ParamsDict(params)

    @property
    def mapped_group(self) -> TaskGroup | None:
        """The mapped task group that contains this task, or None."""
        group = self.task_group
        while group is not None and group.expand_input is None:
            group = group.parent_group
        return group

    def result_is_list_for(self, reader: BaseOperator | None) -> bool:
        """True if `reader` sees the result of this task as a list, with one element for each mapped instance."""
        if "expand_input" in self.__dict__:
            return True
        group = self.mapped_group
        return group is not None and (reader is None or group is not reader.mapped_group)

    @property
    def label(self) -> str:
        """The display name, or the task id without the prefix of its group."""
        return self.__dict__.get("task_display_name") or self.id_in_group

    @property
    def id_in_group(self) -> str:
        """The task id without the prefix of its group."""
        group = self.task_group
        if group is None or group.prefix is None:
            return self.task_id
        return self.task_id.removeprefix(f"{group.prefix}.")

    @property
    def node_id(self) -> str:
        return self.task_id

    @property
    def task_type(self) -> str:
        """Name of the operator class; of a decorator, the name that Airflow's class has."""
        return class_name(self.custom_operator_name) if self.custom_operator_name else type(self).__name__

    @property
    def is_async(self) -> bool:
        """True if the task runs a coroutine function."""
        return False

    @property
    def inherits_from_skipmixin(self) -> bool:
        """True for operators that may skip the tasks after them: branches and short circuits."""
        return any(base.__name__ == "SkipMixin" for base in self.operator_class.__mro__)

    @property
    def operator_name(self) -> str:
        """The name shown for the kind of task: `BashOperator`, `@task`."""
        return self.custom_operator_name or type(self).__name__

    @property
    def operator_class(self) -> type[BaseOperator]:
        return type(self)

    @property
    def _task_type(self) -> str:
        """`task_type`, as releases of openlineage for Airflow 2 and 3.0 read it from mapped tasks."""
        return self.task_type

    @property
    def _task_module(self) -> str:
        """The module of the operator class, read as `_task_type` is."""
        return self.operator_class.__module__

    @property
    def output(self) -> XComArg:
        """The result of this task, for use as an argument of other tasks."""
        return XComArg(self)

    @property
    def roots(self) -> Sequence[BaseOperator]:
        return [self]

    @property
    def leaves(self) -> Sequence[BaseOperator]:
        return [self]

    @property
    def upstream_list(self) -> list[BaseOperator]:
        """Direct upstream tasks, in the order in which the dependencies were set."""
        return list(self._upstream.values()) if self._upstream else []

    @property
    def downstream_list(self) -> list[BaseOperator]:
        """Direct downstream tasks, in the order in which the dependencies were set."""
        return list(self._downstream.values()) if self._downstream else []

    @property
    def upstream_task_ids(self) -> set[str]:
        """Ids of the direct upstream tasks. If the DAG has all tasks that are assigned, this task depends on them then."""
        return set(self.__dict__.get("_assigned_upstream", self._upstream) or ())

    @upstream_task_ids.setter
    def upstream_task_ids(self, ids: Iterable[str]) -> None:
        self._assign_relatives(set(ids), "_upstream", "_downstream")

    @property
    def downstream_task_ids(self) -> set[str]:
        """Ids of the direct downstream tasks. See `upstream_task_ids`."""
        return set(self.__dict__.get("_assigned_downstream", self._downstream) or ())

    @downstream_task_ids.setter
    def downstream_task_ids(self, ids: Iterable[str]) -> None:
        self._assign_relatives(set(ids), "_downstream", "_upstream")

    def _assign_relatives(self, ids: set[str], side: str, other_side: str) -> None:
        """Replace the dependencies on one side. If the DAG does not have all tasks (in tests of operators), only keep the ids."""
        known = self._dag.task_dict if self._dag is not None else None
        if known is None or not ids <= known.keys():
            self.__dict__[f"_assigned{side}"] = ids
            return
        self.__dict__.pop(f"_assigned{side}", None)
        for task in (getattr(self, side) or {}).values():
            (getattr(task, other_side) or {}).pop(self.task_id, None)
        setattr(self, side, {one: known[one] for one in sorted(ids)})
        for one in ids:
            setattr(known[one], other_side, {**(getattr(known[one], other_side) or {}), self.task_id: self})

    has_retry_policy = IsGiven("retry_policy")
    has_on_execute_callback = IsGiven("on_execute_callback")
    has_on_success_callback = IsGiven("on_success_callback")
    has_on_failure_callback = IsGiven("on_failure_callback")
    has_on_retry_callback = IsGiven("on_retry_callback")
    has_on_skipped_callback = IsGiven("on_skipped_callback")

    def get_closest_mapped_task_group(self) -> TaskGroup | None:
        """Airflow's name for `mapped_group`."""
        return self.mapped_group

    def unmap(self, resolve: Any) -> BaseOperator:
        """This task: it is not mapped. `resolve` has no effect."""
        return self

    def get_direct_relatives(self, upstream: bool = False) -> list[BaseOperator]:
        return self.upstream_list if upstream else self.downstream_list

    def get_direct_relative_ids(self, upstream: bool = False) -> set[str]:
        return self.upstream_task_ids if upstream else self.downstream_task_ids

    def get_flat_relatives(self, upstream: bool = False) -> list[BaseOperator]:
        """All downstream tasks (all upstream tasks, with `upstream`), near ones first, each once."""
        return list(reachable((self,), upstream).values())

    def get_flat_relative_ids(self, upstream: bool = False) -> set[str]:
        return {task.task_id for task in self.get_flat_relatives(upstream)}

    # --- inlets and outlets -------------------------------------------------------------------------------------------

    def add_inlets(self, inlets: Iterable[Any]) -> None:
        self.inlets = [*self.inlets, *inlets]

    def add_outlets(self, outlets: Iterable[Any]) -> None:
        self.outlets = [*self.outlets, *outlets]

    def get_inlet_defs(self) -> list[Any]:
        return list(self.inlets)

    def get_outlet_defs(self) -> list[Any]:
        return list(self.outlets)

    # --- setup and teardown -------------------------------------------------------------------------------------------

    @setup_teardown.OfInstanceOrClass
    def as_setup(self) -> Self:
        """Make this task a setup: its downstream tasks need it, and clearing one of them also clears the setup."""
        setup_teardown.mark_setup(self)
        return self

    @setup_teardown.OfInstanceOrClass
    def as_teardown(self, *, setups: Any = None, on_failure_fail_dagrun: Any = NOTSET) -> Self:
        """Make this task a teardown: it runs if one of its setups succeeded, whatever the states of the tasks in between.

        Args:
            setups: the setups of this teardown, one or several. They are marked as setups and become upstream tasks.
            on_failure_fail_dagrun: a failure of the teardown fails the run. By default teardowns do not affect the run's state.
        """
        setup_teardown.mark_teardown(self, setups, on_failure_fail_dagrun)
        return self

    def __enter__(self) -> setup_teardown.Scope:
        """Open the `with` block of a setup or teardown."""
        return setup_teardown.open_scope(self)

    def __exit__(self, kind: object, *more: object) -> None:
        setup_teardown.close_scope(kind is not None)

    # --- in a running task --------------------------------------------------------------------------------------------

    @property
    def log(self) -> logging.Logger:
        """The task's logger. Operators of provider packages log under Airflow's names. Tests replace it by setting `_log`."""
        replaced = self._cached_logger or self._log
        if replaced is not None:
            return replaced
        cls = type(self)
        name = f"{cls.__module__}.{cls.__qualname__}"
        if name.startswith("airflow."):
            return logging.getLogger(f"airflow.task.operators.{self.logger_name or name}")
        return logging.getLogger(self.logger_name or f"tradewind.task.operators.{name}")

    @staticmethod
    def xcom_push(context: Any, key: str, value: Any, **ignored: Any) -> None:
        """Push a value. Same as `context["ti"].xcom_push(key=…, value=…)`."""
        if ignored:
            raise UnknownArgument(f"xcom_push takes no argument {next(iter(ignored))!r}")
        context["ti"].xcom_push(key=key, value=value)

    @staticmethod
    def xcom_pull(context: Any, task_ids: Any = None, dag_id: str | None = None, key: str = "return_value", **more: Any) -> Any:
        """Pull values. Same as `context["ti"].xcom_pull(…)`."""
        return context["ti"].xcom_pull(task_ids=task_ids, dag_id=dag_id, key=key, **more)

    # --- mapping ------------------------------------------------------------------------------------------------------

    @classmethod
    def partial(cls, **kwargs: Any) -> OperatorPartial:
        """Set the arguments that all instances of a mapped task share: `Operator.partial(task_id=…).expand(x=[1, 2, 3])`."""
        # lazy import: mapping.py imports this module
        from tradewind.sdk.mapping import OperatorPartial

        return OperatorPartial(cls, kwargs)

    # --- internals ----------------------------------------------------------------------------------------------------

    def add_xcom_dependencies(self) -> None:
        """Add a dependency on every task whose result is used in a templated field. Calling this again changes nothing."""
        if self._is_copy:
            return
        state = self.__dict__
        for name in self.template_fields:
            value = state.get(name)
            # most values are strings and numbers, which contain no XComArg
            if value is None or type(value) is str:
                continue
            for upstream in referenced_operators(value):
                if upstream is not self:
                    link(upstream, self)

    def copy_for(self, dag: DAG) -> Self:
        """A copy without dependencies and group, for another DAG object (see `DAG.partial_subset`)."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        copied._dag = dag
        copied._upstream = copied._downstream = None
        copied._is_copy = True
        return copied

    def prepare_for_execution(self) -> Self:
        """A copy of the task, for tests that execute it themselves."""
        return copy.copy(self)

    def __lt__(self, other: object) -> bool:
        """Tasks are ordered by their ids, as in Airflow: `sorted(dag.tasks)`."""
        return self.task_id < other.task_id if isinstance(other, BaseOperator) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self.task_id <= other.task_id if isinstance(other, BaseOperator) else NotImplemented

    def __gt__(self, other: object) -> bool:
        """Like `<`. In a DAG file, `a > b` is nearly always a typing error for `a >> b`, so the author is warned."""
        if not isinstance(other, BaseOperator):
            return NotImplemented
        meant = f"{self.task_id} >> {other.task_id}"
        message = english(phrase("warning_compared_tasks", task=self.task_id, other=other.task_id, meant=meant))
        open_dags.warn_author(message, dag=self._dag)
        return self.task_id > other.task_id

    def __ge__(self, other: object) -> bool:
        return self.task_id >= other.task_id if isinstance(other, BaseOperator) else NotImplemented

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """The task with copies of its arguments; of those in `shallow_copy_attrs` only the outermost object is copied.

        Operators of packages (google) call it in their own `__deepcopy__`.
        """
        found = object.__new__(type(self))
        memo[id(self)] = found
        for name, value in vars(self).items():
            found.__dict__[name] = copy.copy(value) if name in self.shallow_copy_attrs else copy.deepcopy(value, memo)
        return found

    def __repr__(self) -> str:
        return f"<Task({self.task_type}): {self.__dict__.get('task_id')}>"


def _base_signature() -> inspect.Signature:
    """The signature of `BaseOperator.__init__` for tools: every argument by name instead of `**arguments`."""
    plain = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("self", "task_id")]
    named = [name for name in (*OWN_ARGUMENTS, *READERS, *NOT_SUPPORTED) if name != "task_id"]
    defaults = {name: getattr(BaseOperator, name, None) for name in READERS if name not in ("pre_execute", "post_execute")}
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature([*plain, *(inspect.Parameter(n, keyword, default=defaults.get(n)) for n in named)])


def _wrap_base() -> None:
    init_parameters = InitParameters(BaseOperator.__init__)
    init_parameters.names = KNOWN_ARGUMENTS
    wrap_init(BaseOperator, init_parameters)
    BaseOperator.__init__.__signature__ = _base_signature()  # type: ignore[attr-defined]


_wrap_base()
