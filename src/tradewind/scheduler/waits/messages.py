"""Sentences about waits, for lists, logs and the journal of a task instance."""

from __future__ import annotations

from tradewind.model.moments import iso
from tradewind.model.waits import NEVER_BY_ITSELF, MomentWait, TriggerWait, Wait, tasks_waits


def kind_of(wait: Wait) -> str:
    """Return the kind of a wait: `tasks`, `moment` or `trigger`."""
    return "trigger" if isinstance(wait, TriggerWait) else "moment" if isinstance(wait, MomentWait) else "tasks"


def describe(wait: Wait) -> str:
    """Return what a wait is for, as the end of a sentence that begins with "it waits for"."""
    if isinstance(wait, TriggerWait):
        return f"its trigger {wait.classpath.rpartition('.')[2]} to fire"
    if isinstance(wait, MomentWait):
        return f"{iso(wait.at)}" if wait.at < NEVER_BY_ITSELF else "its timeout"
    return "; ".join(f"{one.described()} to be {' or '.join(one.allowed)} ({one.shown_runs()})" for one in tasks_waits(wait))
