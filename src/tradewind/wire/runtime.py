"""The interface through which running user code reads and writes data of Tradewind.

A task process installs an implementation that asks the worker host. `dag.test()` installs one that reads the in-memory store. A
parse child installs one that asks the parser for variables and connections and refuses other questions with a sentence. User code
never has a connection to the database.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from tradewind.model.errors import TradewindError
from tradewind.wire.messages import (
    ChangeRows,
    FindRuns,
    GetAsset,
    GetAssetEvents,
    GetConnection,
    GetPreviousRun,
    GetStateEntry,
    GetTaskStates,
    GetVariable,
    ListRows,
    MaskSecrets,
    RunnerAnswer,
    SetStateEntry,
    SetVariable,
    TriggerRun,
    XComPull,
)

Question = (
    XComPull
    | GetVariable
    | SetVariable
    | ChangeRows
    | GetConnection
    | GetTaskStates
    | GetPreviousRun
    | FindRuns
    | ListRows
    | TriggerRun
    | GetAssetEvents
    | GetAsset
    | GetStateEntry
    | SetStateEntry
    | MaskSecrets
)


class Runtime(Protocol):
    """Answers questions of user code. The `op` of a question is 0; the implementation sets its number."""

    def ask(self, question: Question) -> RunnerAnswer:
        """Answer a question: `XComs`, `Value` or `Failure`. Blocks at most until its deadline."""

    def read_spill(self, name: str) -> bytes:
        """The bytes of an XCom that is too large for the database."""


class NoRuntime(TradewindError):
    """A variable, a connection or an XCom was read while no task is running."""


class _Absent:
    def ask(self, question: Question) -> RunnerAnswer:
        raise NoRuntime(
            f"{type(question).__name__} was called while no task is running, so no scheduler can answer. Here there are only "
            "the variables and connections of the environment (TRADEWIND_VAR_NAME, TRADEWIND_CONN_ID), and in tests those of "
            "fake_variables and fake_connections; or read them inside a task, or in a template like {{ var.value.name }}."
        )

    def read_spill(self, name: str) -> bytes:
        raise NoRuntime("no task is running")


_ABSENT = _Absent()
_current: Runtime = _ABSENT


def current() -> Runtime:
    """The runtime of this process."""
    return _current


def is_installed() -> bool:
    """Whether a runtime is installed in this process."""
    return _current is not _ABSENT


def is_local() -> bool:
    """Whether no deployment answers: no runtime is installed, or a runtime that has only values of a test (its `local` is true)."""
    return _current is _ABSENT or bool(getattr(_current, "local", False))


def install(runtime: Runtime | None) -> None:
    """Set the runtime of this process; None removes it. Only task processes and the test kit call this."""
    global _current
    _current = runtime if runtime is not None else _ABSENT


def ask(question: Question) -> Any:
    return _current.ask(question)


@contextmanager
def installed(own: Runtime) -> Iterator[None]:
    """Use `own` as the runtime of this process; at the end restore the previous one."""
    before = current()
    install(own)
    try:
        yield
    finally:
        install(before)
