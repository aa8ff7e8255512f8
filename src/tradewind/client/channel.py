"""The runner's end of the line to its worker host: a blocking socket, questions and answers in turn."""

from __future__ import annotations

import os
import select
import socket
import time
from pathlib import Path

import msgspec

from tradewind.model.errors import Unreachable
from tradewind.wire.frames import FrameReader, frame
from tradewind.wire.messages import Accepted, Refused, Report, RunnerAnswer, Start, decode_answer, encode
from tradewind.wire.runtime import Question

HOSTNAME = socket.gethostname()
READ_SIZE = 16 * 1024

ASK_TIMEOUT_SECONDS = 120.0
"""A scheduler that restarts answers within seconds; after this the task is told."""


class Channel:
    """Implements `wire.runtime.Runtime` for user code.

    It works on the bare descriptor: in a freshly forked process every object that is touched is a page that is copied.

    Args:
        descriptor: connected, blocking stream socket to the host.
        xcom_folder: where spilled values lie.
    """

    def __init__(self, descriptor: int, xcom_folder: str) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        self._reader = FrameReader()
        self._answers: dict[int, RunnerAnswer] = {}
        self._op = 0
        self._xcom_folder = xcom_folder

    def start(self, nonce: str, retry_seconds: float) -> Refused | None:
        """Ask to start until there is an answer: None is yes. No user code runs before this returns.

        The question is repeated under the same nonce; the answer to a repetition is the same.
        """
        self._op += 1
        question = Start(self._op, nonce, os.getpid(), HOSTNAME)
        while True:
            self._send(question)
            answer = self._wait(question.op, retry_seconds)
            if isinstance(answer, Accepted):
                return None
            if isinstance(answer, Refused):
                return answer

    def report(self, report: Report) -> None:
        """Hand the verdict to the host, which keeps it until it counts."""
        self._send(report)

    def ask(self, question: Question) -> RunnerAnswer:
        """One request, one answer.

        Raises:
            Unreachable: no answer came in time.
        """
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
        return (Path(self._xcom_folder) / name).read_bytes()

    def _send(self, message: object) -> None:
        data = memoryview(frame(encode(message)))
        while data:
            data = data[os.write(self._descriptor, data) :]

    def _wait(self, op: int, seconds: float) -> RunnerAnswer | None:
        deadline = time.monotonic() + seconds
        while op not in self._answers:
            left = deadline - time.monotonic()
            if left <= 0 or not self._poll.poll(left * 1000):
                return None
            data = os.read(self._descriptor, READ_SIZE)
            if not data:
                raise Unreachable("the worker host is gone")
            for document in self._reader.feed(data):
                answer = decode_answer(document)
                self._answers[answer.op] = answer
        return self._answers.pop(op)
