"""Dynamic task mapping: `Operator.partial(…).expand(…)`, mapped `@task` functions and mapped task groups.

A `MappedOperator` is a task whose number of instances is known only while the DAG runs. The scheduler needs only the lists that the
task is mapped over (`ExpandInput.sources`). In the process of one instance, `unmap` creates the real operator with the arguments of
its map index.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tradewind.model.errors import DefinitionError, UnknownArgument, did_you_mean
from tradewind.model.operator_classes import class_name
from tradewind.sdk.arguments import KNOWN_ARGUMENTS
from tradewind.sdk.default_args import InitParameters, accepted_names, dag_and_group_of
from tradewind.sdk.dependencies import link
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.taskgroup import MappedTaskGroup, TaskGroup
from tradewind.sdk.xcom_arg import BaseXComArg, ResolveMixin, element, referenced_operators, resolved_items

if TYPE_CHECKING:
    from tradewind.model.definition import MapSource
    from tradewind.sdk.dag import DAG


# --- lists to map over ------------------------------------------------------------------------------------------------


class ExpandInput:
    """The lists that a task or task group is mapped over, and the values that one map index gets."""

    def sources(self) -> tuple[MapSource, ...]:
        """What the scheduler needs to compute the number of instances."""
        raise NotImplementedError

    def iter_references(self) -> Iterator[BaseOperator]:
        """The tasks whose results occur in the lists."""
        raise NotImplementedError

    def values(self, context: Mapping[str, Any], index: int) -> dict[str, Any]:
        """The arguments for one map index."""
        raise NotImplementedError

    def taken_as_they_are(self, index: int) -> frozenset[str]:
        """The arguments of one map index whose values come from other tasks. They are not rendered as templates."""
        raise NotImplementedError

    def length(self, context: Mapping[str, Any]) -> int:
        """The number of instances."""
        raise NotImplementedError


class DictOfLists(ExpandInput):
    """`expand(a=[…], b=[…])`: the cross product; the last argument changes fastest."""

    def __init__(self, lists: Mapping[str, Any]) -> None:
        self.lists = dict(lists)

    def sources(self) -> tuple[MapSource, ...]:
        return tuple(_source(value) for value in self.lists.values())

    def iter_references(self) -> Iterator[BaseOperator]:
        yield from referenced_operators(self.lists)

    def values(self, context: Mapping[str, Any], index: int) -> dict[str, Any]:
        lists = {name: _items(value, context) for name, value in self.lists.items()}
        found: dict[str, Any] = {}
        for name, items in reversed(lists.items()):
            index, place = divmod(index, len(items)) if len(lists) > 1 else (0, index)
            found[name] = element(items, place, context)
        return {name: found[name] for name in lists}

    def taken_as_they_are(self, index: int) -> frozenset[str]:
        return _from_tasks(self.lists)

    def length(self, context: Mapping[str, Any]) -> int:
        total = 1
        for value in self.lists.values():
            total *= len(_items(value, context))
        return total


class ListOfDicts(ExpandInput):
    """`expand_kwargs([{…}, {…}])`: one instance for each dictionary of arguments."""

    def __init__(self, dicts: Any) -> None:
        self.dicts = dicts

    def sources(self) -> tuple[MapSource, ...]:
        return (_source(self.dicts),)

    def iter_references(self) -> Iterator[BaseOperator]:
        yield from referenced_operators(self.dicts)

    def values(self, context: Mapping[str, Any], index: int) -> dict[str, Any]:
        found = element(_items(self.dicts, context), index, context)
        if not isinstance(found, Mapping) or not all(isinstance(name, str) for name in found):
            raise AirflowException(f"expand_kwargs() needs a list of dictionaries of arguments; element {index} is {found!r}")
        return {name: value.resolve(context) if isinstance(value, ResolveMixin) else value for name, value in found.items()}

    def taken_as_they_are(self, index: int) -> frozenset[str]:
        """As in Airflow, the plain values of dictionaries are rendered, even if a task has returned the dictionaries."""
        written = None if isinstance(self.dicts, BaseXComArg) else self.dicts[index]
        return _from_tasks(written) if isinstance(written, Mapping) else frozenset()

    def length(self, context: Mapping[str, Any]) -> int:
        return len(_items(self.dicts, context))


def _from_tasks(arguments: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(name for name, value in arguments.items() if isinstance(value, ResolveMixin))


def _source(value: Any) -> MapSource:
    # lazy import: definitions need msgspec, and only mapped tasks need them here
    from tradewind.model.definition import MapLiteral

    return value.source() if isinstance(value, BaseXComArg) else MapLiteral(len(value))


def _items(value: Any, context: Mapping[str, Any]) -> Sequence[Any]:
    """The elements of a list, the (key, value) pairs of a dictionary, or the elements of a future list."""
    if isinstance(value, BaseXComArg):
        return resolved_items(value, context)
    return list(value.items()) if isinstance(value, dict) else value


def check_dict_of_lists(label: str, lists: Mapping[str, Any]) -> DictOfLists:
    """Check the arguments of `expand()`. Raises TypeError or DefinitionError for a value that cannot be mapped over."""
    if not lists:
        raise TypeError(f"{label}.expand() needs at least one argument to map over, such as {label}.expand(x=[1, 2, 3])")
    for name, value in lists.items():
        _check_list(f"{label}.expand({name}=…)", value)
    return DictOfLists(lists)


def check_list_of_dicts(label: str, dicts: Any) -> ListOfDicts:
    """Check the argument of `expand_kwargs()`. Raises TypeError or DefinitionError for a value that cannot be mapped over."""
    _check_list(f"{label}.expand_kwargs(…)", dicts)
    if isinstance(dicts, dict):
        raise TypeError(f"{label}.expand_kwargs(…) needs a list of dictionaries, not one dictionary")
    if not isinstance(dicts, BaseXComArg):
        for one in dicts:
            if not isinstance(one, Mapping | ResolveMixin):
                raise TypeError(f"{label}.expand_kwargs(…) needs a list of dictionaries; {one!r} is not a dictionary")
    return ListOfDicts(dicts)


def _check_list(label: str, value: Any) -> None:
    if isinstance(value, BaseXComArg):
        value.source()
    elif isinstance(value, ResolveMixin) or not isinstance(value, Sequence | dict) or isinstance(value, str | bytes):
        raise TypeError(
            f"{label}: {value!r} cannot be mapped over; give a list, a dictionary, or the result of a task that returns one"
        )


class MappedArgument(ResolveMixin):
    """An argument of a mapped task group. For a task in the group, it is the value of the task's map index."""

    def __init__(self, expand_input: ExpandInput, name: str) -> None:
        self._expand_input = expand_input
        self._name = name

    def iter_references(self) -> Iterator[BaseOperator]:
        yield from self._expand_input.iter_references()

    def resolve(self, context: Mapping[str, Any]) -> Any:
        values = self._expand_input.values(context, context["ti"].map_index)
        if self._name not in values:
            raise AirflowException(
                f"the mapped task group was expanded without the argument {self._name!r}; it has {', '.join(values)}"
            )
        return values[self._name]

    def __repr__(self) -> str:
        return f"MappedArgument({self._name!r})"


# --- a mapped task ----------------------------------------------------------------------------------------------------


class MappedOperator(BaseOperator):
    """A task with one instance for each element of its lists.

    Args:
        instance_class: the operator class of the instances.
        partial: arguments that all instances share. Arguments that every operator accepts also apply to the mapped task itself.
        expand_input: the lists to map over.
        kwargs_argument: name of the argument that gets the mapped values as a dictionary (`op_kwargs`); None: each mapped value is
            an argument itself.
    """

    is_mapped = True

    def __init__(
        self,
        *,
        instance_class: type[BaseOperator],
        partial: Mapping[str, Any],
        expand_input: ExpandInput,
        kwargs_argument: str | None,
        **common: Any,
    ) -> None:
        self.instance_class = instance_class
        self.partial_kwargs = dict(partial)
        self.expand_input = expand_input
        self.kwargs_argument = kwargs_argument
        self._instance: BaseOperator | None = None
        self.template_fields = instance_class.template_fields
        for name in _ATTRIBUTES:
            if getattr(instance_class, name, None) is not getattr(BaseOperator, name, None):
                setattr(self, name, getattr(instance_class, name))
        super().__init__(**common)
        around = self.mapped_group
        if around is not None:
            raise DefinitionError(
                f"{self._name_in_errors()} is in the mapped task group {around.group_id!r}: a mapped task inside a mapped group is "
                "not possible, as in Airflow. Map only one of the two, or flatten the list in a task before"
            )

    def added_to_dag(self, dag: DAG) -> None:
        """Record the tasks over whose results this task is mapped."""
        dag.record_map_providers(self.expand_input.sources())

    @property
    def operator_class(self) -> type[BaseOperator]:
        return self.instance_class

    @property
    def task_type(self) -> str:
        return class_name(self.custom_operator_name) if self.custom_operator_name else self.instance_class.__name__

    def __repr__(self) -> str:
        return f"<Mapped({self.task_type}): {self.__dict__.get('task_id')}>"

    @property
    def operator_name(self) -> str:
        return self.custom_operator_name or self.instance_class.__name__

    def add_xcom_dependencies(self) -> None:
        if self._is_copy:
            return
        templated = [value for name, value in self.partial_kwargs.items() if name in self.instance_class.template_fields]
        for upstream in (*referenced_operators(templated), *self.expand_input.iter_references()):
            if upstream is not self:
                link(upstream, self)

    def warm_up(self) -> None:
        """Nothing can be computed before the map index is known."""

    def on_kill(self) -> None:
        if self._instance is not None:
            self._instance.on_kill()

    def unmap(self, resolve: Mapping[str, Any]) -> BaseOperator:
        """The real operator for one map index. It has this task's id, DAG and dependencies, but is not in the DAG's task list.

        Values that come from other tasks are not rendered.

        Args:
            resolve: the context of a task instance, or the mapped values themselves by argument name.
        """
        values, unrendered = self._mapped_values(resolve) if "ti" in resolve else (resolve, resolve.keys())
        arguments = dict(self.partial_kwargs)
        if self.kwargs_argument is not None:
            twice = arguments.get(self.kwargs_argument, {}).keys() & values.keys()
            arguments[self.kwargs_argument] = {**arguments.get(self.kwargs_argument, {}), **values}
        else:
            twice = arguments.keys() & values.keys()
            arguments.update(values)
        if twice:
            raise AirflowException(
                f"{self._name_in_errors()}: {', '.join(sorted(twice))} is given both to partial() and to expand_kwargs()"
            )
        instance = self.instance_class.__new__(self.instance_class)
        instance._is_copy = True
        instance._dag = self._dag
        arguments["task_id"] = self.id_in_group
        arguments["default_args"] = self._defaults(arguments.pop("default_args", None))
        arguments.pop("dag", None)
        arguments.pop("task_group", None)
        instance.__init__(**arguments)  # type: ignore[misc]
        instance.task_id, instance.task_group = self.task_id, self.task_group
        instance._upstream, instance._downstream = self._upstream, self._downstream
        if unrendered:
            _exclude_from_rendering(instance, self.kwargs_argument, tuple(name for name in values if name in unrendered))
        self._instance = instance
        return instance

    def _mapped_values(self, context: Mapping[str, Any]) -> tuple[Mapping[str, Any], Collection[str]]:
        """The mapped values for the map index of a task instance, and the names of those that are not rendered."""
        index = context["ti"].map_index
        if index < 0:
            raise AirflowException(f"{self._name_in_errors()} is mapped; give a map index to run one of its instances")
        return self.expand_input.values(context, index), self.expand_input.taken_as_they_are(index)

    def _defaults(self, own: Mapping[str, Any] | None) -> dict[str, Any]:
        group, dag = self.task_group, self._dag
        found = dict(dag.default_args) if dag is not None else {}
        found.update(group.default_args if group is not None else {})
        found.update(own or {})
        return found


_ATTRIBUTES = (
    *("template_ext", "template_fields_renderers", "operator_extra_links", "ui_color", "ui_fgcolor", "custom_operator_name"),
    *("pool", "pool_slots", "queue", "retries", "retry_delay", "execution_timeout", "priority_weight", "trigger_rule"),
    *("multiple_outputs", "do_xcom_push", "owner", "executor", "weight_rule"),
)
"""Attributes that an operator class may set for all its tasks."""


def _exclude_from_rendering(instance: BaseOperator, kwargs_argument: str | None, names: tuple[str, ...]) -> None:
    """Exclude some mapped values from rendering."""

    def render_template_fields(context: Any, jinja_env: Any = None) -> None:
        whole = type(instance).render_template_fields
        if kwargs_argument is None:
            fields = instance.template_fields
            instance.template_fields = tuple(name for name in fields if name not in names)
            try:
                whole(instance, context, jinja_env)
            finally:
                instance.template_fields = fields
            return
        taken: dict[str, Any] = getattr(instance, kwargs_argument)
        setattr(instance, kwargs_argument, {name: value for name, value in taken.items() if name not in names})
        whole(instance, context, jinja_env)
        getattr(instance, kwargs_argument).update({name: taken[name] for name in names})

    instance.render_template_fields = render_template_fields  # type: ignore[method-assign]


# --- partial() --------------------------------------------------------------------------------------------------------


class OperatorPartial:
    """`Operator.partial(task_id=…, …)`; call `expand` or `expand_kwargs` on it."""

    def __init__(self, instance_class: type[BaseOperator], arguments: Mapping[str, Any]) -> None:
        self.instance_class = instance_class
        self.arguments = dict(arguments)
        if "task_id" not in self.arguments:
            raise TypeError(f"{instance_class.__name__}.partial() needs the argument task_id")
        self._check(self.arguments, "partial")

    def expand(self, **lists: Any) -> MappedOperator:
        """Create the mapped task: one instance for each element of the cross product of the lists."""
        self._check(lists, "expand")
        for name in ("task_id", "dag", "task_group", "trigger_rule", "retries", "pool", "queue"):
            if name in lists:
                raise TypeError(
                    f"{self._label}.expand({name}=…): {name} must be the same for all instances; give it to partial()"
                )
        twice = self.arguments.keys() & lists.keys()
        if twice:
            raise TypeError(f"{self._label}: {', '.join(sorted(twice))} is given both to partial() and to expand()")
        expand_input = check_dict_of_lists(self._label, lists)
        init_parameters = self.instance_class.__dict__.get("_init_parameters") or self.instance_class._init_parameters
        self._check_complete(init_parameters, lists)
        return self._mapped(expand_input)

    def expand_kwargs(self, kwargs: Any, *, strict: bool = True) -> MappedOperator:
        """Create the mapped task: one instance for each dictionary of arguments."""
        expand_input = check_list_of_dicts(self._label, kwargs)
        if strict and not isinstance(kwargs, BaseXComArg):
            for one in kwargs:
                if isinstance(one, Mapping):
                    self._check(one, "expand_kwargs")
        return self._mapped(expand_input)

    @property
    def _label(self) -> str:
        return f"{self.instance_class.__name__}.partial(task_id={self.arguments['task_id']!r})"

    def _check(self, names: Mapping[str, Any], where: str) -> None:
        known = accepted_names(self.instance_class)
        for name in names:
            if name not in known:
                raise UnknownArgument(
                    f"{self._label}: {where}() got {name!r}, which {self.instance_class.__name__} does not accept."
                    f"{did_you_mean(name, known)}"
                )

    def _check_complete(self, init_parameters: InitParameters, lists: Mapping[str, Any]) -> None:
        dag, group = dag_and_group_of(self.arguments.get("dag"), self.arguments.get("task_group"))
        defaults = {**(dag.default_args if dag else {}), **(group.default_args if group else {})}
        missing = init_parameters.required - self.arguments.keys() - lists.keys() - defaults.keys()
        if missing:
            raise TypeError(
                f"{self._label}: the argument {', '.join(sorted(missing))} is missing; give it to partial() or expand()"
            )

    def _mapped(self, expand_input: ExpandInput) -> MappedOperator:
        return make_mapped(self.instance_class, self.arguments, expand_input, None)


def make_mapped(
    instance_class: type[BaseOperator], partial: Mapping[str, Any], expand_input: ExpandInput, kwargs_argument: str | None
) -> MappedOperator:
    """Create the mapped task, in the DAG that `partial` names or in the open DAG."""
    common = {name: value for name, value in partial.items() if name in KNOWN_ARGUMENTS}
    return MappedOperator(
        instance_class=instance_class, partial=partial, expand_input=expand_input, kwargs_argument=kwargs_argument, **common
    )


def fill_group(group: TaskGroup, expand_input: ExpandInput, fill: Callable[[], Any]) -> Any:
    """Make a new task group a mapped group and call the function that creates its tasks."""
    around = group.parent_group
    while around is not None:
        if around.expand_input is not None:
            raise DefinitionError(
                f"the task group {group.group_id!r} is in the mapped task group {around.group_id!r}: a mapped group inside a "
                "mapped group is not possible (Airflow 3 gives its tasks the values of other instances). Map only one of the two"
            )
        around = around.parent_group
    group.__class__ = MappedTaskGroup
    group.expand_input = expand_input
    group.dag.record_map_providers(expand_input.sources())
    with group:
        result = fill()
    for task in group.get_roots():
        for provider in expand_input.iter_references():
            link(provider, task)
    return result
