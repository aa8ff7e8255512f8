"""In a parse child: variables and connections for the imported file, requested from the parser. See `lookups`."""

from __future__ import annotations

import os

from tradewind.client.channel import Channel
from tradewind.wire import runtime
from tradewind.wire.messages import GetVariable, Lookup, RunnerAnswer


def lookup_name(request: Lookup) -> str:
    """`variable bucket`, `connection db`: the names that the scheduler uses in its notices of changes."""
    return f"variable {request.key}" if isinstance(request, GetVariable) else f"connection {request.conn_id}"


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
        """Names of the requested variables and connections, in order."""
        self._channel = Channel(descriptor, _no_spills)
        self._pid = os.getpid()

    def ask(self, request: runtime.Question) -> RunnerAnswer:
        """The answer to a request for a variable or connection.

        Raises:
            NoRuntime: any other request, or a request from a process that the file has forked.
            Unreachable: no answer arrived in time.
        """
        if not isinstance(request, Lookup):
            raise runtime.NoRuntime(
                f"{type(request).__name__} was requested while no task is running. A DAG file may read only variables and "
                "connections while it is imported; everything else belongs in a task."
            )
        if os.getpid() != self._pid:
            raise runtime.NoRuntime("variables and connections cannot be read in a process that a DAG file starts")
        self.lookups[lookup_name(request)] = None
        return self._channel.ask(request)

    def read_spill(self, name: str) -> bytes:
        raise runtime.NoRuntime("no task is running")
