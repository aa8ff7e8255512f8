"""Frames: a length, followed by this number of bytes. Without IO, so that every process can use its own loop.

A frame is a 4-byte big-endian length followed by a msgpack document. `FrameReader` gets the bytes of the socket and yields whole
documents; an incomplete frame is kept until the rest arrives.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tradewind.model.errors import WireError

_LENGTH = struct.Struct(">I")
MAX_FRAME_BYTES = 512 * 1024 * 1024
"""A definition of 100,000 tasks has about 20 MB; a longer frame than this limit does not come from Tradewind."""


def frame(document: bytes) -> bytes:
    """The frame of a document."""
    return _LENGTH.pack(len(document)) + document


class FrameReader:
    """Splits a stream of bytes into documents."""

    __slots__ = ("_buffer", "_limit")

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._buffer = bytearray()
        self._limit = limit

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Add received bytes and yield every document that is complete now.

        Raises:
            WireError: the length is above the limit; the rest of the stream cannot be read.
        """
        buffer = self._buffer
        buffer += data
        position = 0
        try:
            while len(buffer) - position >= 4:
                (length,) = _LENGTH.unpack_from(buffer, position)
                if length > self._limit:
                    raise WireError(f"a frame of {length} bytes is above the limit of {self._limit} bytes")
                end = position + 4 + length
                if len(buffer) < end:
                    break
                document = bytes(buffer[position + 4 : end])
                position = end
                yield document
        finally:
            if position:
                del buffer[:position]
