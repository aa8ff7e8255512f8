"""Variables, connections and runs that a DAG file requests while it is imported.

    parse child ──GetVariable, GetConnection, …──▶ parser ──own connection──▶ scheduler, which answers as it answers a task

A child has no credentials and no connection to the scheduler. It has a connection to its parser, which forwards only
`Lookup`s: requests that change nothing. Secret values that a file has received are masked in everything that is stored or shown
about reading it.

If the scheduler is not reachable, this is not an error of the file: the request fails, the result of the reading is ignored, and
the file is read again when the scheduler is reachable.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from tradewind.model.secret_mask import SecretMask, secrets_of_environment
from tradewind.model.secret_names import secrets_in
from tradewind.observe.log import Log
from tradewind.parser.parse_result import ChildReport, Problem
from tradewind.wire.connection import Connection
from tradewind.wire.messages import Failure, Lookup, RunnerAnswer, RunnerRequest, Value, decode_request, encode

if TYPE_CHECKING:
    from tradewind.platform.loop import Loop

log = Log("parse")

SendLookup = Callable[[Lookup, Callable[[RunnerAnswer | None], None]], None]
"""Sends a request to the scheduler and calls back with the answer. None: the scheduler is not reachable."""

SCHEDULER_NOT_REACHABLE = "the scheduler is not reachable; the file is read again when it is"


class ChildLookups:
    """In the parser: the requests of one child process.

    Args:
        link: the parser's end of the connection.
    """

    def __init__(self, link: socket.socket, loop: Loop, look_up: SendLookup) -> None:
        self._look_up = look_up
        self._connection = Connection(link, loop, self._on_message, lambda connection: None)
        self._open = 0
        self._has_unanswered = False
        self._mask = SecretMask(secrets_of_environment(os.environ))

    def is_unanswered(self, timed_out: bool) -> bool:
        """True if a request had no answer because the scheduler was not reachable, or if the child timed out waiting for one."""
        return self._has_unanswered or (timed_out and self._open > 0)

    def close(self) -> None:
        self._connection.close()

    def _on_message(self, connection: Connection, document: bytes) -> None:
        try:
            request: RunnerRequest = decode_request(document)
        except msgspec.MsgspecError as error:
            log.warning("a parse child sent a message that cannot be decoded", why=str(error))
            connection.close()
            return
        if not isinstance(request, Lookup):
            connection.send(
                encode(Failure(request.op, "a DAG file may read only variables, connections and runs while it is imported"))
            )
            return
        op = request.op
        self._open += 1
        self._look_up(request, lambda answer: self._answered(op, answer))

    def _answered(self, op: int, answer: RunnerAnswer | None) -> None:
        self._open -= 1
        if answer is None:
            self._has_unanswered = True
            answer = Failure(op, SCHEDULER_NOT_REACHABLE)
        if isinstance(answer, Value):
            self._mask = self._mask.plus(secrets_in(answer.value, answer.secret))
        self._connection.send(encode(msgspec.structs.replace(answer, op=op)))

    # --- secrets ----------------------------------------------------------------------------------------------------------

    def masked(self, text: str) -> str:
        """The text without the secrets that the child has received, and without those of the environment."""
        return self._mask.text(text)

    def without_secrets(self, report: ChildReport) -> ChildReport:
        """The report with masked problems. Definitions stay unchanged, because their author put the value into the DAG."""
        if not self._mask:
            return report
        return msgspec.structs.replace(report, problems=tuple(self._clean(problem) for problem in report.problems))

    def _clean(self, problem: Problem) -> Problem:
        return Problem(self.masked(problem.message), self.masked(problem.stack_trace), problem.line)
