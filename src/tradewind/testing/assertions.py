"""Assertions on runs. The message of a failed assertion shows the expected value and a small table of the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradewind.model.errors import NotFound, did_you_mean
from tradewind.testing.results import TestedRun

_LOG_LINES = 12


def state_of(run: TestedRun, task_id: str | None = None, map_index: int = -1) -> str:
    """The state of a task (for a mapped task: of one instance), or of the run. Raises NotFound for an unknown task."""
    return (run.state if task_id is None else run.task(task_id, map_index).state).value


def xcom_of(run: TestedRun, task_id: str, key: str = "return_value", default: Any = None) -> Any:
    """The XCom of a task under a key; for a mapped task, the list of the XComs of its instances.

    Raises NotFound for an unknown task.
    """
    run.instances_of(task_id)
    return run.xcom(task_id, key, default)


def rendered(run: TestedRun, task_id: str, field: str | None = None, map_index: int | None = None) -> Any:
    """The template fields of the last attempt of a task after rendering; or one of them.

    Raises:
        NotFound: there is no such task or field, or the task never ran.
    """
    attempts = run.attempts_of(task_id, map_index)
    if not attempts:
        raise NotFound(f"task {task_id!r} never ran: it is {run.instances_of(task_id)[0].state.value}")
    fields = attempts[-1].rendered
    if field is None:
        return fields
    if field not in fields:
        raise NotFound(f"task {task_id!r} has no template field {field!r}.{did_you_mean(field, fields)}")
    return fields[field]


def log_of(run: TestedRun, task_id: str, map_index: int | None = None) -> str:
    """Everything that the attempts of a task printed and logged. Raises NotFound for an unknown task."""
    return "".join(attempt.log for attempt in run.attempts_of(task_id, map_index))


def assert_states(run: TestedRun, expected: Mapping[str, str] | None = None, /, **more: str) -> None:
    """Check that each named task has the given state: `assert_states(run, fetch="success", {"group.load": "skipped"})`."""
    wanted = {**(expected or {}), **more}
    actual = {task_id: state_of(run, task_id) for task_id in wanted}
    wrong = [f"{name} is {actual[name]}, not {wanted[name]}" for name in wanted if actual[name] != wanted[name]]
    if wrong:
        raise AssertionError(_with_table("; ".join(wrong), run))


def assert_run(run: TestedRun, state: str = "success") -> None:
    """Check that the run ended in this state."""
    if run.state != state:
        raise AssertionError(_with_table(f"the run is {run.state.value}, not {state}", run, failed_logs=True))


def assert_xcom(run: TestedRun, task_id: str, expected: Any, key: str = "return_value") -> None:
    """Check the XCom of a task."""
    actual = xcom_of(run, task_id, key)
    if actual != expected:
        raise AssertionError(_with_table(f"the XCom {key!r} of {task_id} is {actual!r}, not {expected!r}", run))


def assert_rendered(run: TestedRun, task_id: str, /, **fields: Any) -> None:
    """Check the values of template fields of a task after rendering."""
    actual = {name: rendered(run, task_id, name) for name in fields}
    wrong = [f"{task_id}.{name} is {actual[name]!r}, not {fields[name]!r}" for name in fields if actual[name] != fields[name]]
    if wrong:
        raise AssertionError(_with_table("; ".join(wrong), run))


def _with_table(sentence: str, run: TestedRun, *, failed_logs: bool = False) -> str:
    lines = [sentence, "", *run.table()]
    for task in run.tasks.values() if failed_logs else ():
        log = log_of(run, task.task_id).splitlines() if task.state.value == "failed" else []
        if log:
            lines += ["", f"log of {task.task_id}:", *log[-_LOG_LINES:]]
    return "\n".join(lines)
