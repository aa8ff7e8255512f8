"""Opens the storage of task logs that is configured in the settings."""

from __future__ import annotations

from tradewind.model.errors import ConfigError
from tradewind.observe.log import Log
from tradewind.storage.local_logs import LocalLogs
from tradewind.storage.port import LogStorage

log = Log("logs")


def open_logs(root: str, url: str, options: str | None) -> LogStorage:
    """Open the task logs for reading. If the remote file system cannot be used, only the logs of this machine, with a warning.

    Args:
        root: absolute path of the log folder.
        url: of the folder to which logs are uploaded; empty: none.
        options: see `remote_logs.RemoteFolder`.
    """
    local = LocalLogs(root)
    if not url:
        return local
    try:
        from tradewind.storage.remote_logs import RemoteFolder, RemoteLogs  # lazy import: an extra

        return RemoteLogs(local, RemoteFolder(url, options))
    except ImportError:
        log.warning("uploaded task logs cannot be read", error=NO_FSSPEC)
    except ConfigError as error:
        log.warning("uploaded task logs cannot be read", error=str(error))
    return local


NO_FSSPEC = "logging.remote_logging needs the package fsspec. Install it: pip install 'tradewind[remote-logs]'"
