"""Starts the process that fetches a bundle, without waiting for it, and kills it at its deadline."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable

import msgspec

from tradewind.bundles.fetch_messages import FetchAnswer, FetchRequest
from tradewind.model.moments import SECOND
from tradewind.platform.loop import Loop

ANSWER_MAX = 1 << 20


class Fetch:
    """One fetch. `done` is called once from the loop, unless `stop` was called.

    Args:
        deadline: microseconds after the start.
    """

    def __init__(self, loop: Loop, request: FetchRequest, deadline: int, done: Callable[[FetchAnswer], None]) -> None:
        self._loop = loop
        self._done = done
        self._output = bytearray()
        self._late = ""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tradewind.bundles.fetch_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._out = self._process.stdout
        os.set_blocking(self._out.fileno(), False)
        self._timer = loop.call_later(deadline, lambda: self._kill(f"it took longer than {deadline / SECOND:g} s"))
        loop.watch(self._out, selectors.EVENT_READ, lambda events: self._read())
        try:
            with self._process.stdin as into:
                into.write(msgspec.json.encode(request))  # smaller than a pipe's buffer, so it does not wait
        except BrokenPipeError:
            pass  # the process has ended: its output ends, too

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        """End the fetch. `done` is not called."""
        self._done = lambda answer: None
        self._kill("it was stopped")
        self._finish()

    def _kill(self, why: str) -> None:
        self._late = why
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def _read(self) -> None:
        try:
            data = os.read(self._out.fileno(), 1 << 16)
        except BlockingIOError:
            return
        self._output += data[: ANSWER_MAX - len(self._output)]
        if not data:
            self._finish()

    def _finish(self) -> None:
        self._timer.cancel()
        self._loop.unwatch(self._out)
        self._out.close()
        self._kill(self._late)  # kills git, too, in case it has closed the output and still runs
        code = self._process.wait()
        try:
            answer = msgspec.json.decode(bytes(self._output), type=FetchAnswer)
        except msgspec.DecodeError:
            answer = FetchAnswer(problem=self._late or f"its process ended with the code {code}")
        self._done(answer)
