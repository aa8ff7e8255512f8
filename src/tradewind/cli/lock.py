"""The writer's lock: whoever holds it may write the SQLite file. The scheduler holds it while it lives.

An advisory lock on a file in the home folder; the kernel releases it when its holder dies, however it dies.
"""

from __future__ import annotations

import fcntl
import os
import time

from tradewind.model.errors import StoreBusy


class WriterLock:
    """Held from `take` to `release`, or to the end of the process."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = -1

    def take(self, patience_seconds: float = 0.0) -> None:
        """Take the lock.

        Raises:
            StoreBusy: another process holds it still after `patience_seconds`; its pid is named.
        """
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + patience_seconds
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    holder = os.pread(file, 32, 0).decode(errors="replace").strip() or "unknown"
                    os.close(file)
                    raise StoreBusy(
                        f"another scheduler or command (pid {holder}) is writing to this home folder; "
                        "stop it first, or give this one another TRADEWIND_HOME"
                    ) from None
                time.sleep(0.02)
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
        self._file = file

    def release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
