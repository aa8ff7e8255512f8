"""Orders from the parser to its child processes, and the format of their reports. Does not import what the children import."""

from __future__ import annotations

import msgspec

from tradewind.model.definition import DefinitionDefaults
from tradewind.parser.parse_result import ChildReport
from tradewind.wire.messages import AssetsChanged, TimetableQuestion

REPORT = b"TWR1"
"""The prefix of a report in the memory file. Without this prefix, the content is a crash note."""


class ParseOrder(msgspec.Struct, frozen=True):
    """Read one file.

    Descriptors: the memory file for the report, the pipe for the file's output, and, if lookups can be answered, the socket for
    requests for variables and connections.
    """

    folder: str
    file: str
    memory_limit: int
    cpu_seconds: int
    max_tasks: int
    defaults: DefinitionDefaults
    user_settings: dict[str, str] = {}
    ask: TimetableQuestion | None = None
    """Call a method of this timetable instead of reading the file."""
    plugins: bool = False
    """Load the plugins in `folder` instead of reading a file."""
    import_error: tuple[str, str, str] | None = None
    """(event, path of the file, stack trace): call the listeners of this event instead of reading a file."""
    find_connections: bool = False
    """Report the connection ids of the operators, too."""
    changed_assets: AssetsChanged | None = None
    """Tell the listeners of these assets and aliases instead of reading a file."""


decode_report = msgspec.msgpack.Decoder(ChildReport).decode
decode_order = msgspec.msgpack.Decoder(ParseOrder).decode
