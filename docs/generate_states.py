"""Writes `reference/states.md` from the transition tables, so that the pictures cannot drift from the code.

python docs/generate_states.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from tradewind.model.states import (
    FAILURES,
    FINISHED,
    OCCUPYING,
    RUN_TRANSITIONS,
    SCHEDULABLE,
    TASK_TRANSITIONS,
    RunState,
    TaskState,
)

S = TypeVar("S", bound=StrEnum)

PAGE = Path(__file__).parent / "reference" / "states.md"

TASK_MEANINGS: dict[TaskState, str] = {
    TaskState.NONE: "Not examined yet, or its dependencies are not met. Airflow's clients see `null`.",
    TaskState.SCHEDULED: "Its dependencies are met; it waits for a slot.",
    TaskState.QUEUED: "It has a slot and was handed to an executor under a new fence.",
    TaskState.RUNNING: "A worker started the attempt, and the start was accepted.",
    TaskState.SUCCESS: "The task did its work (or has nothing to do).",
    TaskState.FAILED: "It failed and is not tried again.",
    TaskState.SKIPPED: "It was not wanted: by its own word, by a branch, by its trigger rule or by the end of the run.",
    TaskState.UPSTREAM_FAILED: "It never started, because tasks before it failed.",
    TaskState.REMOVED: "It does not belong to this run: the task is gone from the DAG, or its own dates exclude the run.",
    TaskState.UP_FOR_RETRY: "It failed and will be tried again when its retry delay is over.",
    TaskState.UP_FOR_RESCHEDULE: "A sensor gave its slot back and will look again later, within the same try.",
    TaskState.DEFERRED: "It waits without a process and without a slot: for a trigger, a moment, or tasks of other DAGs.",
    TaskState.AWAITING_INPUT: "It gave its slot back and waits for a person's answer.",
    TaskState.RESTARTING: "It was cleared while an attempt lives; that attempt is stopped first.",
}

RUN_MEANINGS: dict[RunState, str] = {
    RunState.QUEUED: "Created; it waits until its DAG may have one more active run.",
    RunState.RUNNING: "Its task instances are being decided.",
    RunState.SUCCESS: "No task instance is unfinished, and none of those that decide has failed.",
    RunState.FAILED: "One that decides has failed, nothing could move any more, or it took too long.",
}


def diagram(transitions: Mapping[S, Iterable[S]], wanted: Callable[[S, S], bool]) -> Iterator[str]:
    """A Mermaid state diagram of the wanted steps, in the order of the states."""
    yield "```mermaid"
    yield "stateDiagram-v2"
    order = list(transitions)
    for before in order:
        for after in sorted(transitions[before], key=order.index):
            if wanted(before, after):
                yield f"    {before.value} --> {after.value}"
    yield "```"
    yield ""


def table(transitions: Mapping[S, Iterable[S]], meanings: Mapping[S, str]) -> Iterator[str]:
    """Every state, what it means, and every state that may follow."""
    yield "| state | means | may become |"
    yield "| --- | --- | --- |"
    order = list(transitions)
    for state in order:
        following = ", ".join(f"`{after.value}`" for after in sorted(transitions[state], key=order.index))
        yield f"| `{state.value}` | {meanings[state]} | {following} |"
    yield ""


def names(states: Iterable[TaskState]) -> str:
    """In the order of their codes."""
    return ", ".join(f"`{state.value}`" for state in TaskState if state in frozenset(states))


def page() -> str:
    """The whole page."""
    lines = [
        "# States of runs and task instances",
        "",
        "<!-- Written by docs/generate_states.py from model/states.py. Edit those, then run `python docs/generate_states.py`. -->",
        "",
        "Every write to a task instance names the state it expects; a step that is not listed here cannot be written. The names",
        "are Airflow's.",
        "",
        "## Task instances",
        "",
        *table(TASK_TRANSITIONS, TASK_MEANINGS),
        f"- *Finished*: {names(FINISHED)}. *Failures* among them: {names(FAILURES)}.",
        f"- *Occupying*: {names(OCCUPYING)}. An attempt exists: it holds its pool slots and counts against every limit.",
        f"- *Schedulable*: {names(SCHEDULABLE)}. The trigger rule is examined in these.",
        "",
        "### On the way",
        "",
        "Steps between unfinished states.",
        "",
        *diagram(TASK_TRANSITIONS, lambda before, after: before not in FINISHED and after not in FINISHED),
        "### To an end",
        "",
        "Steps into finished states. A living attempt that is taken away like this is fenced off and stopped: its result does not",
        "count any more.",
        "",
        *diagram(TASK_TRANSITIONS, lambda before, after: before not in FINISHED and after in FINISHED),
        "### After the end",
        "",
        "A person clears it or marks it. Besides that, a branch or `fail_fast` may make `skipped` of `upstream_failed`.",
        "",
        *diagram(TASK_TRANSITIONS, lambda before, after: before in FINISHED),
        "## Runs",
        "",
        *table(RUN_TRANSITIONS, RUN_MEANINGS),
        *diagram(RUN_TRANSITIONS, lambda before, after: True),
    ]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
