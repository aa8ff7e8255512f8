"""Sends the task logs of a remote worker host to its gateway, as they are written.

The log folder of a remote worker has only logs that are not stored yet: a file is deleted when the gateway has stored all of
it and no process writes to it any more. The folder is scanned from time to time, which also finds logs of an earlier process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection

from tradewind.model.moments import SECOND
from tradewind.observe.log import Log
from tradewind.platform.clock import Clock
from tradewind.storage.local_logs import LocalLogs
from tradewind.wire.gateway import PIECE, LogPiece, LogStored

log = Log("host")

IN_FLIGHT_MAX = 4 * 1024 * 1024
"""Maximum number of bytes, over all logs, that were sent and are not stored yet."""
QUIET = 5 * SECOND
"""A stored log is deleted when nothing was written to it for this time: its final line may still follow."""
RESEND_AFTER = 20 * SECOND


class _File:
    """One log file that is being sent."""

    __slots__ = ("changed", "sent", "sent_at", "source", "stored")

    def __init__(self, source: str, now: int) -> None:
        self.source = source
        self.sent = 0
        self.stored = 0
        self.sent_at = now
        self.changed = now


class LogShipper:
    """See the module.

    Args:
        folder: the log folder, absolute.
        process: name of this process, so that its files are not confused with files of an earlier process.
        send: sends a message to the gateway.
    """

    def __init__(self, folder: str, process: str, send: Callable[[LogPiece], None], clock: Clock) -> None:
        self._folder = folder
        self._process = process
        self._send = send
        self._clock = clock
        self._logs = LocalLogs(folder)
        self._files: dict[str, _File] = {}
        self._in_flight = 0
        self._count = 0

    @property
    def is_behind(self) -> bool:
        """Whether the log folder has bytes that the gateway has not stored."""
        for entry in self._logs.entries():
            file = self._files.get(entry.name)
            if file is None or file.stored < entry.size:
                return True
        return False

    def connected(self) -> None:
        """Send unconfirmed bytes again on a new connection."""
        self._in_flight = 0
        for file in self._files.values():
            file.sent = file.stored

    def ship(self, being_written: Collection[str]) -> None:
        """Send new bytes, and delete stored files.

        Args:
            being_written: logs of running attempts.
        """
        now = self._clock.monotonic()
        seen = set()
        for entry in self._logs.entries():
            seen.add(entry.name)
            file = self._files.get(entry.name)
            if file is None:
                file = self._files[entry.name] = _File(self._source(), now)
            if file.sent > file.stored and now - file.sent_at > RESEND_AFTER:
                self._in_flight -= file.sent - file.stored
                file.sent = file.stored
            if file.sent < entry.size:
                self._send_new(entry.name, file, entry.size, now)
            elif file.stored >= entry.size and entry.name not in being_written and now - file.changed > QUIET:
                self._delete(entry.name, entry.size)
                seen.discard(entry.name)
        for name in [one for one in self._files if one not in seen]:
            del self._files[name]

    def _source(self) -> str:
        """Return a name that no other file has had. (An inode number is not enough: the file system may use it again after a file
        is deleted.)
        """
        self._count += 1
        return f"{self._process}.{self._count}"

    def _send_new(self, name: str, file: _File, size: int, now: int) -> None:
        try:
            with self._logs.open(name) as opened:
                opened.seek(file.sent)
                while file.sent < size and self._in_flight < IN_FLIGHT_MAX:
                    data = opened.read(PIECE)
                    if not data:
                        break
                    self._send(LogPiece(name, file.source, file.sent, data))
                    file.sent += len(data)
                    self._in_flight += len(data)
                    file.sent_at = file.changed = now
        except OSError as error:
            log.warning("a task log cannot be read, so it cannot be sent", path=name, error=error.strerror)

    def stored(self, message: LogStored) -> None:
        """The gateway has stored a part of a log."""
        file = self._files.get(message.path)
        if file is None or file.source != message.source:
            return
        if message.problem:
            log.warning("the gateway cannot store a task log; it is sent again", path=message.path, why=message.problem)
            return
        self._in_flight = max(0, self._in_flight - max(0, min(message.size, file.sent) - file.stored))
        file.stored = max(file.stored, message.size)
        file.sent = max(file.sent, file.stored)

    def _delete(self, name: str, size: int) -> None:
        path = os.path.join(self._folder, name)
        try:
            if os.stat(path).st_size == size:
                os.unlink(path)
        except OSError:
            pass
        del self._files[name]
        try:
            os.removedirs(
                os.path.dirname(path)
            )  # an empty folder of an ended run; the log folder itself is made again when needed
        except OSError:
            pass
