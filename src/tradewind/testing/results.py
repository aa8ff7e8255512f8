"""What runs, tasks and attempts of a test came to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from tradewind.execution.xcom_codec import decode_xcom
from tradewind.model.errors import NotFound, did_you_mean
from tradewind.model.moments import SECOND
from tradewind.model.rows import JournalEntry, RunRow
from tradewind.model.states import TASK_STATES, Outcome, RunState, TaskState
from tradewind.model.waits import Deferral, TriggerWait
from tradewind.store.memory import MemoryStore


@dataclass(frozen=True, slots=True)
class TestedWait:
    """What a task that deferred itself waits for."""

    trigger: str | None
    """Import path of the trigger's class; None: the scheduler waits, see `deferral`."""
    trigger_kwargs: dict[str, Any]
    method: str | None
    """With which it goes on."""
    kwargs: dict[str, Any]
    """More arguments of the method."""
    deferral: Deferral
    """All of it."""

    __test__ = False

    @classmethod
    def of(cls, deferral: Deferral) -> TestedWait:
        wait = deferral.wait
        path, arguments = (wait.classpath, decode_xcom(wait.kwargs)) if isinstance(wait, TriggerWait) else (None, {})
        return cls(path, arguments, deferral.method, decode_xcom(deferral.kwargs), deferral)


@dataclass(frozen=True, slots=True)
class TestedAttempt:
    """One attempt at a task."""

    task_id: str
    map_index: int
    """-1 where the task is not mapped."""
    try_number: int
    started: datetime
    ended: datetime
    outcome: Outcome
    """What it reported, whether or not that counted."""
    reason: str | None
    rendered: dict[str, Any]
    """Template field → its rendered value, as the task left it."""
    log: str
    """What it printed and logged."""
    stopped: bool = False
    """It was stopped before its end; what it reported did not count."""
    left: TaskState | None = None
    """The state in which it left its task: success, failed, up_for_retry …"""
    waits: TestedWait | None = None
    """What it waits for, where it deferred itself."""

    __test__ = False


@dataclass(frozen=True, slots=True)
class TestedTask:
    """What a task came to."""

    task_id: str
    state: TaskState
    try_number: int
    seconds: float | None
    """Its last attempt; None when it never ran."""
    reason: str | None
    """Why it is in this state, in a sentence."""
    map_index: int = -1

    __test__ = False


@dataclass(frozen=True, slots=True)
class TestedRun:
    """What a run came to. States compare with Airflow's texts: `run.state == "success"`."""

    row: RunRow
    tasks: dict[str, TestedTask]
    """By task id, an instance of a mapped task by `task_id[map index]`; in the author's order."""
    store: MemoryStore
    """All that happened: `store.journal(run.row.id)`, `store.attempts_of_run(run.row.id)`."""
    attempts: list[TestedAttempt] = field(default_factory=list)
    """In the order of their ends."""

    __test__ = False

    @property
    def state(self) -> RunState:
        return self.row.state

    @property
    def run_id(self) -> str:
        return self.row.run_id

    @property
    def dag_id(self) -> str:
        return self.row.dag_id

    def get_state(self) -> RunState:
        return self.row.state

    def get_task_instance(self, task_id: str, map_index: int = -1) -> TestedTask | None:
        return self.tasks.get(_named(task_id, map_index))

    def get_task_instances(self) -> list[TestedTask]:
        return list(self.tasks.values())

    def task(self, task_id: str, map_index: int = -1) -> TestedTask:
        """Raises NotFound with the nearest id."""
        name = _named(task_id, map_index)
        if name not in self.tasks:
            raise NotFound(f"DAG {self.dag_id!r} has no task {name!r}.{did_you_mean(name, self.tasks)}")
        return self.tasks[name]

    def instances_of(self, task_id: str) -> list[TestedTask]:
        """Every instance of a task, by map index. Raises NotFound with the nearest id."""
        found = [task for task in self.tasks.values() if task.task_id == task_id]
        return found or [self.task(task_id)]

    def attempts_of(self, task_id: str, map_index: int | None = None) -> list[TestedAttempt]:
        """Every attempt at a task, or at one instance of a mapped one. Raises NotFound."""
        self.instances_of(task_id)
        return [one for one in self.attempts if one.task_id == task_id and map_index in (None, one.map_index)]

    def xcom(self, task_id: str, key: str = "return_value", default: Any = None) -> Any:
        """What a task pushed; of a mapped one, the list of what its instances did."""
        found = self.store.xcoms(self.row.id, [task_id], key)
        if any(index >= 0 for _, index, *_ in found):
            return [decode_xcom(data) for _, _, data, _ in found]
        return decode_xcom(found[0][2]) if found else default

    def table(self, only_task: str | None = None) -> list[str]:
        """A line for each task: id, state, seconds, and the reason where it is no success; then the run.

        Args:
            only_task: nothing but the lines of this task.
        """
        told = {name: task for name, task in self.tasks.items() if only_task in (None, task.task_id)}
        width = max((len(name) for name in told), default=4)
        lines = []
        for name, task in told.items():
            took = "" if task.seconds is None else f"{task.seconds:.2f} s"
            why = "" if task.state is TaskState.SUCCESS else f"  {task.reason or ''}"
            lines.append(f"{name:<{width}}  {task.state.value:<15}  {took:>9}{why}".rstrip())
        return lines if only_task is not None else [*lines, f"{self.dag_id} {self.run_id}: {self.state.value}"]


def _named(task_id: str, map_index: int) -> str:
    return task_id if map_index < 0 else f"{task_id}[{map_index}]"


def tested_run(store: MemoryStore, row: RunRow, attempts: list[TestedAttempt]) -> TestedRun:
    """What the store says of a run."""
    snapshot = store.snapshot(row.id)
    assert snapshot is not None
    causes = {entry.slot: entry.cause for entry in store.journal(row.id)}
    spans = {
        attempt.slot: (attempt.ended_at - attempt.started_at) / SECOND
        for attempt in store.attempts_of_run(row.id)
        if attempt.started_at is not None and attempt.ended_at is not None
    }
    places = {one.slot: (one.task_id, one.map_index) for one in snapshot.rows}
    order = {task.task_id: number for number, task in enumerate(store.definition(row.version).tasks)}
    tasks = {}
    for one in sorted(snapshot.rows, key=lambda one: (order[one.task_id], one.map_index)):
        reason = one.reason or causes.get(one.slot)
        tasks[_named(one.task_id, one.map_index)] = TestedTask(
            one.task_id, TASK_STATES[one.state], one.try_number, spans.get(one.slot), reason, one.map_index
        )
    return TestedRun(row, tasks, store, _with_states(store.journal(row.id), places, attempts))


def _with_states(
    journal: list[JournalEntry], places: dict[int, tuple[str, int]], attempts: list[TestedAttempt]
) -> list[TestedAttempt]:
    """Each attempt with the state it left: the first one of a task instance is the first time that this stopped running."""
    left: dict[tuple[str, int], list[TaskState]] = {}
    for entry in journal:
        if entry.before == TaskState.RUNNING.code:
            left.setdefault(places[entry.slot], []).append(TASK_STATES[entry.after])
    states = {instance: iter(found) for instance, found in left.items()}
    return [replace(one, left=next(states[one.task_id, one.map_index], None)) for one in attempts]
