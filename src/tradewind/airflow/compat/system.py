"""Small modules of `airflow.utils` about this machine: `platform`, `timeout`, `compression`, `hashlib_wrapper`, `singleton`."""

from __future__ import annotations

import bz2
import getpass
import gzip
import hashlib
import logging
import os
import platform
import shutil
import signal
import sys
from tempfile import NamedTemporaryFile
from types import FrameType, TracebackType
from typing import Any, ClassVar, Self

from tradewind.sdk.exceptions import AirflowTaskTimeout

__all__ = [
    "IS_WINDOWS",
    "Singleton",
    "TimeoutPosix",
    "getuser",
    "is_terminal_support_colors",
    "is_tty",
    "md5",
    "timeout",
    "uncompress_file",
]

log = logging.getLogger(__name__)

IS_WINDOWS = platform.system() == "Windows"


def getuser() -> str:
    """The name of the user who runs this process; the user id if the system has no name for it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def is_tty() -> bool:
    """Whether the output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def is_terminal_support_colors() -> bool:
    """Whether the output is a terminal that shows colours."""
    return is_tty() and os.environ.get("TERM", "dumb") != "dumb" and not os.environ.get("NO_COLOR")


def md5(data: bytes = b"", **_kwargs: Any) -> Any:
    """MD5, for names and comparisons, never for security."""
    return hashlib.md5(data, usedforsecurity=False)


class Singleton(type):
    """Metaclass of classes that have one object in a process."""

    _instances: ClassVar[dict[type, Any]] = {}

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls not in cls._instances:
            cls._instances[cls] = super().__call__(*args, **kwargs)
        return cls._instances[cls]


class TimeoutPosix:
    """A `with` block that raises `AirflowTaskTimeout` when it takes longer.

    Args:
        seconds: wall-clock time.
    """

    def __init__(self, seconds: float = 1, error_message: str = "Timeout") -> None:
        self.seconds = seconds
        self.error_message = f"{error_message}, PID: {os.getpid()}"

    def handle_timeout(self, _number: int, _frame: FrameType | None) -> None:
        """Handler of SIGALRM.

        Raises:
            AirflowTaskTimeout: always.
        """
        log.error("Process timed out, PID: %s", os.getpid())
        raise AirflowTaskTimeout(self.error_message)

    def __enter__(self) -> Self:
        try:
            signal.signal(signal.SIGALRM, self.handle_timeout)
            signal.setitimer(signal.ITIMER_REAL, self.seconds)
        except ValueError:
            log.warning("timeout can't be used in the current context", exc_info=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
        except ValueError:
            log.warning("timeout can't be used in the current context", exc_info=True)


timeout = TimeoutPosix


def uncompress_file(input_file_name: str, file_extension: str, dest_dir: str) -> str:
    """Unpack a `.gz` or `.bz2` file into a folder.

    Returns:
        Path of the unpacked file.

    Raises:
        NotImplementedError: the file has another extension.
    """
    openers: dict[str, Any] = {".gz": gzip.GzipFile, ".bz2": bz2.BZ2File}
    opener = openers.get(file_extension.lower())
    if opener is None:
        raise NotImplementedError(f"Received {file_extension} format. Only gz and bz2 files can currently be uncompressed.")
    with opener(input_file_name, mode="rb") as packed, NamedTemporaryFile(dir=dest_dir, mode="wb", delete=False) as unpacked:
        shutil.copyfileobj(packed, unpacked)
        return unpacked.name
