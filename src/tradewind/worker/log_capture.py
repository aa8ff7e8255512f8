"""Reads the output of one attempt from its pipe and writes it into its log file, with timestamps, without secrets, within limits.

The file has one JSON object per line: `timestamp`, `level`, `event`, and `logger` for records of Python's logging. The file is
opened at the first byte of output, so a task without output needs no file. Memory is bounded by the longest line that is kept, the
file by `log_max`: its first half has the oldest lines, the rest the newest, with a note of how much is missing between them.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tradewind.model.secret_mask import SecretMask
from tradewind.platform.private_file import private_folder
from tradewind.worker.log_records import RECORD_MARK

_encode = msgspec.json.Encoder().encode
READ_SIZE = 64 * 1024


class LogCapture:
    """Takes bytes of output and writes lines of the log.

    Args:
        path: the log file; its folder is created when needed.
        wall: reads the time, microseconds UTC.
        file_max: bytes kept of the whole file.
        line_max: bytes kept of one line.
        mask: secrets that are known from the beginning.
    """

    def __init__(
        self, path: Path, wall: Callable[[], int], file_max: int, line_max: int, mask: SecretMask | None = None
    ) -> None:
        self.path = path
        self._wall = wall
        self._head_max = file_max // 2
        self._tail_max = file_max - self._head_max
        self._line_max = line_max
        self._file: int = -1
        self._written = 0
        self._part = bytearray()
        self._dropped_of_line = 0
        self._tail: deque[tuple[int | None, bytes]] = deque()
        """After the first half: (moment, raw output), or (None, a line of the host)."""
        self._tail_size = 0
        self._missing = 0
        self._mask = mask if mask is not None else SecretMask()
        self.problem: str | None = None
        """Why output could not be written; None while all of it could."""
        self.has_written = False
        self._unwritten = 0
        """Bytes that could not be written."""

    def mask(self, values: Iterable[str]) -> None:
        """Replace these texts in everything that is written from now on."""
        self._mask = self._mask.plus(values)

    @property
    def is_silent(self) -> bool:
        """True if there was no output so far."""
        return not (self.has_written or self._part or self._tail or self._dropped_of_line or self.problem)

    @property
    def knows_secrets(self) -> bool:
        return bool(self._mask)

    def masked(self, text: str) -> str:
        """The text without the secrets that are known so far."""
        return self._mask.text(text)

    def masked_json(self, data: bytes) -> bytes:
        """A JSON document without these secrets in its texts."""
        return _encode(self._mask.value(msgspec.json.decode(data))) if data else data

    def feed(self, data: bytes) -> None:
        """Take bytes of output."""
        if self._written >= self._head_max:
            self._keep(self._wall(), data)
            return
        start = 0
        lines = []
        while (end := data.find(b"\n", start)) >= 0:
            self._add_to_line(data[start:end])
            lines.append(self._finish_line())
            start = end + 1
        self._add_to_line(data[start:])
        if lines:
            self._write(lines)

    def note(self, level: str, event: str, logger: str | None = "tradewind") -> None:
        """Write a line of the host, or of a trigger."""
        line = self._line(level, event, logger)
        if self._written < self._head_max:
            self._write([line])
        else:
            self._keep(None, line)

    def end_line(self) -> None:
        """Write output that has no line end yet, so that the next note follows it."""
        if self._tail:
            moment, data = self._tail[-1]
            if moment is not None and not data.endswith(b"\n"):
                self._keep(self._wall(), b"\n")
        elif self._part or self._dropped_of_line:
            self._write([self._finish_line()])

    def close(self) -> None:
        """Write the rest, and the kept tail of a log that was too long."""
        lines = self._tail_lines() if self._tail else []
        if self._part or self._dropped_of_line:
            lines.append(self._finish_line())
        if lines:
            self._write_bytes(b"".join(lines))
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _keep(self, moment: int | None, data: bytes) -> None:
        """Keep the newest output unprocessed: most of it is dropped later, so it must be cheap."""
        self._tail.append((moment, data))
        self._tail_size += len(data)
        while self._tail_size - len(self._tail[0][1]) >= min(self._tail_max, TAIL_IN_MEMORY):
            self._missing += len(self._tail[0][1])
            self._tail_size -= len(self._tail.popleft()[1])

    def _tail_lines(self) -> list[bytes]:
        """The newest lines, after a note of how much is missing before them."""
        lines: deque[bytes] = deque()
        size = 0
        for moment, data in self._tail:
            if moment is None:
                lines.append(data)
            else:
                pieces = data.split(b"\n")
                for piece in pieces[:-1]:
                    self._add_to_line(piece)
                    lines.append(self._finish_line(moment))
                    size += len(lines[-1])
                self._add_to_line(pieces[-1])
            while size > self._tail_max:
                self._missing += len(lines[0])
                size -= len(lines.popleft())
        self._tail.clear()
        if self._missing:
            lines.appendleft(self._line("warning", f"… {self._missing} bytes of output are left out here …", "tradewind"))
        return list(lines)

    def _add_to_line(self, piece: bytes) -> None:
        room = self._line_max - len(self._part)
        if len(piece) > room:
            self._dropped_of_line += len(piece) - max(room, 0)
            piece = piece[: max(room, 0)]
        self._part += piece

    def _finish_line(self, moment: int | None = None) -> bytes:
        raw, dropped = bytes(self._part), self._dropped_of_line
        self._part.clear()
        self._dropped_of_line = 0
        if raw[:1] == RECORD_MARK:
            try:
                record = msgspec.json.decode(raw[1:])
                return self._line(str(record["level"]), str(record["event"]), str(record.get("logger") or "") or None, moment)
            except (msgspec.DecodeError, KeyError, TypeError):
                raw = raw[1:]
        text = raw.decode("utf-8", "backslashreplace").rstrip("\r")
        if dropped:
            text += f" … ({dropped} more bytes in this line)"
        return self._line("info", text, None, moment)

    def _line(self, level: str, event: str, logger: str | None, at: int | None = None) -> bytes:
        event = self._mask.text(event)
        at = self._wall() if at is None else at
        moment = datetime.fromtimestamp(at / 1e6, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        record = {"timestamp": moment, "level": level, "event": event}
        if logger:
            record["logger"] = logger
        return _encode(record) + b"\n"

    def _write(self, lines: list[bytes]) -> None:
        data = b"".join(lines)
        self._write_bytes(data)
        self._written += len(data)

    def _write_bytes(self, data: bytes) -> None:
        wanted = len(data)
        if self._unwritten:
            text = f"… {self._unwritten} bytes of the log are missing here: {self.problem} …"
            data = self._line("error", text, "tradewind") + data
        view = memoryview(data)
        try:
            if self._file < 0:
                self._file = _open(self.path)
            while view:
                view = view[os.write(self._file, view) :]
            self.has_written, self._unwritten = True, 0
        except OSError as error:
            self.problem = f"the log {self.path} cannot be written: {error.strerror}"
            self._unwritten += min(len(view), wanted)


def _open(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    for _ in range(_FOLDER_TRIES):
        try:
            return os.open(path, flags, 0o600)
        except FileNotFoundError:
            private_folder(str(path.parent))
    return os.open(path, flags, 0o600)


_FOLDER_TRIES = 3
"""Number of times that a missing folder is made: an empty folder may be deleted before the file in it is created."""

TAIL_IN_MEMORY = 1024 * 1024
"""Bytes of the newest lines of a log that is too long. They stay in memory until the attempt ends."""
