"""The answers of a database that does not exist yet."""

from __future__ import annotations

import pytest

from tradewind.wire.empty_database import answer_from_nothing
from tradewind.wire.messages import Failure, FindRuns, GetVariable, ListRows, SetVariable, Value
from tradewind.wire.runtime import Question


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (GetVariable(7, "bucket"), Value(7, False, None)),
        (FindRuns(7, "etl"), Value(7, False, None)),
        (ListRows(7, "dag"), Value(7, True, [])),
        (SetVariable(7, "bucket", "b"), Failure(7, "SetVariable is possible only inside a task")),
    ],
)
def test_there_is_nothing_to_read(question: Question, answer: object) -> None:
    assert answer_from_nothing(question) == answer
