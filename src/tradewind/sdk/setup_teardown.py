"""Setup and teardown tasks: `as_setup`, `as_teardown`, `@setup`, `@teardown`, and `with` blocks.

    with make_cluster >> delete_cluster:
        work()

In such a block, tasks without an upstream task in the block become downstream of the setup, and tasks without a downstream task in
the block become upstream of the teardown.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, overload

from tradewind.model.errors import DefinitionError
from tradewind.model.states import TriggerRule
from tradewind.sdk.dependencies import Node, link
from tradewind.sdk.graph import reachable
from tradewind.sdk.params import NOTSET

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG
    from tradewind.sdk.operator import BaseOperator


_FIXED_RULE = f"its trigger rule is always {TriggerRule.ALL_DONE_SETUP_SUCCESS.value}"

# --- marking tasks ----------------------------------------------------------------------------------------------------


def mark_setup(task: BaseOperator) -> None:
    """Make `task` a setup.

    Raises:
        DefinitionError: the task is a teardown.
    """
    if task.is_teardown:
        raise DefinitionError(f"{task._name_in_errors()} is a teardown; it cannot also be a setup")
    task.is_setup = True


def mark_teardown(task: BaseOperator, setups: Any = None, on_failure_fail_dagrun: Any = NOTSET) -> None:
    """Make `task` a teardown. `setups`: its setups, as one task or a list; they are marked as setups.

    Raises:
        DefinitionError: the task is a setup.
    """
    if task.is_setup:
        raise DefinitionError(f"{task._name_in_errors()} is a setup; it cannot also be a teardown")
    task.is_teardown = True
    task.trigger_rule = TriggerRule.ALL_DONE_SETUP_SUCCESS
    if on_failure_fail_dagrun is not NOTSET:
        task.on_failure_fail_dagrun = bool(on_failure_fail_dagrun)
    for one in _tasks(setups):
        mark_setup(one)
        link(one, task)


class OfInstanceOrClass:
    """A method of an operator that a class has, too, as in Airflow 2.6: `BashOperator.as_setup(task_id=…)` makes a task and calls
    the method. Arguments that are not the method's own go to the class.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        functools.update_wrapper(self, method)  # type: ignore[arg-type]
        self._method = method
        self._own = frozenset(inspect.signature(method).parameters)

    def __get__(self, task: Any, cls: Any) -> Callable[..., Any]:
        return functools.partial(self._make_task, cls) if task is None else functools.partial(self._method, task)

    def _make_task(self, cls: Any, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], cls):  # BaseOperator.as_setup(task)
            return self._method(*args, **kwargs)
        own = {name: kwargs.pop(name) for name in self._own & kwargs.keys()}
        return self._method(cls(*args, **kwargs), **own)


def _tasks(nodes: Any) -> Iterator[BaseOperator]:
    """The tasks of a node or of a (nested) list of nodes."""
    if nodes is None:
        return
    if isinstance(nodes, Node):
        yield from nodes.leaves
    elif isinstance(nodes, Iterable) and not isinstance(nodes, str):
        for one in nodes:
            yield from _tasks(one)
    else:
        raise DefinitionError(f"setups has {nodes!r}; it must be a task, the result of a @task function, or a list of these")


def required_by(dag: DAG, chosen: Collection[str]) -> set[str]:
    """Ids of the setups that the chosen tasks need, with their teardowns. Chosen setups are included.

    A task needs a setup if it is downstream of the setup and, where the setup has teardowns, upstream of one of them.
    """
    found: set[str] = set()
    for setup in (task for task in dag.task_dict.values() if task.is_setup):
        ends = [end for end in setup.downstream_list if end.is_teardown]
        region = set(reachable((setup,)))
        if ends:
            region.intersection_update(reachable(ends, upstream=True))
        work = (dag.task_dict[task_id] for task_id in region.intersection(chosen))
        if setup.task_id in chosen or any(not task.is_setup and not task.is_teardown for task in work):
            found.update(task.task_id for task in (setup, *ends))
    return found


def validate(dag: DAG) -> None:
    """Check the trigger rules of teardowns and of tasks directly after setups. Raises DefinitionError."""
    for task in dag.task_dict.values():
        if task.is_teardown and task.trigger_rule != TriggerRule.ALL_DONE_SETUP_SUCCESS:
            raise DefinitionError(
                dag.located_message(f"task {task.task_id!r} is a teardown: {_FIXED_RULE}, not {task.trigger_rule}")
            )
        if not task.is_setup:
            continue
        for after in task.downstream_list:
            if not after.is_teardown and after.trigger_rule != TriggerRule.ALL_SUCCESS:
                raise DefinitionError(
                    dag.located_message(
                        f"task {after.task_id!r} is directly downstream of the setup {task.task_id!r}, so its trigger rule must be "
                        f"all_success, not {after.trigger_rule}"
                    )
                )


# --- with blocks ------------------------------------------------------------------------------------------------------


class Scope:
    """An open `with` block: its setups and teardowns, and the tasks created inside."""

    open: ClassVar[list[Scope]] = []
    """Open scopes, innermost last."""

    def __init__(self, tasks: list[BaseOperator]) -> None:
        if not tasks or not (all(task.is_setup for task in tasks) or all(task.is_teardown for task in tasks)):
            named = ", ".join(task.task_id for task in tasks)
            raise DefinitionError(
                f"a `with` block needs only setups or only teardowns, not {named or 'nothing'}; mark a task with "
                "as_setup() or as_teardown()"
            )
        if tasks[0].is_setup:
            self.setups = tasks
            self.teardowns = [task for task in tasks[0].downstream_list if task.is_teardown]
        else:
            self.teardowns = tasks
            self.setups = [task for task in tasks[0].upstream_list if task.is_setup]
        self.inside: list[BaseOperator] = []

    def add_task(self, *tasks: Node) -> None:
        """Add tasks that were created before the block."""
        for task in _tasks(tasks):
            if task not in self.inside:
                self.inside.append(task)

    def add_dependencies(self) -> None:
        """Connect the setups with the first tasks of the block, and the last tasks of the block with the teardowns."""
        work = [task for task in self.inside if task not in self.setups and task not in self.teardowns]
        first = [task for task in work if not task.is_teardown]
        last = [task for task in work if not task.is_setup]
        for task in [task for task in first if not task.upstream_list] or first[:1]:
            for setup in self.setups:
                link(setup, task)
        for task in [task for task in last if not task.downstream_list] or last[-1:]:
            for teardown in self.teardowns:
                link(task, teardown)


def open_scope(nodes: Any) -> Scope:
    """Open the `with` block of setups or of teardowns."""
    scope = Scope(list(_tasks(nodes)))
    Scope.open.append(scope)
    return scope


def close_scope(failed: bool) -> None:
    """Close the innermost block. If an error ended the block, no dependencies are added."""
    scope = Scope.open.pop()
    if not failed:
        scope.add_dependencies()


def add_to_open_scope(task: BaseOperator) -> None:
    """Add a new task to the innermost open block, if there is one."""
    if Scope.open:
        Scope.open[-1].inside.append(task)


class context_wrapper:
    """`with context_wrapper([setup1, setup2]):` opens the block of several setups, or of several teardowns."""

    def __init__(self, tasks: Iterable[Node]) -> None:
        self._tasks = list(tasks)

    def __enter__(self) -> Scope:
        return open_scope(self._tasks)

    def __exit__(self, kind: object, *more: object) -> None:
        close_scope(kind is not None)


# --- decorators -------------------------------------------------------------------------------------------------------


def _as_task(function: Any, mark: str) -> Any:
    # lazy import: decorators.py imports operators, and operators import this module
    from tradewind.sdk.decorators import TaskFunction, TaskGroupFunction, task

    if isinstance(function, TaskGroupFunction):
        raise DefinitionError(f"@{mark} can decorate a task, not a task group")
    return function if isinstance(function, TaskFunction) else task(function)


def setup(function: Callable[..., Any]) -> Any:
    """Decorator that makes a function, or a `@task` function, a setup."""
    made = _as_task(function, "setup")
    made.is_setup = True
    return made


@overload
def teardown(function: Callable[..., Any]) -> Any: ...
@overload
def teardown(*, on_failure_fail_dagrun: bool = False) -> Callable[[Callable[..., Any]], Any]: ...


def teardown(function: Callable[..., Any] | None = None, *, on_failure_fail_dagrun: bool = False) -> Any:
    """Decorator that makes a function, or a `@task` function, a teardown."""

    def mark(function: Callable[..., Any]) -> Any:
        made = _as_task(function, "teardown")
        if made.kwargs.get("trigger_rule") is not None:
            raise DefinitionError(f"@teardown {made.task_id!r}: {_FIXED_RULE}; remove the argument trigger_rule")
        made.is_teardown = True
        made.on_failure_fail_dagrun = on_failure_fail_dagrun
        return made

    return mark if function is None else mark(function)
