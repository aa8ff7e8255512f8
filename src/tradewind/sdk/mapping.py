"""Dynamic task mapping for authors: `Operator.partial(…).expand(…)`, `@task` functions and task groups mapped over lists.

A `MappedOperator` stands in the DAG for a task whose number of instances is known only while the DAG runs. The scheduler needs
to know only what it expands over (`ExpandInput.sources`); in the process of one instance it becomes the real operator, with the
arguments of its own map index (`unmap`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tradewind.model.errors import DefinitionError, UnknownArgument, did_you_mean
from tradewind.sdk.arguments import KNOWN
from tradewind.sdk.default_args import Takes, accepted_names, place_of
from tradewind.sdk.dependencies import link
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.xcom_arg import PromisedList, ResolveMixin, element, promised, referenced_operators

if TYPE_CHECKING:
    from tradewind.model.definition import MapSource
    from tradewind.sdk.taskgroup import TaskGroup


# --- what is expanded over --------------------------------------------------------------------------------------------


class ExpandInput:
    """The lists behind one mapped task or group, and what one map index gets of them."""

    def sources(self) -> tuple[MapSource, ...]:
        """What the scheduler has to know of them."""
        raise NotImplementedError

    def iter_references(self) -> Iterator[BaseOperator]:
        """Tasks whose results occur in them."""
        raise NotImplementedError

    def values(self, context: Mapping[str, Any], index: int) -> dict[str, Any]:
        """The arguments of one map index."""
        raise NotImplementedError

    def length(self, context: Mapping[str, Any]) -> int:
        """How many instances there are."""
        raise NotImplementedError


class DictOfLists(ExpandInput):
    """`expand(a=[…], b=[…])`: the cross product; the last argument varies fastest."""

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
            raise AirflowException(
                f"expand_kwargs() needs a list of dictionaries of arguments; its element {index} is {found!r}"
            )
        return {name: value.resolve(context) if isinstance(value, ResolveMixin) else value for name, value in found.items()}

    def length(self, context: Mapping[str, Any]) -> int:
        return len(_items(self.dicts, context))


def _source(value: Any) -> MapSource:
    # lazy door: definitions bring msgspec, and only mapped tasks need them here
    from tradewind.model.definition import MapLiteral

    return value.source() if isinstance(value, PromisedList) else MapLiteral(len(value))


def _items(value: Any, context: Mapping[str, Any]) -> Sequence[Any]:
    """What a list, a dictionary or a promised list holds; a dictionary holds pairs of key and value."""
    if isinstance(value, PromisedList):
        return promised(value, context)
    return list(value.items()) if isinstance(value, dict) else value


def dict_of_lists(what: str, lists: Mapping[str, Any]) -> DictOfLists:
    """Raises TypeError for what nothing can be mapped over, DefinitionError for a result under a key of its own."""
    if not lists:
        raise TypeError(f"{what}.expand() needs at least one argument to map over, such as {what}.expand(x=[1, 2, 3])")
    for name, value in lists.items():
        _check_list(f"{what}.expand({name}=…)", value)
    return DictOfLists(lists)


def list_of_dicts(what: str, dicts: Any) -> ListOfDicts:
    """Raises as `dict_of_lists` does."""
    _check_list(f"{what}.expand_kwargs(…)", dicts)
    if isinstance(dicts, dict):
        raise TypeError(f"{what}.expand_kwargs(…) takes a list of dictionaries, not one dictionary")
    if not isinstance(dicts, PromisedList):
        for one in dicts:
            if not isinstance(one, Mapping | ResolveMixin):
                raise TypeError(f"{what}.expand_kwargs(…) takes a list of dictionaries; {one!r} is none")
    return ListOfDicts(dicts)


def _check_list(what: str, value: Any) -> None:
    if isinstance(value, PromisedList):
        value.source()
    elif isinstance(value, ResolveMixin) or not isinstance(value, Sequence | dict) or isinstance(value, str | bytes):
        raise TypeError(
            f"{what}: {value!r} cannot be mapped over; give a list, a dictionary, or the result of a task that returns one"
        )


class MappedArgument(ResolveMixin):
    """An argument of a mapped task group: inside the group it stands for the value of the own map index."""

    def __init__(self, given: ExpandInput, name: str) -> None:
        self._given = given
        self._name = name

    def iter_references(self) -> Iterator[BaseOperator]:
        yield from self._given.iter_references()

    def resolve(self, context: Mapping[str, Any]) -> Any:
        values = self._given.values(context, context["ti"].map_index)
        if self._name not in values:
            raise AirflowException(
                f"the mapped task group's argument {self._name!r} is not among what it was expanded with: {', '.join(values)}"
            )
        return values[self._name]

    def __repr__(self) -> str:
        return f"MappedArgument({self._name!r})"


# --- a mapped task ----------------------------------------------------------------------------------------------------


class MappedOperator(BaseOperator):
    """A task with as many instances as its lists have elements.

    Args:
        real: the class of its instances.
        partial: arguments that all of them get; those that every operator takes hold for the mapped task, too.
        given: what it expands over.
        into: the argument that takes the mapped values as a dictionary (`op_kwargs`); None: they are arguments themselves.
    """

    def __init__(
        self, *, real: type[BaseOperator], partial: Mapping[str, Any], given: ExpandInput, into: str | None, **common: Any
    ) -> None:
        self.real = real
        self.partial_kwargs = dict(partial)
        self.expand_input = given
        self.into = into
        self._instance: BaseOperator | None = None
        self.template_fields = real.template_fields
        for name in _ATTRIBUTES:
            if getattr(real, name, None) is not getattr(BaseOperator, name, None):
                setattr(self, name, getattr(real, name))
        super().__init__(**common)
        around = self.mapped_group
        if around is not None:
            raise DefinitionError(
                f"{self._called()} is in the mapped task group {around.group_id!r}: a mapped task inside a mapped group is not "
                "possible, as in Airflow. Map one of the two, or make the list flat before"
            )
        self.dag.note_mapped_over(self.expand_input.sources())

    @property
    def operator_class(self) -> type[BaseOperator]:
        return self.real

    @property
    def task_type(self) -> str:
        return self.real.__name__

    @property
    def operator_name(self) -> str:
        return self.custom_operator_name or self.real.__name__

    def draw_xcom_edges(self) -> None:
        if self._is_copy:
            return
        templated = [value for name, value in self.partial_kwargs.items() if name in self.real.template_fields]
        for upstream in (*referenced_operators(templated), *self.expand_input.iter_references()):
            if upstream is not self:
                link(upstream, self)

    def warm_up(self) -> None:
        """Nothing can be known before the map index is."""

    def on_kill(self) -> None:
        if self._instance is not None:
            self._instance.on_kill()

    def unmap(self, context: Mapping[str, Any]) -> BaseOperator:
        """The real operator of one map index, outside of any DAG's lists but with this task's place.

        Mapped values are taken as they are: they are not rendered.
        """
        if context["ti"].map_index < 0:
            raise AirflowException(f"{self._called()} is mapped: only one of its map indexes can be run")
        values = self.expand_input.values(context, context["ti"].map_index)
        arguments = dict(self.partial_kwargs)
        if self.into is not None:
            twice = arguments.get(self.into, {}).keys() & values.keys()
            arguments[self.into] = {**arguments.get(self.into, {}), **values}
        else:
            twice = arguments.keys() & values.keys()
            arguments.update(values)
        if twice:
            raise AirflowException(f"{self._called()}: {', '.join(sorted(twice))} is given by partial() and by expand_kwargs()")
        instance = self.real.__new__(self.real)
        instance._is_copy = True
        arguments["task_id"] = self.label
        arguments["default_args"] = self._defaults(arguments.pop("default_args", None))
        arguments.pop("dag", None)
        arguments.pop("task_group", None)
        instance.__init__(**arguments)  # type: ignore[misc]
        instance.task_id, instance._dag, instance.task_group = self.task_id, self._dag, self.task_group
        instance._upstream, instance._downstream = self._upstream, self._downstream
        _spare(instance, self.into, tuple(values))
        self._instance = instance
        return instance

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
"""What an operator class may fix for all its tasks."""


def _spare(instance: BaseOperator, into: str | None, names: tuple[str, ...]) -> None:
    """Rendering leaves the mapped values alone."""

    def render_template_fields(context: Any, jinja_env: Any = None) -> None:
        whole = type(instance).render_template_fields
        if into is None:
            fields = instance.template_fields
            instance.template_fields = tuple(name for name in fields if name not in names)
            try:
                whole(instance, context, jinja_env)
            finally:
                instance.template_fields = fields
            return
        taken: dict[str, Any] = getattr(instance, into)
        setattr(instance, into, {name: value for name, value in taken.items() if name not in names})
        whole(instance, context, jinja_env)
        getattr(instance, into).update({name: taken[name] for name in names})

    instance.render_template_fields = render_template_fields  # type: ignore[method-assign]


# --- partial ----------------------------------------------------------------------------------------------------------


class OperatorPartial:
    """`Operator.partial(task_id=…, …)`: call `expand` or `expand_kwargs` on it."""

    def __init__(self, real: type[BaseOperator], arguments: Mapping[str, Any]) -> None:
        self.real = real
        self.arguments = dict(arguments)
        if "task_id" not in self.arguments:
            raise TypeError(f"{real.__name__}.partial() needs the argument task_id")
        self._check(self.arguments, "partial")

    def expand(self, **lists: Any) -> MappedOperator:
        """One task instance for each element of the cross product of these lists."""
        self._check(lists, "expand")
        for name in ("task_id", "dag", "task_group", "trigger_rule", "retries", "pool", "queue"):
            if name in lists:
                raise TypeError(f"{self._what}.expand({name}=…): {name} is the same for all instances; give it to partial()")
        twice = self.arguments.keys() & lists.keys()
        if twice:
            raise TypeError(f"{self._what}: {', '.join(sorted(twice))} is given to partial() and to expand()")
        given = dict_of_lists(self._what, lists)
        takes = self.real.__dict__.get("_takes") or self.real._takes
        self._check_complete(takes, lists)
        return self._mapped(given)

    def expand_kwargs(self, kwargs: Any, *, strict: bool = True) -> MappedOperator:
        """One task instance for each dictionary of arguments."""
        given = list_of_dicts(self._what, kwargs)
        if strict and not isinstance(kwargs, PromisedList):
            for one in kwargs:
                if isinstance(one, Mapping):
                    self._check(one, "expand_kwargs")
        return self._mapped(given)

    @property
    def _what(self) -> str:
        return f"{self.real.__name__}.partial(task_id={self.arguments['task_id']!r})"

    def _check(self, names: Mapping[str, Any], where: str) -> None:
        known = accepted_names(self.real)
        for name in names:
            if name not in known:
                raise UnknownArgument(
                    f"{self._what}: {where}() was given {name!r}, which no {self.real.__name__} takes."
                    f"{did_you_mean(name, known)}"
                )

    def _check_complete(self, takes: Takes, lists: Mapping[str, Any]) -> None:
        dag, group = place_of(self.arguments.get("dag"), self.arguments.get("task_group"))
        defaults = {**(dag.default_args if dag else {}), **(group.default_args if group else {})}
        missing = takes.required - self.arguments.keys() - lists.keys() - defaults.keys()
        if missing:
            raise TypeError(
                f"{self._what}: the argument {', '.join(sorted(missing))} is missing; give it to partial() or expand()"
            )

    def _mapped(self, given: ExpandInput) -> MappedOperator:
        return make_mapped(self.real, self.arguments, given, None)


def make_mapped(real: type[BaseOperator], partial: Mapping[str, Any], given: ExpandInput, into: str | None) -> MappedOperator:
    """The mapped task, in the DAG that is open or that `partial` names."""
    common = {name: value for name, value in partial.items() if name in KNOWN}
    return MappedOperator(real=real, partial=partial, given=given, into=into, **common)


def fill_group(group: TaskGroup, given: ExpandInput, fill: Callable[[], Any]) -> Any:
    """Make a new task group a mapped one and run the function that fills it; its roots then wait for the lists."""
    around = group.parent_group
    while around is not None:
        if around.expand_input is not None:
            raise DefinitionError(
                f"the task group {group.group_id!r} is in the mapped task group {around.group_id!r}: a mapped group "
                "inside a mapped group is not possible, as in Airflow"
            )
        around = around.parent_group
    group.expand_input = given
    group.dag.note_mapped_over(given.sources())
    with group:
        result = fill()
    for task in group.get_roots():
        for provider in given.iter_references():
            link(provider, task)
    return result
