"""In a parse child: variables and connections for the file that is imported, asked of the parser. See `lookups`."""

from __future__ import annotations

import os

from tradewind.client.channel import Channel
from tradewind.wire import runtime
from tradewind.wire.messages import GetVariable, Lookup, RunnerAnswer


def name_of(question: Lookup) -> str:
    """`variable bucket`, `connection db`: as the scheduler names what has changed."""
    return f"variable {question.key}" if isinstance(question, GetVariable) else f"connection {question.conn_id}"


def _no_spills(name: str) -> bytes:
    """While a file is imported nothing is asked that could answer with a large XCom."""
    raise FileNotFoundError(name)


class ParsingRuntime:
    """The runtime of a process that imports a DAG file.

    Args:
        descriptor: blocking stream socket to the parser.
    """

    def __init__(self, descriptor: int) -> None:
        self.asked: dict[str, None] = {}
        """Names of what was asked for, in order."""
        self._channel = Channel(descriptor, _no_spills)
        self._pid = os.getpid()

    def ask(self, question: runtime.Question) -> RunnerAnswer:
        """The answer to a question about a variable or connection.

        Raises:
            NoRuntime: any other question; or it comes from a process that the file has forked.
            Unreachable: no answer came in time.
        """
        if not isinstance(question, Lookup):
            raise runtime.NoRuntime(
                f"{type(question).__name__} was asked while no task is running. A DAG file that is imported may read variables "
                "and connections; everything else belongs into a task."
            )
        if os.getpid() != self._pid:
            raise runtime.NoRuntime("variables and connections cannot be read in a process that a DAG file starts")
        self.asked[name_of(question)] = None
        return self._channel.ask(question)

    def read_spill(self, name: str) -> bytes:
        raise runtime.NoRuntime("no task is running")
