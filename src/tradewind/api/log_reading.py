"""Reading logs piece by piece: bounded memory whatever their size, and no way out of the log folder.

A try's log is one file or several (one for each attempt); they are read as one. A place in it is (fence, byte). Files are
NDJSON, one record a line; a line that is no record is shown as its text. Tasks run with our own uid and can write into the
folder, so every folder on the way is opened without following links, and only regular files are read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from tradewind.model.states import Outcome
from tradewind.storage.port import LogStorage
from tradewind.store.views import LogFile
from tradewind.wire.messages import SUCCESS_LINE

PAGE_BYTES = 256 * 1024
LINE_BYTES = 1024 * 1024
"""A longer line is shown in pieces."""

_BLOCK = 64 * 1024

SETTLED_US = 2_000_000
"""An attempt's last lines may reach the file shortly after its end was accepted: so long it may still grow."""

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class Place(NamedTuple):
    """Where to go on."""

    fence: int
    offset: int

    @property
    def token(self) -> str:
        return f"{self.fence}.{self.offset}"


def read_token(token: str) -> Place:
    """Raises ValueError: not a token of ours."""
    fence, _, offset = token.partition(".")
    if not (fence.isascii() and fence.isdigit() and offset.isascii() and offset.isdigit()) or len(token) > 40:
        raise ValueError(f"{token!r} is not a continuation token; give one that an answer of this address held")
    return Place(int(fence), int(offset))


class Piece(NamedTuple):
    """Bytes [start, end) of one attempt's file, ending with a whole line."""

    path: str
    start: int
    end: int


class Plan(NamedTuple):
    """What to read now. `onward` None: that is all there will ever be."""

    pieces: list[Piece]
    onward: Place | None


def plan(logs: LogStorage, files: Sequence[LogFile], place: Place | None, now: int, at_most: int | None = PAGE_BYTES) -> Plan:
    """Decide what the next answer holds.

    Args:
        files: of the try, oldest first.
        place: where the last answer ended; None: the beginning.
        now: wall clock, µs: a file whose attempt ended a while ago will not grow.
        at_most: bytes, rounded to whole lines; None: all there is.
    """
    pieces: list[Piece] = []
    room = at_most
    longest = min(at_most or LINE_BYTES, LINE_BYTES)
    for index, file in enumerate(files):
        if place is not None and file.fence < place.fence:
            continue
        start = place.offset if place is not None and file.fence == place.fence else 0
        done = index < len(files) - 1 or (file.ended_at is not None and now - file.ended_at > SETTLED_US)
        path = _place_of(logs, file)
        end, size = _whole_lines(logs, path, start, room, longest, done)
        if end > start:
            pieces.append(Piece(path, start, end))
        if end < size or not done:
            return Plan(pieces, Place(file.fence, end))
        if room is not None:
            room -= end - start
            if room <= 0 and index < len(files) - 1:
                return Plan(pieces, Place(files[index + 1].fence, 0))
    return Plan(pieces, None)


def why_empty(logs: LogStorage, files: Sequence[LogFile], now: int) -> str | None:
    """Why nothing can be read of a try, in a sentence; None where that is as it should be.

    Every attempt writes at least how it ended, except a success that wrote nothing else. So any other that has ended and has
    no file lost it, or could not write it.
    """
    if not files or any(_exists(logs, path) for file in files for path in (file.path, file.earlier) if path):
        return None
    problem = logs.problem()
    if problem is not None:
        return f"There is no log: {problem}"
    last = files[-1]
    if last.ended_at is None or now - last.ended_at <= SETTLED_US:
        return None
    if last.outcome == Outcome.SUCCESS.value:
        return f"{SUCCESS_LINE} There is no log file: the attempt wrote nothing, or its log was deleted."
    return (
        f"There is no log file of this attempt ({logs.shown(last.path)}). It was deleted (see logging.retention_days and "
        "logging.max_total_mb), or its worker could not write it; then the worker's own log says why."
    )


def _place_of(logs: LogStorage, file: LogFile) -> str:
    """Where the log lies: earlier releases used another layout."""
    return file.earlier if file.earlier and _exists(logs, file.earlier) else file.path


def _exists(logs: LogStorage, path: str) -> bool:
    try:
        logs.open(path).close()
    except FileNotFoundError:
        return False
    return True


def lines(logs: LogStorage, pieces: Sequence[Piece]) -> Iterator[bytes]:
    """The lines of the pieces, without their ends; at most `LINE_BYTES` in memory."""
    for piece in pieces:
        with logs.open(piece.path) as file:
            file.seek(piece.start)
            left = piece.end - piece.start
            while left > 0:
                line = file.readline(min(left, LINE_BYTES))
                if not line:
                    break
                left -= len(line)
                yield line.rstrip(b"\r\n")


def record(line: bytes) -> dict[str, Any]:
    """A line as a record with at least `event`."""
    try:
        found = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = None
    if not isinstance(found, dict):
        return {"event": line.decode("utf-8", "replace")}
    if not isinstance(found.get("event"), str):
        found["event"] = str(found.get("event", ""))
    return found


def said(sentence: str) -> dict[str, Any]:
    """A record of ours, in the place of a log."""
    level = "info" if sentence.startswith(SUCCESS_LINE) else "warning"
    return {"level": level, "event": sentence, "logger": "tradewind"}


def encoded(sentence: str) -> bytes:
    """The same as a line of NDJSON."""
    return _encode(said(sentence)) + b"\n"


def ndjson(logs: LogStorage, pieces: Sequence[Piece]) -> Iterator[bytes]:
    """The records as NDJSON, some at a time."""
    block = bytearray()
    for line in lines(logs, pieces):
        if line:
            block += _encode(record(line))
            block += b"\n"
        if len(block) >= _BLOCK:
            yield bytes(block)
            block.clear()
    if block:
        yield bytes(block)


def _whole_lines(logs: LogStorage, path: str, start: int, room: int | None, longest: int, done: bool) -> tuple[int, int]:
    """Where the last whole line ends that fits in `room` bytes from `start` on, and the size of the file.

    A line of more than `longest` bytes is cut there; a last line without an end counts when the file is `done`.
    """
    try:
        file = logs.open(path)
    except FileNotFoundError:
        return start, 0
    with file:
        size = os.fstat(file.fileno()).st_size
        end = size if room is None else min(size, start + max(room, 1))
        if end <= start or (end == size and done):
            return max(end, start), size
        position = end
        while position > start:
            step = min(_BLOCK, position - start)
            file.seek(position - step)
            found = file.read(step).rfind(b"\n")
            if found >= 0:
                return position - step + found + 1, size
            position -= step
        return (end if end - start >= longest else start), size
