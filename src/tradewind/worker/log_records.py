"""The format in which a task's log records are sent through the pipe of its standard output.

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
    """Write a record of level error into the task's log. It works however the task's code has set up logging."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
        for part in _parts(text):
            os.write(2, RECORD_MARK + _encode({"level": "error", "logger": "tradewind.task", "event": part}) + b"\n")
    except (OSError, ValueError):  # the log is gone or full: the verdict must still be reported
        pass


def _parts(text: str) -> Iterator[str]:
    """Split a text at line ends into parts of some thousand characters. The host cuts longer lines of the log."""
    part = ""
    for line in text.split("\n"):
        if part and len(part) + len(line) > PART_LENGTH:
            yield part
            part = line
        else:
            part = f"{part}\n{line}" if part else line
    yield part


class TaskLogHandler(logging.Handler):
    """Writes each record to stderr as one marked line, with one `write`, so that lines of several threads stay whole."""

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
