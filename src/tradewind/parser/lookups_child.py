"""In a parse child: variables, connections and runs for the imported file, requested from the parser. See `lookups`."""

from __future__ import annotations

import os

from tradewind.client.channel import Channel
from tradewind.sdk.open_dags import warn_author
from tradewind.wire import runtime
from tradewind.wire.messages import FindRuns, GetConnection, GetVariable, ListRows, Lookup, RunnerAnswer, SetVariable, Value

CHANGE = "change of variable "
"""Begins the note that a file changes a variable while it is imported."""


def lookup_name(request: Lookup) -> str:
    """`variable bucket`, `connection db`: the names that the scheduler uses in its notices of changes."""
    match request:
        case GetVariable():
            return f"variable {request.key}"
        case GetConnection():
            return f"connection {request.conn_id}"
        case ListRows():
            return f"list of {request.table}"
        case FindRuns():
            return f"runs of {request.dag_id}"


def _no_spills(name: str) -> bytes:
    """While a file is imported, no request is answered with a large XCom."""
    raise FileNotFoundError(name)


class ParsingRuntime:
    """The runtime of a process that imports a DAG file.

    Args:
        descriptor: blocking stream socket connected to the parser.
    """

    def __init__(self, descriptor: int) -> None:
        self.lookups: dict[str, None] = {}
        """Names of the requested variables, connections and runs, and of the variables that the file changes, in order."""
        self._written: dict[str, str | None] = {}
        """Variables that the file has set or deleted, which only this import sees."""
        self._channel = Channel(descriptor, _no_spills)
        self._pid = os.getpid()

    def ask(self, request: runtime.Question) -> RunnerAnswer:
        """The answer to a request for a variable, a connection or runs.

        A variable that the file sets is not stored: each reading of the file would store it again. The rest of the import reads the
        new value, and the file's DAGs get a warning.

        Raises:
            NoRuntime: any other request, or a request from a process that the file has forked.
            Unreachable: no answer arrived in time.
        """
        if isinstance(request, SetVariable):
            return self._write(request)
        if isinstance(request, GetVariable) and request.key in self._written:
            value = self._written[request.key]
            return Value(request.op, value is not None, value)
        if not isinstance(request, Lookup):
            raise runtime.NoRuntime(
                f"{type(request).__name__} was requested while no task is running. A DAG file may read only variables, "
                "connections and runs while it is imported; everything else belongs in a task."
            )
        if os.getpid() != self._pid:
            raise runtime.NoRuntime("variables, connections and runs cannot be read in a process that a DAG file starts")
        self.lookups[lookup_name(request)] = None
        return self._channel.ask(request)

    def _write(self, request: SetVariable) -> Value:
        verb = "deleted" if request.value is None else "set"
        warn_author(
            f"the variable {request.key!r} is {verb} at the top level of the file: nothing is stored, only this import sees it. "
            "Change variables in a task, or with `tradewind variables`"
        )
        self.lookups[f"{CHANGE}{request.key}"] = None
        self._written[request.key] = request.value
        return Value(request.op, True, None)

    def read_spill(self, name: str) -> bytes:
        raise runtime.NoRuntime("no task is running")
