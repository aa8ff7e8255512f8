"""Where an attempt's log lies, below the log folder. The runner writes there, the API and the command line read there.

    <dag_id>/<run_id>/<task_id>~attempt=<try>.<fence>.log
    <dag_id>/<run_id>/<task_id>~map_index=<n>~attempt=<try>.<fence>.log
    <dag_id>/<run_id>/~callbacks.log

A run has one folder, which goes with it. Earlier releases made one for each task, and one for each instance of a mapped task:
their logs are still found. Ids come from people: each becomes exactly one part of a name, whatever it holds. Different ids give
different names.
"""

from __future__ import annotations

import functools
import re

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.+=@,")
"""Kept as they are; everything else becomes %XX of its UTF-8 bytes. No `:`, `/`, `%`, `~`: they are special somewhere."""

_NAME = re.compile(r"(^|~)attempt=\d+\.\d+\.log$|^~callbacks\.log$")

_LONGEST = 200
"""File names end at 255 bytes on every common file system; a segment that would be longer is cut and gets a hash."""


def log_path(dag_id: str, run_id: str, task_id: str, map_index: int, try_number: int, fence: int) -> str:
    """The path of one attempt's log relative to the log folder, with forward slashes.

    Args:
        map_index: -1 for a task that is not mapped.
        try_number: as people count, from 1.
        fence: distinguishes the attempts of one try (a sensor that was called again, a lost worker).
    """
    index = f"~map_index={map_index:d}" if map_index >= 0 else ""
    return f"{segment(dag_id)}/{segment(run_id)}/{segment(task_id)}{index}~attempt={try_number:d}.{fence:d}.log"


def earlier_log_path(dag_id: str, run_id: str, task_id: str, map_index: int, try_number: int, fence: int) -> str:
    """Where releases before this one wrote the same log: in a folder of the task."""
    index = f"/map_index={map_index:d}" if map_index >= 0 else ""
    return f"{segment(dag_id)}/{segment(run_id)}/{segment(task_id)}{index}/attempt={try_number:d}.{fence:d}.log"


def run_folder(dag_id: str, run_id: str) -> str:
    """The folder of all logs of a run."""
    return f"{segment(dag_id)}/{segment(run_id)}"


def is_log(name: str) -> bool:
    """Is a file of this name one of ours, in this layout or the earlier one?"""
    return _NAME.search(name) is not None


def callbacks_log_path(dag_id: str, run_id: str) -> str:
    """The log of what was called for a run itself. No task id becomes a segment with a `~` in this place."""
    return f"{segment(dag_id)}/{segment(run_id)}/~callbacks.log"


@functools.lru_cache(maxsize=4096)
def segment(text: str) -> str:
    """`text` as one path segment: never empty, never `.` or `..`, at most 255 bytes, different for different texts."""
    encoded = "".join(c if c in _PLAIN else _percent(c) for c in text)
    if not encoded:
        return "%"
    if encoded[0] == ".":
        encoded = "%2E" + encoded[1:]
    if len(encoded) <= _LONGEST:
        return encoded

    from hashlib import sha256  # lazy: only ids of extraordinary length need a hash

    return f"{encoded[: _LONGEST - 40]}~{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
