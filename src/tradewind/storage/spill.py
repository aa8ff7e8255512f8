"""XComs that are too large for the database: files named by their content.

Two attempts that spill the same bytes share one file, so whoever deletes has to leave alone what somebody else has just counted on.
A writer that finds the file holds a lock on it and makes it young again; `remove_spill` takes the same lock, leaving young files.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from pathlib import Path

from tradewind.observe.failpoints import fp
from tradewind.platform.private_file import sync_folder

SPILL_GRACE_SECONDS = 3600.0
"""A file that was written or found again so lately stays: the verdict that names it may still be on its way."""


def write_spill(folder: str, data: bytes) -> str:
    """Write the value durably; the name under which it is read. The same bytes give the same file.

    Raises:
        OSError: no room, or a limit on file sizes.
    """
    name = hashlib.sha256(data).hexdigest()
    target = Path(folder) / name
    fp("runner.before_spill")
    if not _made_young(target):
        partial = target.with_suffix(f".{os.getpid()}.part")
        try:
            with partial.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            fp("runner.spill_written")
            partial.rename(target)
            sync_folder(folder)
        finally:
            partial.unlink(missing_ok=True)
    fp("runner.after_spill")
    return name


def remove_spill(path: Path, older_than: float) -> bool:
    """Delete a file that nothing refers to, unless somebody wrote it or counted on it since; whether it is gone.

    Args:
        older_than: seconds since the epoch, by the clock of the file system.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(file).st_mtime >= older_than:
            return False
        path.unlink(missing_ok=True)
    except OSError:
        return False
    finally:
        os.close(file)
    return True


def remove_unused(folder: str, names: list[str]) -> None:
    """Delete what a store said that nothing refers to. What is too young to be sure of is left for the sweep."""
    older_than = time.time() - SPILL_GRACE_SECONDS
    for name in names:
        remove_spill(Path(folder) / name, older_than)


def _made_young(target: Path) -> bool:
    """Is the file there, and will it stay? Its age begins anew."""
    try:
        file = os.open(target, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False  # not there, or another user's: it is written (again)
    try:
        fcntl.flock(file, fcntl.LOCK_SH)
        os.utime(file)
        return os.path.samestat(os.fstat(file), os.stat(target))
    except OSError:
        return False
    finally:
        os.close(file)
