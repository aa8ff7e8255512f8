"""A database that should be there and is not: refuse to put an empty one in its place.

An empty database knows no run, so a scheduler would run the whole catch-up of every DAG again. `$TRADEWIND_HOME/database.path`
holds the path of the database that was made last; it and what belongs to a database (keys, logs of tasks) are the signs that there
was one.
"""

from __future__ import annotations

import glob
import os

from tradewind.model.errors import StoreLost
from tradewind.settings import Settings

SAVED = "saved"
"""`tradewind.db.saved-<pid>-<n>`: what a scheduler could save of a database that was deleted under it."""

_OURS_IN_LOGS = frozenset({"processes", "triggers.log"})


def refuse_lost(settings: Settings) -> None:
    """Raises StoreLost when the database is missing or empty though there are signs of an older one."""
    path = settings.paths.database
    try:
        size = os.path.getsize(path)
    except OSError:
        size = -1
    if size > 0:
        return
    sign = _sign_of_one(settings)
    if sign is not None:
        what = "is empty" if size == 0 else "is missing"
        raise StoreLost(f"the database {path} {what}, but {sign}. {how_to_go_on(settings)}")


def how_to_go_on(settings: Settings) -> str:
    """What to do about a lost database, in words."""
    path = settings.paths.database
    copies = sorted(glob.glob(f"{glob.escape(path)}.{SAVED}-*"), key=os.path.getmtime)
    saved = f" (a copy was saved: mv {copies[-1]} {path})" if copies else ""
    return (
        f"Put the file or a backup of it back{saved}, or set database.path to where it is. "
        "To give up all runs, variables and connections and begin anew: tradewind db reset -y"
    )


def note_database(settings: Settings) -> None:
    """Write down where the database is, once it is made."""
    if _noted(settings) != settings.paths.database:
        _note(settings, settings.paths.database)


def forget_database(settings: Settings) -> None:
    """The database was deleted on purpose: the next start makes a new one."""
    _note(settings, "")


def _sign_of_one(settings: Settings) -> str | None:
    paths = settings.paths
    noted = _noted(settings)
    if noted == "":
        return None
    if noted == paths.database:
        return f"one was made there ({_file(settings)} says so)"
    if os.path.exists(paths.fernet_key) and _has_task_logs(paths.logs):
        return f"there are the key ({paths.fernet_key}) and the task logs ({paths.logs}) of one"
    return None


def _has_task_logs(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(entry.name not in _OURS_IN_LOGS for entry in entries)
    except OSError:
        return False


def _file(settings: Settings) -> str:
    return os.path.join(settings.home, "database.path")


def _noted(settings: Settings) -> str | None:
    """The path that was written down; "": none, on purpose; None: nothing was ever written."""
    try:
        with open(_file(settings), encoding="utf-8", errors="surrogateescape") as file:
            return file.read().strip()
    except OSError:
        return None


def _note(settings: Settings, text: str) -> None:
    draft = f"{_file(settings)}.{os.getpid()}.new"
    with open(
        draft, "w", encoding="utf-8", errors="surrogateescape", opener=lambda path, flags: os.open(path, flags, 0o600)
    ) as file:
        file.write(f"{text}\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, _file(settings))
