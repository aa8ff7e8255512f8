"""How a task's log records travel through the same pipe as its prints.

A record is one line: the byte 0x1E, then a JSON object. Everything else on the pipe is plain output. The host stamps, masks
and stores both kinds (see `log_capture`).
"""

from __future__ import annotations

import logging
import os
import sys

import msgspec

RECORD_MARK = b"\x1e"

_encode = msgspec.json.Encoder().encode


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
