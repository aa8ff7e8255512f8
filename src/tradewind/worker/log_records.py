"""How a task's log records travel through the same pipe as its prints.

A record is one line: the byte 0x1E, then a JSON object. Everything else on the pipe is plain output. The host stamps, masks
and stores both kinds (see `log_capture`).
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator

import msgspec

RECORD_MARK = b"\x1e"
PART_LENGTH = 3000

_encode = msgspec.json.Encoder().encode


def write_error(text: str) -> None:
    """A record of level error for the task itself, however Python's logging was set up by its code."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
        for part in _parts(text):
            os.write(2, RECORD_MARK + _encode({"level": "error", "logger": "tradewind.task", "event": part}) + b"\n")
    except (OSError, ValueError):  # the log is gone or full: the verdict must still be reported
        pass


def _parts(text: str) -> Iterator[str]:
    """Whole lines, some thousand characters at a time: a line of the log is cut where it is longer than it may be."""
    part = ""
    for line in text.split("\n"):
        if part and len(part) + len(line) > PART_LENGTH:
            yield part
            part = line
        else:
            part = f"{part}\n{line}" if part else line
    yield part


class TaskLogHandler(logging.Handler):
    """Writes records to stderr as marked lines; one write a record, so that lines of several threads stay whole."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            message = record.getMessage()
            if record.exc_info:
                message += "\n" + logging.Formatter().formatException(record.exc_info)
            line = _encode({"level": record.levelname.lower(), "logger": record.name, "event": message})
            sys.stdout.flush()
            os.write(2, RECORD_MARK + line + b"\n")
        except Exception:
            self.handleError(record)
