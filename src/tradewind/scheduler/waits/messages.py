"""A wait in words, for people: lists, logs, the history of a task."""

from __future__ import annotations

from tradewind.model.moments import iso
from tradewind.model.waits import NEVER_BY_ITSELF, MomentWait, TriggerWait, Wait, tasks_waits


def kind_of(wait: Wait) -> str:
    """`tasks`, `moment` or `trigger`."""
    return "trigger" if isinstance(wait, TriggerWait) else "moment" if isinstance(wait, MomentWait) else "tasks"


def describe(wait: Wait) -> str:
    """For people: what is waited for."""
    if isinstance(wait, TriggerWait):
        return f"its trigger {wait.classpath.rpartition('.')[2]} to fire"
    if isinstance(wait, MomentWait):
        return f"{iso(wait.at)}" if wait.at < NEVER_BY_ITSELF else "its timeout"
    return "; ".join(f"{one.described()} to be {' or '.join(one.allowed)} ({one.places()})" for one in tasks_waits(wait))
