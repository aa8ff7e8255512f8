"""Sentences about waits, for lists, logs and the journal of a task instance."""

from __future__ import annotations

from tradewind.kernel.step_causes import ONLY_WAITS
from tradewind.model.moments import iso
from tradewind.model.phrases import english, phrase
from tradewind.model.waits import NEVER_BY_ITSELF, InputWait, MomentWait, TriggerWait, Wait, tasks_waits


def kind_of(wait: Wait) -> str:
    """Return the kind of a wait: `tasks`, `moment`, `trigger` or `input`."""
    if isinstance(wait, InputWait):
        return "input"
    return "trigger" if isinstance(wait, TriggerWait) else "moment" if isinstance(wait, MomentWait) else "tasks"


def describe(wait: Wait) -> str:
    """Return the object of a wait, as the end of a sentence that begins with "it waits for"."""
    if isinstance(wait, TriggerWait):
        return english(phrase("cause_trigger", trigger=wait.classpath.rpartition(".")[2]))
    if isinstance(wait, InputWait):
        return english(phrase("cause_person", subject=repr(shortened(wait.subject))))
    if isinstance(wait, MomentWait):
        return f"{iso(wait.at)}" if wait.at < NEVER_BY_ITSELF else english(phrase("cause_its_timeout"))
    return "; ".join(f"{one.described()} to be {' or '.join(one.allowed)} ({one.shown_runs()})" for one in tasks_waits(wait))


def waiting_cause(cause: str, wait: Wait) -> str:
    """Return the cause of a step into a waiting state without an attempt, for the journal. `cause`: why the task may begin."""
    if cause == ONLY_WAITS:
        return english(phrase("cause_only_waits_for", what=describe(wait)))
    return f"{cause}: {describe(wait)}"


SUBJECT_MAX = 100
"""Maximum length of a question's subject in a sentence, characters."""


def shortened(subject: str) -> str:
    """Return the subject of a question on one line, cut to `SUBJECT_MAX` characters."""
    text = " ".join(subject.split())
    return text if len(text) <= SUBJECT_MAX else text[: SUBJECT_MAX - 1] + "…"
