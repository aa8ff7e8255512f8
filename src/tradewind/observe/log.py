"""The log of Tradewind's own processes, on stderr, one line per record.

    2026-01-31T06:00:00.123456Z INFO    scheduler run finished dag_id=weather run_id="manual 1" took_ms=12

The date is UTC. The third word is the component of the process; then come the message and its values. Line breaks are escaped, so a
record is always one line. An exception is written as `error=…` with its frames, innermost last, in `at=…`. The module uses the
standard library's logging, so warnings of libraries have the same format. Logs of tasks are separate: the worker host captures
them.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TextIO

ROOT = "tradewind"

_PLAIN = re.compile(r"[\w.:/@+%,~*()-]+", re.ASCII)
_NOT_IN_A_LINE = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


class Log:
    """The logger of one part. Messages are fixed sentences; varying data goes into the values.

    >>> Log("leases").info("lease lost", run_id="manual", epoch=7)
    """

    __slots__ = ("_logger",)

    def __init__(self, part: str) -> None:
        self._logger = logging.getLogger(f"{ROOT}.{part}")

    def debug(self, message: str, /, **values: object) -> None:
        self._write(logging.DEBUG, message, values)

    def info(self, message: str, /, **values: object) -> None:
        self._write(logging.INFO, message, values)

    def warning(self, message: str, /, **values: object) -> None:
        self._write(logging.WARNING, message, values)

    def error(self, message: str, /, **values: object) -> None:
        self._write(logging.ERROR, message, values)

    def exception(self, message: str, /, **values: object) -> None:
        """Log an error with the exception that is being handled and its frames."""
        self._write(logging.ERROR, message, values, with_exception=True)

    def _write(self, level: int, message: str, values: Mapping[str, object], *, with_exception: bool = False) -> None:
        if self._logger.isEnabledFor(level):
            # The message is an argument, not the format, so a percent sign in it is literal.
            self._logger.log(level, "%s", message, extra={"values": values}, exc_info=with_exception)


class LineFormatter(logging.Formatter):
    """Formats every record as one line, also records of libraries."""

    def __init__(self, component: str, mask: Callable[[str], str] = str) -> None:
        super().__init__()
        self._component = component
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        micros = int(record.created % 1 * 1_000_000)
        part = record.name.removeprefix(ROOT + ".")
        source = self._component if part in (ROOT, self._component) else f"{self._component}/{part}"
        words = [f"{whole}.{micros:06d}Z {record.levelname:<7} {source} {escape(record.getMessage())}"]
        values: Mapping[str, object] = getattr(record, "values", {})
        words.extend(f"{key}={render(value)}" for key, value in values.items())
        if record.exc_info and record.exc_info[1] is not None:
            words.extend(_exception_words(record.exc_info[1]))
        return self._mask(" ".join(words))


def configure(component: str, level: str = "INFO", stream: TextIO | None = None, mask: Callable[[str], str] = str) -> None:
    """Write the records of this process to `stream` (default: stderr). A later call replaces an earlier one.

    Args:
        component: name of the process, such as `scheduler`.
        level: DEBUG, INFO, WARNING, ERROR or CRITICAL, for Tradewind's records; records of libraries are written from WARNING up.
        mask: replaces secrets in a line.

    Raises:
        ValueError: there is no such level.
    """
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise ValueError(f"no log level {level!r}; choose DEBUG, INFO, WARNING, ERROR or CRITICAL")
    handler = logging.StreamHandler(stream if stream is not None else sys.stderr)
    handler.setFormatter(LineFormatter(component, mask))
    handler.set_name(ROOT)
    root = logging.getLogger()
    for old in [h for h in root.handlers if h.get_name() == ROOT]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(max(number, logging.WARNING))
    logging.getLogger(ROOT).setLevel(number)


def escape(text: str) -> str:
    """`text` with control characters and line breaks escaped."""
    return _NOT_IN_A_LINE.sub(lambda found: found.group().encode("unicode_escape").decode("ascii"), text)


def render(value: object) -> str:
    """The text of a value after `key=`: unquoted if it is one plain word, otherwise in double quotes with `\\` and `"` escaped."""
    text = str(value)
    if _PLAIN.fullmatch(text):
        return text
    return '"' + escape(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _exception_words(error: BaseException) -> list[str]:
    words = []
    seen: set[int] = set()
    label = "error"
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        words.append(f"{label}={render(f'{type(current).__name__}: {current}')}")
        if current.__traceback__ is not None:
            words.append(f"at={render(_frames(current.__traceback__))}")
        label = "because"
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return words


def _frames(traceback: TracebackType) -> str:
    frames = []
    step: TracebackType | None = traceback
    while step is not None:
        code = step.tb_frame.f_code
        frames.append(f"{_short(code.co_filename)}:{step.tb_lineno} {code.co_name}")
        step = step.tb_next
    return " > ".join(frames)


def _short(path: str) -> str:
    return "/".join(path.split(os.sep)[-2:])
