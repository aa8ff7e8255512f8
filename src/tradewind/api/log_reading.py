"""Reads task logs in parts: with bounded memory for logs of any size, and only files of the log folder.

The log of a try is one file for each attempt; the files are read as one. A position in it is (fence, byte). Files are NDJSON, one
record a line; a line that is not a record is shown as its text. Tasks run as this user and can write to the folder. So every
folder of a path is opened without following links, and only regular files are read.
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
"""A longer line is split."""

_BLOCK = 64 * 1024

SETTLED_US = 2_000_000
"""Time after the accepted end of an attempt in which its log can still grow: its last lines may be written later."""

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class Position(NamedTuple):
    """The position at which the next response begins."""

    fence: int
    offset: int

    @property
    def token(self) -> str:
        return f"{self.fence}.{self.offset}"


def parse_token(token: str) -> Position:
    """The position of a continuation token. Raises ValueError: the text is not such a token."""
    fence, _, offset = token.partition(".")
    if not (fence.isascii() and fence.isdigit() and offset.isascii() and offset.isdigit()) or len(token) > 40:
        raise ValueError(f"{token!r} is not a continuation token; send one from an earlier response of this route")
    return Position(int(fence), int(offset))


class FilePart(NamedTuple):
    """Bytes [start, end) of the file of one attempt. It ends with a whole line."""

    path: str
    start: int
    end: int


HOST_LOG_SAYS = "The log of the worker host says why, for example a full disk."
CUT_OFF = f"… a part of the log is missing here: it could not be written. {HOST_LOG_SAYS}"
_RECORD_BEGINS = b'{"timestamp":"'
"""How the worker host begins each record. A line that begins like this and is no record was cut off."""


class ReadPlan(NamedTuple):
    """What to read now. `next_position` None: the log is complete."""

    pieces: list[FilePart]
    next_position: Position | None


def plan(
    logs: LogStorage, files: Sequence[LogFile], place: Position | None, now: int, at_most: int | None = PAGE_BYTES
) -> ReadPlan:
    """Decide what the next response contains.

    Args:
        files: the log files of the try, oldest first.
        place: where the last response ended; None: the beginning.
        now: wall clock, microseconds. The file of an attempt that ended a while ago does not grow any more.
        at_most: maximum of bytes, rounded to whole lines; None: everything.
    """
    pieces: list[FilePart] = []
    room = at_most
    longest = min(at_most or LINE_BYTES, LINE_BYTES)
    for index, file in enumerate(files):
        if place is not None and file.fence < place.fence:
            continue
        start = place.offset if place is not None and file.fence == place.fence else 0
        done = index < len(files) - 1 or (file.ended_at is not None and now - file.ended_at > SETTLED_US)
        path = _log_path(logs, file)
        end, size = _whole_lines(logs, path, start, room, longest, done)
        if end > start:
            pieces.append(FilePart(path, start, end))
        if end < size or not done:
            return ReadPlan(pieces, Position(file.fence, end))
        if room is not None:
            room -= end - start
            if room <= 0 and index < len(files) - 1:
                return ReadPlan(pieces, Position(files[index + 1].fence, 0))
    return ReadPlan(pieces, None)


def missing_log_notice(logs: LogStorage, files: Sequence[LogFile], now: int) -> str | None:
    """A sentence that says why a try has no log; None if a missing log is normal.

    Every attempt writes at least a line about its end, except a success that wrote nothing else. So if any other attempt has ended
    and has no file, the file was deleted or could not be written. A file is made by its first line, so an empty one could not be
    written either.
    """
    sizes = [_size(logs, path) for file in files for path in (file.path, file.earlier) if path]
    if not files or any(sizes):
        return None
    problem = logs.problem()
    if problem is not None:
        return f"There is no log: {problem}"
    last = files[-1]
    if last.ended_at is None or now - last.ended_at <= SETTLED_US:
        return None
    if 0 in sizes:
        return f"The log is empty, because its worker host could not write it ({logs.shown(last.path)}). {HOST_LOG_SAYS}"
    if last.outcome == Outcome.SUCCESS.value:
        return f"{SUCCESS_LINE} There is no log file: the attempt wrote nothing, or its log was deleted."
    return (
        f"There is no log file of this attempt ({logs.shown(last.path)}). It was deleted (see logging.retention_days and "
        "logging.max_total_mb), or its worker host could not write it; then the log of the worker host says why."
    )


def _log_path(logs: LogStorage, file: LogFile) -> str:
    """The path of the log. Earlier releases used another layout."""
    return file.earlier if file.earlier and _exists(logs, file.earlier) else file.path


def _exists(logs: LogStorage, path: str) -> bool:
    return _size(logs, path) is not None


def _size(logs: LogStorage, path: str) -> int | None:
    """The size of a log in bytes; None if there is no file."""
    try:
        with logs.open(path) as file:
            return os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        return None


def lines(logs: LogStorage, pieces: Sequence[FilePart]) -> Iterator[bytes]:
    """The lines of the parts, without line ends. At most `LINE_BYTES` are in memory."""
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
    """A line as a record that has at least the field `event`."""
    try:
        found = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        found = None
    if not isinstance(found, dict):
        if line.startswith(_RECORD_BEGINS) or _RECORD_BEGINS.startswith(line):
            return {"level": "error", "event": f"{line.decode('utf-8', 'replace')} {CUT_OFF}", "logger": "tradewind"}
        return {"event": line.decode("utf-8", "replace")}
    if not isinstance(found.get("event"), str):
        found["event"] = str(found.get("event", ""))
    return found


def notice_record(sentence: str) -> dict[str, Any]:
    """A record with a sentence of Tradewind, in place of a log."""
    level = "info" if sentence.startswith(SUCCESS_LINE) else "warning"
    return {"level": level, "event": sentence, "logger": "tradewind"}


def notice_line(sentence: str) -> bytes:
    """`notice_record` as a line of NDJSON."""
    return _encode(notice_record(sentence)) + b"\n"


def ndjson(logs: LogStorage, pieces: Sequence[FilePart]) -> Iterator[bytes]:
    """The records as NDJSON, in blocks."""
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
    """(end of the last whole line that fits into `room` bytes from `start` on, size of the file).

    A line of more than `longest` bytes is split there. A last line without a line end counts if the file is `done`.
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
