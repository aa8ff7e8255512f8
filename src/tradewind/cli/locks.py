"""The writer lock and the home lock of a home folder.

The process that holds the writer lock may write to the SQLite database. A scheduler holds it while it runs. `standalone` also holds
the home lock, so that only one runs on a home folder.

Both are advisory locks on files in the home folder. The kernel releases them when their process ends, in whatever way.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tradewind.model.errors import StoreBusy
from tradewind.model.moments import SECOND
from tradewind.settings import Settings

START_ADVICE = "stop it first, or use another TRADEWIND_HOME for this one"
STOP_ADVICE = "stop it first"


class WriterLock:
    """Held from `acquire` to `release`, or to the end of the process."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = -1

    def acquire(self, timeout_seconds: float = 0.0, advice: str = START_ADVICE) -> None:
        """Acquire the lock.

        Args:
            advice: what helps if another process holds it; `{pid}` stands for that process.

        Raises:
            StoreBusy: another process still holds the lock after `timeout_seconds`; the message has its pid.
        """
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + timeout_seconds
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    note = os.pread(file, 512, 0).decode(errors="replace").strip() or "unknown"
                    os.close(file)
                    raise StoreBusy(f"{self.held_by(note)}; {advice.replace('{pid}', note.partition(' ')[0])}") from None
                time.sleep(0.02)
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
        self._file = file

    def held_by(self, note: str) -> str:
        """Who holds the lock, as a sentence. `note`: the holder's pid and, after a space, its note."""
        return f"another scheduler or command (pid {note}) is writing to this home folder"

    def write_note(self, text: str) -> None:
        """Write a text after the pid into the lock file."""
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()} {text}".encode(), 0)

    def release(self) -> None:
        """Release the lock, if it is held."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class HomeLock(WriterLock):
    """Held by `standalone`; its note is the address of the web page."""

    def held_by(self, note: str) -> str:
        pid, _, address = note.partition(" ")
        where = f" at {address}" if address else ""
        return f"standalone is already running on this home folder (process {pid}{where})"


def refuse_active_scheduler(settings: Settings) -> None:
    """Refuse to replace the database of a server while a scheduler works with it, perhaps on another machine.

    Raises:
        StoreBusy: a scheduler has the lease.
    """
    from tradewind.store.factory import active_scheduler

    found = active_scheduler(settings.store)
    if found is not None:
        raise StoreBusy(
            f"the scheduler on {found.hostname} (process {found.pid}) works with {settings.store_name}. Stop all schedulers of "
            "this database first, on every machine. If that process does not exist any more, its lease ends within a minute"
        )


def writer_lock(settings: Settings) -> WriterLock:
    """The lock of the process that writes to the database."""
    return WriterLock(settings.paths.lock)


def home_lock(settings: Settings) -> HomeLock:
    """The lock of a running `standalone`."""
    return HomeLock(os.path.join(settings.paths.run, "standalone.lock"))


@contextmanager
def exclusive_access(settings: Settings, then: str = "") -> Iterator[None]:
    """Hold both locks of a home folder, so that no service runs and no command writes to its database.

    Args:
        then: for people, what to do after `standalone` has been stopped, line by line.

    Raises:
        StoreBusy: `standalone`, a scheduler or a command is running.
    """
    home, writer = home_lock(settings), writer_lock(settings)
    seconds = settings.runner.drain_timeout_us // SECOND
    stop = (
        f"kill {{pid}} && tail --pid={{pid}} -f /dev/null    # running tasks have {seconds} s to finish (runner.drain_timeout)"
    )
    home.acquire(advice=f"{STOP_ADVICE}:\n  {stop}{then}")
    try:
        writer.acquire(advice=STOP_ADVICE)
        yield
    finally:
        writer.release()
        home.release()
