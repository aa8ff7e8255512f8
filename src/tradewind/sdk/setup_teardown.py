"""Setups and teardowns as authors write them: `as_setup`, `as_teardown`, `@setup`, `@teardown`, and blocks.

    with make_cluster >> delete_cluster:
        work()

A block of a setup or teardown task opens both ends: the tasks made inside come after the setup and before the teardown, where
they have no other task before or after them.
"""

from __future__ import annotations

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


_NO_RULE = f"its trigger rule is always {TriggerRule.ALL_DONE_SETUP_SUCCESS.value}"

# --- marks ------------------------------------------------------------------------------------------------------------


def mark_setup(task: BaseOperator) -> None:
    """Make `task` a setup.

    Raises:
        DefinitionError: it is a teardown.
    """
    if task.is_teardown:
        raise DefinitionError(f"{task._called()} is a teardown and cannot be a setup, too")
    task.is_setup = True


def mark_teardown(task: BaseOperator, setups: Any = None, on_failure_fail_dagrun: Any = NOTSET) -> None:
    """Make `task` a teardown, of `setups` when given: one or several tasks or results of tasks, which become setups.

    Raises:
        DefinitionError: it is a setup.
    """
    if task.is_setup:
        raise DefinitionError(f"{task._called()} is a setup and cannot be a teardown, too")
    task.is_teardown = True
    task.trigger_rule = TriggerRule.ALL_DONE_SETUP_SUCCESS
    if on_failure_fail_dagrun is not NOTSET:
        task.on_failure_fail_dagrun = bool(on_failure_fail_dagrun)
    for one in _tasks(setups):
        mark_setup(one)
        link(one, task)


def _tasks(nodes: Any) -> Iterator[BaseOperator]:
    """The tasks that a node, or a list of nodes, stands for."""
    if nodes is None:
        return
    if isinstance(nodes, Node):
        yield from nodes.leaves
    elif isinstance(nodes, Iterable) and not isinstance(nodes, str):
        for one in nodes:
            yield from _tasks(one)
    else:
        raise DefinitionError(f"setups has {nodes!r}; it must be a task, the result of a @task function, or a list of these")


def needed(dag: DAG, chosen: Collection[str]) -> set[str]:
    """The setups that the chosen tasks are or lie behind, with their teardowns.

    A task lies behind a setup when it is below it, and above a teardown of it if it has any.
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


def check(dag: DAG) -> None:
    """Raises DefinitionError where setups and teardowns cannot do what they are for."""
    for task in dag.task_dict.values():
        if task.is_teardown and task.trigger_rule != TriggerRule.ALL_DONE_SETUP_SUCCESS:
            raise DefinitionError(dag.fault(f"task {task.task_id!r} is a teardown: {_NO_RULE}, not {task.trigger_rule}"))
        if not task.is_setup:
            continue
        for after in task.downstream_list:
            if not after.is_teardown and after.trigger_rule != TriggerRule.ALL_SUCCESS:
                raise DefinitionError(
                    dag.fault(
                        f"task {after.task_id!r} stands directly after the setup {task.task_id!r}, so its trigger rule must be "
                        f"all_success, not {after.trigger_rule}"
                    )
                )


# --- blocks -----------------------------------------------------------------------------------------------------------


class Scope:
    """An open block: the setups and teardowns around it, and the tasks made inside."""

    open: ClassVar[list[Scope]] = []
    """Innermost last."""

    def __init__(self, tasks: list[BaseOperator]) -> None:
        if not tasks or not (all(task.is_setup for task in tasks) or all(task.is_teardown for task in tasks)):
            named = ", ".join(task.task_id for task in tasks)
            raise DefinitionError(
                f"only setups, or only teardowns, can open a `with` block, not {named or 'nothing'}; mark a task with "
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
        """Take in tasks that were made before the block."""
        for task in _tasks(tasks):
            if task not in self.inside:
                self.inside.append(task)

    def join(self) -> None:
        """Draw the arrows from the setups into the block, and out of it to the teardowns."""
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
    """Begin the block of a setup or teardown, or of several."""
    scope = Scope(list(_tasks(nodes)))
    Scope.open.append(scope)
    return scope


def close_scope(failed: bool) -> None:
    """End the innermost block; without arrows where an error left it."""
    scope = Scope.open.pop()
    if not failed:
        scope.join()


def note_made(task: BaseOperator) -> None:
    """A task was made: it belongs to the innermost block."""
    if Scope.open:
        Scope.open[-1].inside.append(task)


class context_wrapper:
    """`with context_wrapper([setup1, setup2]):` is the block of several setups, or of several teardowns."""

    def __init__(self, tasks: Iterable[Node]) -> None:
        self._tasks = list(tasks)

    def __enter__(self) -> Scope:
        return open_scope(self._tasks)

    def __exit__(self, kind: object, *more: object) -> None:
        close_scope(kind is not None)


# --- decorators -------------------------------------------------------------------------------------------------------


def _as_task(function: Any, mark: str) -> Any:
    # lazy door: decorators.py needs operators, which need this module
    from tradewind.sdk.decorators import TaskFunction, TaskGroupFunction, task

    if isinstance(function, TaskGroupFunction):
        raise DefinitionError(f"@{mark} stands above a task, not above a task group")
    return function if isinstance(function, TaskFunction) else task(function)


def setup(function: Callable[..., Any]) -> Any:
    """Make a function, or what is a `@task` already, a setup."""
    made = _as_task(function, "setup")
    made.is_setup = True
    return made


@overload
def teardown(function: Callable[..., Any]) -> Any: ...
@overload
def teardown(*, on_failure_fail_dagrun: bool = False) -> Callable[[Callable[..., Any]], Any]: ...


def teardown(function: Callable[..., Any] | None = None, *, on_failure_fail_dagrun: bool = False) -> Any:
    """Make a function, or what is a `@task` already, a teardown."""

    def mark(function: Callable[..., Any]) -> Any:
        made = _as_task(function, "teardown")
        if made.kwargs.get("trigger_rule") is not None:
            raise DefinitionError(f"@teardown {made.task_id!r}: {_NO_RULE}; leave trigger_rule out")
        made.is_teardown = True
        made.on_failure_fail_dagrun = on_failure_fail_dagrun
        return made

    return mark if function is None else mark(function)
