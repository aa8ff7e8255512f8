"""`airflow.utils.log.logging_mixin`: `self.log` for operators, hooks and other classes of provider packages."""

from __future__ import annotations

import abc
import logging
import re
import sys
from collections.abc import Iterable
from io import TextIOBase
from logging import Logger
from typing import Any

__all__ = [
    "ExternalLoggingMixin",
    "LoggingMixin",
    "RedirectStdHandler",
    "StreamLogWriter",
    "remove_escape_codes",
    "set_context",
]

_ESCAPES = re.compile(r"\x1B[@-_][0-?]*[ -/]*[@-~]")


def remove_escape_codes(text: str) -> str:
    """A text without the colours of a terminal."""
    return _ESCAPES.sub("", text)


class LoggingMixin:
    """Gives a class `self.log`, a logger with the name of the class."""

    _log: Logger | None = None
    _log_config_logger_name: str | None = None
    _logger_name: str | None = None

    def __init__(self, context: Any = None) -> None:
        super().__init__()

    @classmethod
    def _name_of_logger(cls, own: str | None) -> str:
        name = own if own is not None else f"{cls.__module__}.{cls.__name__}"
        parent = cls._log_config_logger_name
        return f"{parent}.{name}" if parent and name else parent or name

    @classmethod
    def logger(cls) -> Logger:
        """The logger of the class."""
        return logging.getLogger(cls._name_of_logger(cls._logger_name))

    @property
    def log(self) -> Logger:
        """The logger of this object."""
        if self._log is None:
            self._log = logging.getLogger(self._name_of_logger(self._logger_name))
        return self._log

    def _set_context(self, context: Any) -> None:
        """Do nothing: in Airflow, log handlers get a context; the log of an attempt does not need it here."""


class ExternalLoggingMixin(metaclass=abc.ABCMeta):
    """For log handlers that keep logs in another system."""

    @property
    @abc.abstractmethod
    def log_name(self) -> str:
        """Name of the system."""

    @abc.abstractmethod
    def get_external_log_url(self, task_instance: Any, try_number: int) -> str:
        """Address of an attempt's log in that system."""

    @property
    @abc.abstractmethod
    def supports_external_link(self) -> bool:
        """Whether that system has addresses."""


class StreamLogWriter(TextIOBase):
    """A text stream that writes whole lines to a logger."""

    encoding: Any = None

    def __init__(self, logger: Logger, level: int) -> None:
        self.logger = logger
        self.level = level
        self._buffer = ""

    def close(self) -> None:
        """Nothing to close."""

    @property
    def closed(self) -> bool:
        return False

    def write(self, message: str) -> int:
        if message.endswith("\n"):
            message = message.rstrip()
            self._buffer += message
            self.flush()
        else:
            self._buffer += message
        return len(message)

    def writelines(self, lines: Iterable[Any]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        if self._buffer:
            self.logger.log(self.level, remove_escape_codes(self._buffer))
            self._buffer = ""

    def isatty(self) -> bool:
        return False


class RedirectStdHandler(logging.StreamHandler[Any]):
    """A handler that writes to the present stdout or stderr."""

    def __init__(self, stream: str) -> None:
        self._use_stderr = "stdout" not in stream
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr if self._use_stderr else sys.stdout

    @stream.setter
    def stream(self, value: Any) -> None:
        """Ignore the value: the stream is always that of the process."""


def set_context(logger: Logger, value: Any) -> None:
    """Do nothing: in Airflow, log handlers get a context; the log of an attempt does not need it here."""
