"""The last line of an attempt's log: what the scheduler decided about the attempt.

A worker host knows how a process ended. Whether another try follows is decided and committed by the scheduler. So the scheduler's
answer to a report carries the final line. The line is written when the answer is there and the process is gone. Usually the process
is gone first; then the line is appended to the closed file. If a successful task wrote no output, no file is created for this line
alone: creating the file would be the most expensive part of the attempt's end, and readers of the log know what the line would say.

This module also checks whether logs can be written at all.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tradewind.observe.log import Log
from tradewind.wire.messages import SUCCESS_LINE, Accepted, AttemptKey, LastLine, Refused
from tradewind.worker.attempt import Attempt
from tradewind.worker.log_capture import LogCapture

log = Log("host")

_LINE_MAX = 64 * 1024


class FinalLogLines:
    """See the module.

    Args:
        folder: the log folder.
        wall: reads the time, microseconds UTC.
        tell: called with a sentence when logs can no longer be written, and with "" when they can be written again.
    """

    def __init__(self, folder: str, wall: Callable[[], int], tell: Callable[[str], None]) -> None:
        self._folder = folder
        self._wall = wall
        self._tell = tell
        self._paths: dict[AttemptKey, str] = {}
        """Logs of attempts whose report has no answer yet."""
        self._last: dict[AttemptKey, LastLine] = {}
        """Final lines of attempts whose process is still alive."""
        self._written: set[AttemptKey] = set()
        """Attempts without an answer whose log already has its final line."""
        self._silent: set[AttemptKey] = set()
        """Attempts without an answer that have ended and have written no log."""
        self.trouble = ""
        """Why logs cannot be written; empty while they can."""

    def reported(self, attempt: Attempt) -> None:
        """The report of this attempt is on its way to the scheduler."""
        self._paths[attempt.key] = attempt.workload.log

    def answered(self, key: AttemptKey, answer: Accepted | Refused, attempt: Attempt | None) -> None:
        """The scheduler has answered the report of an attempt. `attempt` is None if its process has ended."""
        path, silent = self._paths.pop(key, ""), key in self._silent
        self._silent.discard(key)
        if key in self._written:
            self._written.discard(key)
            return
        line = answer.last
        if line is None and isinstance(answer, Refused):
            line = LastLine("warning", f"The result of this attempt does not count: {answer.reason}.")
        if line is None:
            return
        if attempt is not None and not attempt.ended:
            self._last[key] = line
        elif (path or line.log) and not (silent and line.text == SUCCESS_LINE):
            self.append(path or line.log, line)

    def ends(self, attempt: Attempt) -> None:
        """No process of this attempt is left, and its log is about to be closed."""
        line = self._last.pop(attempt.key, None)
        if line is None and attempt.killing == "cancelled":
            line = LastLine("warning", f"The attempt was stopped, and its result does not count: {attempt.kill_reason}.")
            if attempt.key in self._paths:
                self._written.add(attempt.key)
        if attempt.log.is_silent and (line is None or line.text == SUCCESS_LINE):
            if attempt.key in self._paths:
                self._silent.add(attempt.key)
        elif line is not None:
            attempt.log.end_line()
            attempt.log.note(line.level, line.text)

    def closed(self, capture: LogCapture) -> None:
        """Note whether all of a closed log could be written."""
        if capture.problem is not None:
            self._note(capture.problem)
        elif capture.has_written:
            self._note("")

    def append(self, path: str, line: LastLine) -> None:
        """Append a line to a closed log."""
        capture = LogCapture(Path(self._folder) / path, self._wall, _LINE_MAX, _LINE_MAX)
        capture.end_line()
        capture.note(line.level, line.text)
        capture.close()
        self.closed(capture)

    def probe(self) -> None:
        """Check that files can be created in the log folder. A full disk is not noticed by this check."""
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
        except OSError as error:
            self._note(f"the log folder {self._folder} cannot be created: {error.strerror}")
            return
        if not os.access(self._folder, os.W_OK | os.X_OK):
            self._note(f"the log folder {self._folder} cannot be written: its permissions, or its disk, forbid it")
        elif self.trouble.startswith("the log folder "):
            self._note("")

    def _note(self, trouble: str) -> None:
        if bool(trouble) is not bool(self.trouble):
            if trouble:
                log.error("task logs cannot be written", why=trouble)
            else:
                log.info("task logs can be written again")
            self.trouble = trouble
            self._tell(trouble)
        elif trouble:
            self.trouble = trouble
