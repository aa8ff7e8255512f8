"""The connection of a task process to its worker host: a blocking socket, with one answer for each question."""

from __future__ import annotations

import os
import select
import threading
import time
from collections.abc import Callable

import msgspec

from tradewind.model.errors import Unreachable
from tradewind.wire.frames import FrameReader, frame
from tradewind.wire.messages import Accepted, CalledBack, Rendered, Report, RunnerAnswer, decode_answer, encode
from tradewind.wire.runtime import Question

READ_SIZE = 16 * 1024

START_OP = 1
"""The number of the start request that the worker host sends; questions of user code have higher numbers."""

ASK_TIMEOUT_SECONDS = 120.0
"""A scheduler that restarts answers within seconds. After this time the question fails."""


class Channel:
    """Implements `wire.runtime.Runtime` for user code.

    It uses the bare file descriptor: after a fork, each object that is touched causes a memory page to be copied.

    Args:
        descriptor: connected, blocking stream socket to the worker host.
        read_spill: reads a value that was too large for a message, by its name.
    """

    def __init__(self, descriptor: int, read_spill: Callable[[str], bytes]) -> None:
        self._descriptor = descriptor
        self._read_spill = read_spill
        self._reader: FrameReader | None = None
        self._early = b""
        self._answers: dict[int, RunnerAnswer] = {}
        self._op = START_OP
        self._lock = threading.Lock()
        """Held from a request to its answer, because task code may send requests from several threads."""

    def may_start(self) -> bool:
        """Wait until the worker host forwards whether the start is accepted. No user code runs before this returns.

        The worker host has sent the start request and repeats it. The wait has no deadline: if the worker host ends, the connection
        closes and the wait ends, too.
        """
        data = b""
        while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
            piece = os.read(self._descriptor, 128)
            if not piece:
                return False
            data += piece
        end = 4 + int.from_bytes(data[:4], "big")
        self._early = data[end:]
        return isinstance(decode_answer(data[4:end]), Accepted)

    def report(self, report: Report) -> None:
        """Send the report to the worker host, which keeps it until the scheduler has committed it."""
        self._send(report)

    def rendered(self, fields: bytes) -> None:
        """Send the rendered values of the templated fields."""
        self._send(Rendered(fields))

    def called_back(self) -> None:
        """Send that the callbacks of the report were called."""
        self._send(CalledBack())

    def ask(self, question: Question) -> RunnerAnswer:
        """Send a question and wait for the answer.

        Raises:
            Unreachable: there was no answer in time.
        """
        with self._lock:
            self._op += 1
            self._send(msgspec.structs.replace(question, op=self._op))
            answer = self._wait(self._op, ASK_TIMEOUT_SECONDS)
        if answer is None:
            raise Unreachable(
                f"the scheduler did not answer {type(question).__name__} within {ASK_TIMEOUT_SECONDS:.0f} s; "
                "is it running? See its log, or run: tradewind info"
            )
        return answer

    def read_spill(self, name: str) -> bytes:
        return self._read_spill(name)

    def _send(self, message: object) -> None:
        data = frame(encode(message))
        sent = os.write(self._descriptor, data)
        while sent < len(data):
            sent += os.write(self._descriptor, memoryview(data)[sent:])

    def _wait(self, op: int, seconds: float) -> RunnerAnswer | None:
        deadline = time.monotonic() + seconds
        if self._reader is None:
            self._reader = FrameReader()
            self._read(self._early)
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        while op not in self._answers:
            left = deadline - time.monotonic()
            if left <= 0 or not poll.poll(left * 1000):
                return None
            data = os.read(self._descriptor, READ_SIZE)
            if not data:
                raise Unreachable("the worker host has closed the connection")
            self._read(data)
        return self._answers.pop(op)

    def _read(self, data: bytes) -> None:
        assert self._reader is not None
        for document in self._reader.feed(data):
            answer = decode_answer(document)
            self._answers[answer.op] = answer
