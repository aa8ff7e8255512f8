"""Large XComs in a local folder: files named by their content.

Two attempts that write the same bytes share one file, so a file that a new attempt needs must not be deleted. A writer that finds
the file locks it and sets its time to now; `remove` takes the same lock, and does not delete files with a recent time.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from tradewind.observe.failpoints import fp
from tradewind.platform.private_file import sync_folder

SPILL_GRACE_SECONDS = 3600.0
"""A file that was written or reused within this time is kept: the report that names it may still be on its way."""


class LocalSpills:
    """See the module and `storage.port.SpillStorage`.

    Args:
        folder: absolute path.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def write(self, data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        target = Path(self._folder) / name
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
                sync_folder(self._folder)
            finally:
                partial.unlink(missing_ok=True)
        fp("runner.after_spill")
        return name

    def read(self, name: str) -> bytes:
        return (Path(self._folder) / os.path.basename(name)).read_bytes()

    def entries(self) -> Iterator[tuple[str, float]]:
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    try:
                        if entry.is_file(follow_symlinks=False):
                            yield entry.name, entry.stat(follow_symlinks=False).st_mtime
                    except OSError:
                        continue
        except OSError:
            return

    def remove(self, name: str, older_than: float) -> bool:
        path = Path(self._folder) / name
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

    def remove_unused(self, names: Iterable[str]) -> None:
        older_than = time.time() - SPILL_GRACE_SECONDS
        for name in names:
            self.remove(name, older_than)


def _made_young(target: Path) -> bool:
    """Set the time of an existing file to now. Returns whether the file exists and will stay."""
    try:
        file = os.open(target, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False  # it does not exist, or belongs to another user: write it (again)
    try:
        fcntl.flock(file, fcntl.LOCK_SH)
        os.utime(file)
        return os.path.samestat(os.fstat(file), os.stat(target))
    except OSError:
        return False
    finally:
        os.close(file)
