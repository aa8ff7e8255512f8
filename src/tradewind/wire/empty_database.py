"""The answers of a database that does not exist yet: there are no variables, connections, runs or rows."""

from __future__ import annotations

from tradewind.wire.messages import (
    Failure,
    FindRuns,
    GetConnection,
    GetVariable,
    ListRows,
    RunnerAnswer,
    SetVariable,
    Value,
    XComPull,
    XComs,
)
from tradewind.wire.runtime import NoRuntime, Question


def answer_from_nothing(question: Question) -> RunnerAnswer:
    """Answer a request like an empty database. Requests that change something, or that need a task, are answered by `Failure`."""
    match question:
        case XComPull():
            return XComs(question.op, ())
        case ListRows():
            return Value(question.op, True, [])
        case GetVariable() | GetConnection() | FindRuns():
            return Value(question.op, False, None)
        case _:
            return Failure(question.op, f"{type(question).__name__} is possible only inside a task")


class EmptyDatabase:
    """A runtime for importing DAG files without a scheduler (implements `runtime.Runtime`).

    If a file sets a variable, the files that are imported later can read it.
    """

    def __init__(self) -> None:
        self._variables: dict[str, str | None] = {}

    def ask(self, question: Question) -> RunnerAnswer:
        """Return the answer to a question; see `answer_from_nothing`."""
        if isinstance(question, SetVariable):
            found = self._variables.get(question.key) is not None
            self._variables[question.key] = question.value
            return Value(question.op, found, None)
        if isinstance(question, GetVariable) and (value := self._variables.get(question.key)) is not None:
            return Value(question.op, True, value)
        return answer_from_nothing(question)

    def read_spill(self, name: str) -> bytes:
        """Raises NoRuntime: there are no XComs."""
        raise NoRuntime(f"no task is running, so the file {name} of a large XCom cannot be read")
