"""The writer's lock: whoever holds it may write the SQLite file. The scheduler holds it while it lives.

Beside it the home folder's lock: one `standalone` a home folder.

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
                    note = os.pread(file, 512, 0).decode(errors="replace").strip() or "unknown"
                    os.close(file)
                    raise StoreBusy(self.refusal(note)) from None
                time.sleep(0.02)
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
        self._file = file

    def refusal(self, note: str) -> str:
        """The sentence for whoever comes second; `note` is what the holder left: its pid and, after a blank, more."""
        return (
            f"another scheduler or command (pid {note}) is writing to this home folder; "
            "stop it first, or give this one another TRADEWIND_HOME"
        )

    def note(self, text: str) -> None:
        """Leave something to read beside the pid."""
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()} {text}".encode(), 0)

    def release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class HomeLock(WriterLock):
    """Held by `standalone`; its note is the address of the web page."""

    def refusal(self, note: str) -> str:
        pid, _, address = note.partition(" ")
        where = f" at {address}" if address else ""
        return (
            f"standalone is already running on this home folder (process {pid}{where}); "
            "stop it first, or give this one another TRADEWIND_HOME"
        )
