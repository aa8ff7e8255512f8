"""Verdicts that the scheduler has not acknowledged, kept on disk while nobody can hear them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tradewind.wire.frames import FrameReader, frame
from tradewind.wire.messages import AttemptKey, Report, encode


class Spooled(msgspec.Struct, frozen=True):
    attempt: AttemptKey
    report: Report


_decode = msgspec.msgpack.Decoder(Spooled).decode


class Spool:
    """One append-only file; a torn last record is ignored."""

    def __init__(self, folder: str) -> None:
        self._path = Path(folder) / "verdicts"

    def load(self) -> dict[AttemptKey, Report]:
        """Verdicts of an earlier life."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        found = {}
        for document in FrameReader().feed(data):
            try:
                spooled = _decode(document)
            except msgspec.MsgspecError:
                continue
            found[spooled.attempt] = spooled.report
        return found

    def add(self, verdicts: Iterable[tuple[AttemptKey, Report]]) -> None:
        """Append durably."""
        data = b"".join(frame(encode(Spooled(key, report))) for key, report in verdicts)
        if not data:
            return
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, data)
            os.fsync(file)
        finally:
            os.close(file)

    def clear(self) -> None:
        """All of them count now."""
        self._path.unlink(missing_ok=True)
