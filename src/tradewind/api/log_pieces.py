"""Pieces of a task's log by byte offset. The cost of a request depends on the size of the piece, not on the size of the log.

The log of a try is one file for each attempt. Their bytes are numbered as if they were one file. An offset stays valid,
because only the last file grows. A piece has whole lines; a line that is longer than a piece is split. For the search of the
first error, the searched part of each file is remembered, and the next search continues from there.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

from tradewind.api.log_reading import SETTLED_US, record
from tradewind.storage.port import LogStorage
from tradewind.store.views import LogFile

PIECE_BYTES = 128 * 1024
PIECE_MAX = 1024 * 1024
SEARCH_BLOCK = 1024 * 1024
SEARCH_MAX = 64 * 1024 * 1024
"""How many bytes one request searches for the first error."""
SEARCHES_KEPT = 500
CONTEXT_BYTES = 4 * 1024
"""How many bytes are shown before the first error."""

_ERRORS = (b'"level":"error"', b'"level":"critical"', b'"level": "error"', b'"level": "critical"')
_OVERLAP = max(len(one) for one in _ERRORS)


class LogPart(NamedTuple):
    """The file of one attempt."""

    path: str
    start: int
    """The offset of its first byte."""
    size: int
    grows: bool
    """Whether more may be written to the file."""


class LogPiece(NamedTuple):
    """Lines of a log."""

    start: int
    end: int
    """The offset after the last line."""
    offsets: list[int]
    """The offset of each line."""
    records: list[dict[str, Any]]


def parts_of(logs: LogStorage, files: Sequence[LogFile], now: int) -> list[LogPart]:
    """The files of a try, the oldest first, with their sizes now. `now`: microseconds."""
    found: list[LogPart] = []
    start = 0
    for place, file in enumerate(files):
        path, size = _existing(logs, file)
        last = place == len(files) - 1
        grows = last and (file.ended_at is None or now - file.ended_at <= SETTLED_US)
        found.append(LogPart(path, start, size, grows))
        start += size
    return found


def size_of(parts: Sequence[LogPart]) -> int:
    return parts[-1].start + parts[-1].size if parts else 0


def grows(parts: Sequence[LogPart]) -> bool:
    """Whether more may be written: the try has not ended, or only just now."""
    return any(part.grows for part in parts)


def read_from(logs: LogStorage, parts: Sequence[LogPart], offset: int, limit: int) -> LogPiece:
    """The lines from an offset on, about `limit` bytes. An offset inside a line stands for the start of the next line."""
    start = _line_after(logs, parts, offset)
    return _read(logs, parts, start, min(size_of(parts), start + limit))


def read_before(logs: LogStorage, parts: Sequence[LogPart], offset: int, limit: int) -> LogPiece:
    """The last lines before an offset, about `limit` bytes."""
    end = min(offset, size_of(parts))
    start = _line_after(logs, parts, max(0, end - limit))
    return _read(logs, parts, start if start < end else max(0, end - limit), end)


def _read(logs: LogStorage, parts: Sequence[LogPart], start: int, end: int) -> LogPiece:
    offsets: list[int] = []
    records: list[dict[str, Any]] = []
    place = start
    for part in parts:
        begin, stop = max(start, part.start), min(end, part.start + part.size)
        if begin >= stop:
            continue
        with logs.open(part.path) as file:
            file.seek(begin - part.start)
            data = file.read(stop - begin)
        whole = data.rfind(b"\n") + 1
        unfinished = stop == part.start + part.size and not part.grows
        if whole < len(data) and not unfinished and (whole > 0 or len(data) < PIECE_MAX // 2):
            data = data[:whole]  # a line that is not read, or not written, completely
        at = begin
        for line in data.split(b"\n"):
            if line.strip():
                offsets.append(at)
                records.append(record(line.rstrip(b"\r")))
            at += len(line) + 1
        place = begin + len(data)
        if len(data) < stop - begin:
            break
    return LogPiece(start, place, offsets, records)


def _line_after(logs: LogStorage, parts: Sequence[LogPart], offset: int) -> int:
    """The offset of the first line that begins there or later. A line longer than `PIECE_MAX` is split."""
    for part in parts:
        if part.start <= offset < part.start + part.size:
            if offset == part.start:
                return offset
            with logs.open(part.path) as file:
                file.seek(offset - part.start - 1)
                found = file.read(PIECE_MAX).find(b"\n")
            return offset if found < 0 else offset + found
    return min(max(offset, 0), size_of(parts))


def _existing(logs: LogStorage, file: LogFile) -> tuple[str, int]:
    """The path of a log and its size. Earlier releases used another path. A log that does not exist has size 0."""
    for path in (file.earlier, file.path):
        if path:
            try:
                with logs.open(path) as found:
                    return path, os.fstat(found.fileno()).st_size
            except FileNotFoundError:
                continue
    return file.path, 0


class ErrorSearch:
    """Finds the first error of each log, and remembers how far each log was searched."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[int, int | None]] = OrderedDict()
        """Path → (searched up to here, the offset of the first error in the file)."""

    def first(self, logs: LogStorage, parts: Sequence[LogPart]) -> tuple[int | None, bool]:
        """(offset of the first line with level error or critical, whether everything was searched)."""
        room = SEARCH_MAX
        for part in parts:
            with self._lock:
                searched, found = self._known.get(part.path, (0, None))
            if found is None and searched < part.size:
                searched, found = _search(logs, part, searched, room)
                room -= searched
                with self._lock:
                    self._known[part.path] = (searched, found)
                    self._known.move_to_end(part.path)
                    while len(self._known) > SEARCHES_KEPT:
                        self._known.popitem(last=False)
            if found is not None:
                return part.start + found, True
            if searched < part.size:
                return None, False
        return None, True


def _search(logs: LogStorage, part: LogPart, start: int, room: int) -> tuple[int, int | None]:
    """Search a file from an offset on, at most `room` bytes. Returns (searched up to here, the first line with an error)."""
    place, end = start, min(part.size, start + max(room, 0))
    with logs.open(part.path) as file:
        while place < end:
            begin = max(0, place - _OVERLAP)
            file.seek(begin)
            data = file.read(min(SEARCH_BLOCK, end - begin))
            if not data:
                break
            hits = [hit for hit in (data.find(one) for one in _ERRORS) if hit >= 0]
            if hits:
                hit = begin + min(hits)
                file.seek(max(0, hit - PIECE_MAX))
                before = file.read(hit - max(0, hit - PIECE_MAX))
                return hit, hit - len(before) + before.rfind(b"\n") + 1
            place = begin + len(data)
    return place, None
