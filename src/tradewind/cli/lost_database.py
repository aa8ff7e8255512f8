"""Detects a missing database, so that no empty one is created in its place.

An empty database has no runs, so a scheduler would run the whole catch-up of every DAG again. `$TRADEWIND_HOME/database.path`
contains the path of the database that was created last. Signs of an older database are this file, the key file, and task logs.
"""

from __future__ import annotations

import glob
import os

from tradewind.model.database_urls import on_server
from tradewind.model.errors import StoreLost
from tradewind.settings import Settings

SAVED_PART = "saved"
"""Part of a file name, `tradewind.db.saved-<pid>-<n>`: a copy that a scheduler saved when its database was deleted."""

_NOT_TASK_LOGS = frozenset({"processes", "triggers.log"})


def database_exists(settings: Settings) -> bool:
    """Whether there is a database file; a database on a server counts as existing, also if it is empty."""
    return settings.database.url is not None or os.path.exists(settings.paths.database)


def refuse_lost(settings: Settings, *, is_empty: bool = False) -> None:
    """Raises StoreLost if the database is missing or empty, but there are signs of an older one.

    Args:
        is_empty: for a database on a server: it has no tables of Tradewind.
    """
    if settings.database.url is not None:
        if is_empty:
            _refuse_empty_server(settings)
        return
    path = settings.paths.database
    try:
        size = os.path.getsize(path)
    except OSError:
        size = -1
    if size > 0:
        return
    sign = _sign_of_older_database(settings)
    if sign is not None:
        what = "is empty" if size == 0 else "is missing"
        raise StoreLost(f"the database {path} {what}, but {sign}. {recovery_hint(settings)}")


def _refuse_empty_server(settings: Settings) -> None:
    noted = _recorded_path(settings)
    if not noted:
        return
    if noted == settings.store_name:
        raise StoreLost(
            f"the database {settings.store_name} is empty, but Tradewind's tables were created there earlier "
            f"(see {_file(settings)}). {recovery_hint(settings)}"
        )
    raise StoreLost(
        f"the database {settings.store_name} is empty, but this home folder has used {noted}. To take its runs, variables and "
        "connections along, unset the URL and run: tradewind db move URL. To start with an empty database: tradewind db reset -y"
    )


def recovery_hint(settings: Settings) -> str:
    """What the user can do about a lost database, in words."""
    if settings.database.url is not None:
        return (
            "Restore a backup (tradewind db restore FILE), or start with an empty database, without the old runs, variables and "
            "connections: tradewind db reset -y"
        )
    path = settings.paths.database
    copies = sorted(glob.glob(f"{glob.escape(path)}.{SAVED_PART}-*"), key=os.path.getmtime)
    saved = f" (a copy was saved: mv {copies[-1]} {path})" if copies else ""
    return (
        f"Restore the file or a backup of it{saved}, or set database.path to its new place. "
        "To start with an empty database, without the old runs, variables and connections: tradewind db reset -y"
    )


def record_database_path(settings: Settings) -> None:
    """Write the path of the database to the file, after the database was created."""
    if _recorded_path(settings) != settings.store_name:
        _write_path(settings, settings.store_name)


def write_database_name(settings: Settings, name: str) -> None:
    """Write the name of the database to the file, after the store was moved there."""
    _write_path(settings, name)


def clear_database_path(settings: Settings) -> None:
    """Clear the path in the file, after the database was deleted on purpose: the next start creates a new one."""
    _write_path(settings, "")


def _sign_of_older_database(settings: Settings) -> str | None:
    paths = settings.paths
    noted = _recorded_path(settings)
    if noted == "":
        return None
    if noted is not None and on_server(noted):
        return f"this home folder was moved to {noted}: set TRADEWIND__DATABASE__URL to its URL"
    if noted == paths.database:
        return f"a database was created there earlier (see {_file(settings)})"
    if os.path.exists(paths.fernet_key) and _has_task_logs(paths.logs):
        return f"its key ({paths.fernet_key}) and its task logs ({paths.logs}) exist"
    return None


def _has_task_logs(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(entry.name not in _NOT_TASK_LOGS for entry in entries)
    except OSError:
        return False


def _file(settings: Settings) -> str:
    return os.path.join(settings.home, "database.path")


def _recorded_path(settings: Settings) -> str | None:
    """The path in the file; "": the database was deleted on purpose; None: there is no file."""
    try:
        with open(_file(settings), encoding="utf-8", errors="surrogateescape") as file:
            return file.read().strip()
    except OSError:
        return None


def _write_path(settings: Settings, text: str) -> None:
    draft = f"{_file(settings)}.{os.getpid()}.new"
    with open(
        draft, "w", encoding="utf-8", errors="surrogateescape", opener=lambda path, flags: os.open(path, flags, 0o600)
    ) as file:
        file.write(f"{text}\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, _file(settings))
