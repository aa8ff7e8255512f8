"""What a DAG file asks while it is imported: stored variables and connections.

    parse child ──GetVariable, GetConnection──▶ parser ──over its own line──▶ scheduler, which answers as it answers a task

A child holds no credentials and no line to the scheduler: it has one to its parser, which passes on these two questions and
nothing else. What a file was told as a secret is masked in everything that is kept or shown of its reading.

A scheduler that is away is nobody's mistake: the child is told so, the reading counts for nothing, and the file is read again when
the scheduler is back.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from tradewind.model.secret_mask import SecretMask, secrets_of_environment
from tradewind.model.secret_names import told_secrets
from tradewind.observe.log import Log
from tradewind.parser.parse_result import ChildReport, Problem
from tradewind.wire.connection import Connection
from tradewind.wire.messages import Failure, Lookup, RunnerAnswer, RunnerRequest, Value, decode_request, encode

if TYPE_CHECKING:
    from tradewind.platform.loop import Loop

log = Log("parse")

AskScheduler = Callable[[Lookup, Callable[[RunnerAnswer | None], None]], None]
"""Puts a question to the scheduler and calls back with its answer; None: the scheduler is away."""

AWAY = "the scheduler is away; the file is read again when it is back"


class Conversation:
    """In the parser: what one child asks, from its order to its end.

    Args:
        link: our end of the child's line.
    """

    def __init__(self, link: socket.socket, loop: Loop, look_up: AskScheduler) -> None:
        self._look_up = look_up
        self._connection = Connection(link, loop, self._heard, lambda connection: None)
        self._open = 0
        self._went_without = False
        self._mask = SecretMask(secrets_of_environment(os.environ))

    def unanswered(self, timed_out: bool) -> bool:
        """Did it want to know something that nobody could tell? Of one that was stopped: was it waiting for an answer?"""
        return self._went_without or (timed_out and self._open > 0)

    def close(self) -> None:
        self._connection.close()

    def _heard(self, connection: Connection, document: bytes) -> None:
        try:
            question: RunnerRequest = decode_request(document)
        except msgspec.MsgspecError as error:
            log.warning("a parse child said something that cannot be read", why=str(error))
            connection.close()
            return
        if not isinstance(question, Lookup):
            connection.send(encode(Failure(question.op, "a DAG file that is imported may only read variables and connections")))
            return
        op = question.op
        self._open += 1
        self._look_up(question, lambda answer: self._answered(op, answer))

    def _answered(self, op: int, answer: RunnerAnswer | None) -> None:
        self._open -= 1
        if answer is None:
            self._went_without = True
            answer = Failure(op, AWAY)
        if isinstance(answer, Value):
            self._mask = self._mask.plus(told_secrets(answer.value, answer.secret))
        self._connection.send(encode(msgspec.structs.replace(answer, op=op)))

    # --- secrets ----------------------------------------------------------------------------------------------------------

    def masked(self, text: str) -> str:
        """The text without the secrets that the child was told, and those of the environment."""
        return self._mask.text(text)

    def without_secrets(self, report: ChildReport) -> ChildReport:
        """What is shown of a report. Definitions stay: their author wrote the value into the DAG."""
        if not self._mask:
            return report
        return msgspec.structs.replace(report, problems=tuple(self._clean(problem) for problem in report.problems))

    def _clean(self, problem: Problem) -> Problem:
        return Problem(self.masked(problem.message), self.masked(problem.stack_trace), problem.line)
