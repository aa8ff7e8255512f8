"""One attempt's output: from its pipe into its log file, stamped, masked and bounded.

The file holds one JSON object a line: `timestamp`, `level`, `event`, and `logger` for records of Python's logging. It is opened
at the first byte of output, so a silent task costs nothing. Memory is bounded by the longest line that is kept; the file by
`log_max`: its first half is kept as it comes, then only the newest lines, with a note of how much is missing between.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tradewind.runner.log_records import RECORD_MARK

_encode = msgspec.json.Encoder().encode
MASK = "***"
READ_SIZE = 64 * 1024
SHORTEST_SECRET = 4
"""Shorter values are not masked: they would blank out ordinary text."""


class LogCapture:
    """Feed it bytes; it writes lines.

    Args:
        path: the log file; its folder is made when it is needed.
        wall: reads the time, microseconds UTC.
        file_max: bytes kept of the whole file.
        line_max: bytes kept of one line.
    """

    def __init__(self, path: Path, wall: Callable[[], int], file_max: int, line_max: int) -> None:
        self.path = path
        self._wall = wall
        self._head_max = file_max // 2
        self._tail_max = file_max - self._head_max
        self._line_max = line_max
        self._file: int = -1
        self._written = 0
        self._part = bytearray()
        self._dropped_of_line = 0
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._missing = 0
        self._secrets: list[str] = []
        self.problem: str | None = None

    def mask(self, values: Iterable[str]) -> None:
        """Never write these texts from now on. The longest are looked for first."""
        known = {value for value in values if len(value) >= SHORTEST_SECRET} | set(self._secrets)
        self._secrets = sorted(known, key=len, reverse=True)

    def feed(self, data: bytes) -> None:
        """Take output as it came."""
        start = 0
        lines = []
        while (end := data.find(b"\n", start)) >= 0:
            self._grow(data[start:end])
            lines.append(self._take_line())
            start = end + 1
        self._grow(data[start:])
        if lines:
            self._write([line for line in lines if line is not None])

    def note(self, level: str, event: str) -> None:
        """A line of the host's own."""
        self._write([self._line(level, event, "tradewind")])

    def close(self) -> None:
        """Write what is left, and the kept tail of a log that was too long."""
        if self._part or self._dropped_of_line:
            line = self._take_line()
            if line is not None:
                self._write([line])
        if self._missing or self._tail:
            note = self._line("warning", f"… {self._missing} bytes of output are left out here …", "tradewind")
            self._put(b"".join([note, *self._tail] if self._missing else self._tail))
            self._tail.clear()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _grow(self, piece: bytes) -> None:
        room = self._line_max - len(self._part)
        if len(piece) > room:
            self._dropped_of_line += len(piece) - max(room, 0)
            piece = piece[: max(room, 0)]
        self._part += piece

    def _take_line(self) -> bytes | None:
        raw, dropped = bytes(self._part), self._dropped_of_line
        self._part.clear()
        self._dropped_of_line = 0
        if raw[:1] == RECORD_MARK:
            try:
                record = msgspec.json.decode(raw[1:])
                return self._line(str(record["level"]), str(record["event"]), str(record.get("logger") or "") or None)
            except (msgspec.DecodeError, KeyError, TypeError):
                raw = raw[1:]
        text = raw.decode("utf-8", "backslashreplace").rstrip("\r")
        if dropped:
            text += f" … ({dropped} more bytes in this line)"
        return self._line("info", text, None)

    def _line(self, level: str, event: str, logger: str | None) -> bytes:
        for secret in self._secrets:
            if secret in event:
                event = event.replace(secret, MASK)
        moment = datetime.fromtimestamp(self._wall() / 1e6, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        record = {"timestamp": moment, "level": level, "event": event}
        if logger:
            record["logger"] = logger
        return _encode(record) + b"\n"

    def _write(self, lines: list[bytes]) -> None:
        if self._written < self._head_max:
            data = b"".join(lines)
            self._put(data)
            self._written += len(data)
            return
        for line in lines:
            self._tail.append(line)
            self._tail_size += len(line)
        while self._tail_size > min(self._tail_max, TAIL_IN_MEMORY) and self._tail:
            gone = len(self._tail.popleft())
            self._tail_size -= gone
            self._missing += gone

    def _put(self, data: bytes) -> None:
        try:
            if self._file < 0:
                self._file = _open(self.path)
            view = memoryview(data)
            while view:
                view = view[os.write(self._file, view) :]
        except OSError as error:
            self.problem = f"the log {self.path} cannot be written: {error.strerror}"


def _open(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return os.open(path, flags, 0o600)


TAIL_IN_MEMORY = 1024 * 1024
"""The newest lines of an overlong log wait here until the attempt ends."""
