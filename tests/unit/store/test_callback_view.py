"""Sentences about callbacks that are not done yet."""

from __future__ import annotations

import pytest

from tradewind.model.phrases import english
from tradewind.store.callback_view import CallbackView, failure


@pytest.mark.parametrize("parked", [False, True])
def test_the_problem_of_a_callback_ends_with_one_full_stop(parked: bool) -> None:
    view = CallbackView(
        id=16,
        what="email",
        place=0,
        dag_id="d",
        run_id="r",
        task_id="t",
        map_index=-1,
        tries=3,
        parked=parked,
        problem="there is no connection 'smtp_default'. Add it.",
        created_at="",
        due_at="",
        log="",
    )
    assert "Add it. Try it now: tradewind callbacks retry 16;" in english(failure(view))
