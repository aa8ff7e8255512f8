"""Stores the logs that remote workers send, in the log folder that API and command line read.

A piece is appended if it begins where the stored part of the worker's file ends. The position in memory is a hint. After a
restart of the gateway, the first piece of a file is compared with the end of the stored log, because the acknowledgement of this
piece may have been lost.
"""

from __future__ import annotations

import os
from collections import OrderedDict

from tradewind.platform.private_file import private_folder
from tradewind.wire.gateway import LogPiece, LogStored
from tradewind.wire.log_paths import is_log

REMEMBERED_MAX = 10_000
"""Maximum number of files whose position is kept. The oldest are removed first."""
_DEPTH_MAX = 5


class LogStore:
    """See the module.

    Args:
        folder: absolute path of the log folder.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._sizes: OrderedDict[tuple[str, str, str], int] = OrderedDict()
        """(worker, path, source) → number of stored bytes of this file."""

    def store(self, worker: str, piece: LogPiece) -> LogStored:
        """Store a piece, and return the answer."""
        if not is_log_path(piece.path):
            return LogStored(piece.path, piece.source, 0, problem=f"{piece.path!r} is not the path of a task log")
        known = self._sizes.get((worker, piece.path, piece.source))
        end = piece.offset + len(piece.data)
        if known is not None and end <= known:
            return LogStored(piece.path, piece.source, known)
        if known is not None and piece.offset > known:
            return LogStored(piece.path, piece.source, known, problem=f"bytes {known} to {piece.offset} are missing")
        data = piece.data if known is None else piece.data[known - piece.offset :]
        try:
            self._append(piece.path, data, compare=known is None)
        except OSError as error:
            return LogStored(piece.path, piece.source, known or 0, problem=f"the log cannot be written: {error.strerror}")
        self._remember((worker, piece.path, piece.source), end)
        return LogStored(piece.path, piece.source, end)

    def _append(self, path: str, data: bytes, *, compare: bool) -> None:
        full = os.path.join(self._folder, path)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            file = os.open(full, flags, 0o600)
        except FileNotFoundError:
            private_folder(os.path.dirname(full))
            file = os.open(full, flags, 0o600)
        try:
            size = os.fstat(file).st_size
            if compare and data and size >= len(data) and os.pread(file, len(data), size - len(data)) == data:
                return
            view = memoryview(data)
            while view:
                view = view[os.write(file, view) :]
        finally:
            os.close(file)

    def _remember(self, key: tuple[str, str, str], size: int) -> None:
        self._sizes[key] = size
        self._sizes.move_to_end(key)
        while len(self._sizes) > REMEMBERED_MAX:
            self._sizes.popitem(last=False)


def is_log_path(path: str) -> bool:
    """Whether this is the relative path of a task log that stays inside the log folder."""
    parts = path.split("/")
    if not 2 <= len(parts) <= _DEPTH_MAX or "\0" in path:
        return False
    return all(part not in ("", ".", "..") and not part.startswith(".") for part in parts) and is_log(parts[-1])
