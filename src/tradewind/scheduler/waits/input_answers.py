"""Answers of people to the questions of tasks, and the defaults that are used if nobody answers in time. Pure.

The event that a task gets has the form of Airflow's `HITLTriggerEventSuccessPayload`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tradewind.model.moments import iso
from tradewind.model.phrases import english, phrase
from tradewind.model.rows import InputAnswer
from tradewind.model.waits import InputWait, TriggerEnd

_encode = msgspec.json.Encoder().encode

UNANSWERED = TriggerEnd(
    event=_encode({"error": "The timeout has passed, and nobody has answered.", "error_type": "timeout"}),
    reason=english(phrase("cause_nobody_answered")),
)
"""The end of a wait that has timed out, for a question without defaults: the task decides."""


def answered(answer: InputAnswer) -> TriggerEnd:
    """Return the end of a wait for an answer: the event with which its task continues."""
    user = None if answer.user_id is None else {"id": answer.user_id, "name": answer.user_name or answer.user_id}
    event = {
        "chosen_options": answer.chosen,
        "params_input": msgspec.Raw(answer.params),
        "responded_at": {"__type": "datetime", "__var": {"iso": iso(answer.at), "tz": "UTC"}},  # the form of XComs
        "responded_by_user": user,
        "timedout": user is None,
    }
    chosen = ", ".join(map(repr, answer.chosen))
    if user is None:
        reason = phrase("cause_default_answer", options=chosen)
    else:
        reason = phrase("cause_answered", user=user["name"], options=chosen)
    return TriggerEnd(event=_encode(event), reason=english(reason))


def default_answer(wait: InputWait, slot: int, fence: int, now: int) -> InputAnswer | None:
    """Return the answer that is used when the timeout of a question has passed; None: the question has no defaults."""
    if wait.defaults is None:
        return None
    params = {name: _default(param) for name, param in msgspec.json.decode(wait.params).items()}
    return InputAnswer(slot, fence, now, None, None, wait.defaults, _encode(params))


def _default(param: Any) -> Any:
    return param["value"] if isinstance(param, dict) and "value" in param else param
