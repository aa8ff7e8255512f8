"""What the parser tells its children, and what it finds in their memory files. It need not import what they import."""

from __future__ import annotations

import msgspec

from tradewind.model.definition import DefinitionDefaults
from tradewind.parser.parse_result import ChildReport
from tradewind.wire.messages import TimetableQuestion

REPORT = b"TWR1"
"""Stands before a report in the memory file; anything else in it is a note."""


class ParseOrder(msgspec.Struct, frozen=True):
    """Read one file.

    Descriptors: the memory file for the report, the pipe for what it prints, and, where somebody can answer, the line on which
    it may ask for variables and connections.
    """

    folder: str
    file: str
    memory_limit: int
    cpu_seconds: int
    max_tasks: int
    defaults: DefinitionDefaults
    user_settings: dict[str, str] = {}
    ask: TimetableQuestion | None = None
    """Instead of reading the file, ask a timetable in it or beside it."""
    plugins: bool = False
    """Instead of reading a file, load the plugins in `folder`."""


decode_report = msgspec.msgpack.Decoder(ChildReport).decode
decode_order = msgspec.msgpack.Decoder(ParseOrder).decode
