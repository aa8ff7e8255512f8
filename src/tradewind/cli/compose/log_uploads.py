"""Starts the process that uploads task logs, and opens the storage that reads them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tradewind.model.errors import ConfigError
from tradewind.observe.log import Log
from tradewind.platform import HAVE_LINUX
from tradewind.storage.local_logs import LocalLogs
from tradewind.storage.task_logs import NO_FSSPEC, open_logs

if TYPE_CHECKING:
    from tradewind.settings import Settings
    from tradewind.storage.port import LogStorage
    from tradewind.storage.remote_logs import LogUploads, RemoteFolder

log = Log("uploads")

PASS_SECONDS = 5.0
REST_FACTOR = 20
"""After a pass, the process waits at least this many times the duration of the pass: many logs must not keep a core busy."""
RETRY_SECONDS = 30.0
HANGS_SECONDS = 600.0
"""After this time with one log, the process stops reporting progress and is therefore restarted."""
STOP_SECONDS = 8.0


def remote_url(settings: Settings) -> str:
    """Address to which task logs are uploaded; empty: they are not uploaded."""
    chosen = settings.logging
    return chosen.remote_base_log_folder or "" if chosen.remote_logging else ""


def remote_options(settings: Settings) -> str | None:
    """Arguments for the file system of the uploaded logs: the setting, or those of the connection that `remote_log_conn_id` names.

    Raises:
        ConfigError: the connection cannot be read.
    """
    chosen = settings.logging
    if chosen.remote_storage_options or not chosen.remote_log_conn_id or not remote_url(settings):
        return chosen.remote_storage_options
    from tradewind.storage.connection_options import options_of  # lazy import: few deployments name a connection

    return options_of(chosen.remote_log_conn_id, remote_url(settings), os.environ)


def remote_folder(settings: Settings) -> RemoteFolder:
    """Where task logs are uploaded.

    Raises:
        ConfigError: the file system cannot be used.
    """
    try:
        from tradewind.storage.remote_logs import RemoteFolder  # lazy import: an extra
    except ImportError:
        raise ConfigError(NO_FSSPEC) from None
    url = remote_url(settings)
    if not url:
        raise ConfigError("logging.remote_logging needs logging.remote_base_log_folder, such as s3://bucket/logs")
    return RemoteFolder(url, remote_options(settings))


def log_storage(settings: Settings) -> LogStorage:
    """The task logs for reading."""
    return open_logs(settings.paths.logs, remote_url(settings), remote_options(settings))


def run_uploads(settings: Settings, alive: Callable[[], None]) -> None:
    """Upload task logs until SIGTERM; then upload the remaining logs.

    If the file system cannot be used, the process logs an error and waits: tasks do not depend on it.
    """
    if HAVE_LINUX:
        from tradewind.platform import linux

        linux.set_name("tw-uploads")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    uploader = None
    try:
        uploader = _Uploader(settings, remote_folder(settings), stop)
    except ConfigError as error:
        log.error("task logs are not uploaded", error=str(error))
    if uploader is not None:
        uploader.thread.start()
    while not stop.wait(2):
        if uploader is None or time.monotonic() - uploader.working_since < HANGS_SECONDS:
            alive()
    if uploader is not None:
        uploader.thread.join(STOP_SECONDS)


class _Uploader:
    """The thread that uploads the logs: one pass after the other."""

    def __init__(self, settings: Settings, folder: RemoteFolder, stop: threading.Event) -> None:
        from tradewind.storage.remote_logs import LogUploads  # lazy import: an extra

        self.working_since = float("inf")
        """Start of the work with the present log, in seconds of the monotonic clock; infinite: the thread waits."""
        self.thread = threading.Thread(target=self._run, name="log uploads", daemon=True)
        self._mark = os.path.join(settings.home, "log-uploads")
        self._stop = stop
        self._uploads: LogUploads = LogUploads(
            LocalLogs(settings.paths.logs), folder, self._read_mark(), time.time, self._note_progress
        )
        self._failed = False

    def _run(self) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            worked = self._pass(everything=False)
            took = time.monotonic() - began
            self._stop.wait(max(PASS_SECONDS, REST_FACTOR * took) if worked else RETRY_SECONDS)
        self._pass(everything=True)

    def _pass(self, *, everything: bool) -> bool:
        """Upload all due logs. Returns whether this was possible."""
        before = self._uploads.since
        try:
            self._uploads.run_pass(everything=everything)
        except Exception as error:  # each file system has its own errors; after each of them the upload is tried again
            if not self._failed:
                log.error("task logs cannot be uploaded; trying again", error=f"{type(error).__name__}: {error}")
            self._failed = True
            return False
        finally:
            self.working_since = float("inf")
        self._failed = False
        if self._uploads.since != before:
            self._write_mark()
        return True

    def _note_progress(self) -> None:
        self.working_since = time.monotonic()

    def _read_mark(self) -> float:
        """Return the moment (seconds since 1970) up to which an earlier process has uploaded all logs."""
        try:
            with open(self._mark, encoding="utf-8") as file:
                return float(file.read())
        except (OSError, ValueError):
            return 0.0

    def _write_mark(self) -> None:
        try:
            with open(f"{self._mark}.new", "w", encoding="utf-8") as file:
                file.write(str(self._uploads.since))
            os.replace(f"{self._mark}.new", self._mark)
        except OSError as error:
            log.warning("the state of the uploads cannot be written", path=self._mark, error=error.strerror)
