"""Questions that a running task asks a person (human in the loop).

A question is sent to the scheduler together with the end of the attempt that asked it: the wait of the task instance and the
question are stored in one commit. So a question without a wait, or a wait without a question, cannot exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import msgspec

from tradewind.model.errors import DefinitionError, NotYetSupported
from tradewind.model.waits import InputWait

_questions: dict[str, InputWait] = {}
"""Id of the task instance → its question."""


def upsert_hitl_detail(
    ti_id: Any,
    options: Sequence[str],
    subject: str,
    body: str | None = None,
    defaults: Sequence[str] | None = None,
    multiple: bool = False,
    params: Mapping[str, Any] | None = None,
    assigned_users: Sequence[Mapping[str, str]] | None = None,
) -> None:
    """Ask a person. Afterwards the task has to raise `TaskAwaitingInput`. A second question replaces the first one.

    Args:
        ti_id: `id` of the running task instance.
        params: form field → `{value, description, schema}`, or its default.
        assigned_users: `{id, name}` of the people who may answer; empty: everybody who may edit the task instance.

    Raises:
        DefinitionError: the parameters are not JSON, or there are no options.
    """
    if not options:
        raise DefinitionError("the question has no options; give at least one")
    try:
        fields = msgspec.json.encode(dict(params or {}))
    except TypeError as error:
        raise DefinitionError(f"the form fields of the question are not JSON: {error}") from error
    users = tuple((str(user["id"]), str(user["name"])) for user in assigned_users or ())
    _questions[str(ti_id)] = InputWait(
        subject=str(subject),
        options=tuple(map(str, options)),
        body=None if body is None else str(body),
        defaults=None if defaults is None else tuple(map(str, defaults)),
        multiple=bool(multiple),
        params=fields,
        assigned_users=users,
    )


def take(ti_id: str) -> InputWait | None:
    """Return and forget the question that a task instance has asked."""
    return _questions.pop(ti_id, None)


def refuse(**_details: Any) -> NoReturn:
    """Raise an error. Replaces the functions with which Airflow's trigger polls for the answer.

    Raises:
        NotYetSupported: always.
    """
    raise NotYetSupported(
        "the scheduler itself continues a task when its question is answered; raise TaskAwaitingInput in place of polling for "
        "the answer"
    )
