"""Reports that the scheduler has not acknowledged, kept on the disk while the scheduler is away."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tradewind.model.errors import WireError
from tradewind.observe.failpoints import fp
from tradewind.platform.private_file import sync_folder
from tradewind.wire.frames import FrameReader, frame
from tradewind.wire.messages import AttemptKey, Report, encode


class Spooled(msgspec.Struct, frozen=True, omit_defaults=True):
    attempt: AttemptKey
    report: Report
    token: str = ""
    """Proves to a gateway that this worker was given the attempt. Empty beside a scheduler."""


_decode = msgspec.msgpack.Decoder(Spooled).decode


class Spool:
    """One append-only file. An incomplete last record is ignored, and cut off before anything is appended."""

    def __init__(self, folder: str) -> None:
        self._path = Path(folder) / "verdicts"
        self.tokens: dict[AttemptKey, str] = {}
        """The tokens of the loaded reports."""

    def load(self) -> dict[AttemptKey, Report]:
        """Reports of an earlier process."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        found = {}
        whole = 0
        try:
            for document in FrameReader().feed(data):
                whole += len(frame(document))
                try:
                    spooled = _decode(document)
                except msgspec.MsgspecError:
                    continue
                found[spooled.attempt] = spooled.report
                if spooled.token:
                    self.tokens[spooled.attempt] = spooled.token
        except WireError:
            pass  # the rest was not written completely
        if whole < len(data):
            os.truncate(self._path, whole)
        return found

    def add(self, verdicts: Iterable[tuple[AttemptKey, Report] | tuple[AttemptKey, Report, str]]) -> None:
        """Append reports, with their tokens if they have some, with fsync."""
        data = b"".join(frame(encode(Spooled(*one))) for one in verdicts)
        if not data:
            return
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fp("host.before_spool")
            before = os.fstat(file).st_size
            if os.write(file, data) < len(data):
                os.ftruncate(file, before)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file)
            if before == 0:
                sync_folder(os.path.dirname(self._path))
            fp("host.after_spool")
        finally:
            os.close(file)

    def clear(self) -> None:
        """Delete the file: the scheduler has acknowledged all reports."""
        fp("host.before_spool_goes")
        self._path.unlink(missing_ok=True)
