"""The record of a worker host's process, from which its next process learns how it ended.

The record is a file beside the spool. A host that is killed cannot change it any more, so the next process finds a record that
names no end.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

from tradewind.model.moments import SECOND
from tradewind.observe.log import Log
from tradewind.platform import HAVE_LINUX
from tradewind.platform.boot import boot_id
from tradewind.platform.clock import Clock

if HAVE_LINUX:
    from tradewind.platform import linux

log = Log("host")

LOOK_EVERY = 10 * SECOND
"""How often the host checks whether the kernel has killed processes because of low memory."""

_JUST_NOW = 5 * SECOND
"""A process that ends within this time after the kernel killed a process because of low memory is assumed to be that process."""


class HostRecord:
    """The record of one process of a worker host.

    Args:
        folder: the folder of the record.
        name: the name of this process.
    """

    def __init__(self, folder: str, name: str, clock: Clock) -> None:
        self._path = os.path.join(folder, "host-record.json")
        self._name = name
        self._clock = clock
        self._begun = False
        self._oom_kills: int | None = None
        self._oom_at = -_JUST_NOW
        self.previous_process = ""
        """Name of the process before this one; empty: there was none, or it left no record."""
        self.previous_end = ""
        """How that process ended, as the reason why its tasks ended."""

    def begin(self) -> None:
        """Read the record of the process before this one, and write a new one."""
        self._begun = True
        self._oom_kills = _count_oom_kills()
        before = self._read()
        if before is not None:
            self.previous_process, self.previous_end = (
                str(before.get("name", "")),
                how_it_ended(before, boot_id(), self._oom_kills),
            )
        self._write(None)

    def look(self) -> None:
        """Keep the count of processes that the kernel killed because of low memory up to date in the record."""
        if self._count_again():
            self._write(None)

    def out_of_memory(self) -> bool | None:
        """Whether the kernel has just killed a process because of low memory. None: unknown."""
        if not self._begun:
            return None
        if self._count_again():
            self._write(None)
        if self._oom_kills is None:
            return None
        return self._clock.monotonic() - self._oom_at < _JUST_NOW

    def end(self) -> None:
        """Record that the host ends normally."""
        self._write("stopped")

    def _count_again(self) -> bool:
        count = _count_oom_kills()
        grown = count is not None and self._oom_kills is not None and count > self._oom_kills
        if grown:
            self._oom_kills, self._oom_at = count, self._clock.monotonic()
        return grown

    def _read(self) -> dict[str, Any] | None:
        try:
            with open(self._path, encoding="utf-8") as file:
                found = json.load(file)
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def _write(self, ended: str | None) -> None:
        note = {"name": self._name, "pid": os.getpid(), "boot": boot_id(), "oom_kills": self._oom_kills, "ended": ended}
        draft = f"{self._path}.new"
        try:
            with open(
                os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "w", encoding="utf-8"
            ) as file:
                json.dump(note, file)
            os.replace(draft, self._path)
        except OSError as error:
            log.warning("the record of this worker host could not be written", path=self._path, error=error.strerror)
            with contextlib.suppress(OSError):
                os.unlink(draft)


def how_it_ended(note: dict[str, Any], boot: str, oom_kills: int | None) -> str:
    """Return a clause for people: why an attempt ended that ran on the host of this record.

    Args:
        note: the record as that host left it.
        boot: the boot id of the machine now.
        oom_kills: number of processes that the kernel has killed because of low memory since the machine started; None: unknown.
    """
    if note.get("ended"):
        return "the worker host that ran it was stopped"
    if note.get("boot") != boot:
        return "the machine was restarted while it ran"
    which = f"the worker host that ran it (process {note.get('pid')})"
    before = note.get("oom_kills")
    if isinstance(before, int) and oom_kills is not None and oom_kills > before:
        return f"the machine ran out of memory, and {which} was killed"
    return f"{which} was killed"


def _count_oom_kills() -> int | None:
    return linux.oom_kills() if HAVE_LINUX else None
