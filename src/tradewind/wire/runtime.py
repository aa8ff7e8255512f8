"""The port through which user code reaches the rest of Tradewind while it runs.

A runner installs an implementation that speaks to the worker host; `dag.test()` installs one that reads the in-memory
store; a parse child one that asks its parser for variables and connections and refuses the rest with a sentence. User code never
holds a database connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from tradewind.model.errors import TradewindError
from tradewind.wire.messages import (
    GetAsset,
    GetAssetEvents,
    GetConnection,
    GetPreviousRun,
    GetTaskStates,
    GetVariable,
    MaskSecrets,
    RunnerAnswer,
    SetVariable,
    TriggerRun,
    XComPull,
)

Question = (
    XComPull
    | GetVariable
    | SetVariable
    | GetConnection
    | GetTaskStates
    | GetPreviousRun
    | TriggerRun
    | GetAssetEvents
    | GetAsset
    | MaskSecrets
)


class Runtime(Protocol):
    """Answers questions of user code. `op` of a question is 0; the implementation numbers it."""

    def ask(self, question: Question) -> RunnerAnswer:
        """One request, one answer (`XComs`, `Value` or `Failure`). Blocks; bounded by the implementation's deadline."""

    def read_spill(self, name: str) -> bytes:
        """The bytes of a value that was too large to be kept inline."""


class NoRuntime(TradewindError):
    """Asked for a variable, a connection or an XCom where no task is running."""


class _Absent:
    def ask(self, question: Question) -> RunnerAnswer:
        raise NoRuntime(
            f"{type(question).__name__} was asked while no task is running, where no scheduler can answer. Here there are only "
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
    """Does this process carry out a task that somebody answers?"""
    return _current is not _ABSENT


def install(runtime: Runtime | None) -> None:
    """Set the runtime of this process; None removes it. Called by runners and test kits only."""
    global _current
    _current = runtime if runtime is not None else _ABSENT


def ask(question: Question) -> Any:
    return _current.ask(question)


@contextmanager
def installed(own: Runtime) -> Iterator[None]:
    """User code of this process asks `own`; afterwards whomever it asked before."""
    before = current()
    install(own)
    try:
        yield
    finally:
        install(before)
