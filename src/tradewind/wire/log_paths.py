"""Paths of task logs in the log folder. The worker host writes them; the API and the command line read them.

    <dag_id>/<run_id>/<task_id>~attempt=<try>.<fence>.log
    <dag_id>/<run_id>/<task_id>~map_index=<n>~attempt=<try>.<fence>.log
    <dag_id>/<run_id>/~callbacks.log

A run has one folder, which is deleted with the run. Earlier releases had a folder for each task and for each instance of a mapped
task: their logs are still found. Users choose ids freely: each id becomes exactly one part of a path, and different ids give
different parts.
"""

from __future__ import annotations

import functools
import re

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.+=@,")
"""Characters that are kept; all others become %XX of their UTF-8 bytes. `:`, `/`, `%` and `~` are not kept: they have a special
meaning in paths."""

_NAME = re.compile(r"(^|~)attempt=\d+\.\d+\.log$|^~callbacks\.log$")

_LONGEST = 200
"""Common file systems allow 255 bytes in a file name. A longer segment is shortened and gets a hash."""


def log_path(dag_id: str, run_id: str, task_id: str, map_index: int, try_number: int, fence: int) -> str:
    """The path of one attempt's log relative to the log folder, with forward slashes.

    Args:
        map_index: -1 for a task that is not mapped.
        try_number: from 1.
        fence: distinguishes the attempts of one try (a rescheduled sensor, a lost attempt).
    """
    index = f"~map_index={map_index:d}" if map_index >= 0 else ""
    return f"{segment(dag_id)}/{segment(run_id)}/{segment(task_id)}{index}~attempt={try_number:d}.{fence:d}.log"


def earlier_log_path(dag_id: str, run_id: str, task_id: str, map_index: int, try_number: int, fence: int) -> str:
    """The path of the same log in earlier releases: in a folder of the task."""
    index = f"/map_index={map_index:d}" if map_index >= 0 else ""
    return f"{segment(dag_id)}/{segment(run_id)}/{segment(task_id)}{index}/attempt={try_number:d}.{fence:d}.log"


def run_folder(dag_id: str, run_id: str) -> str:
    """The folder of all logs of a run."""
    return f"{segment(dag_id)}/{segment(run_id)}"


def is_log(name: str) -> bool:
    """Whether this is the file name of a task log, in the present layout or the earlier one."""
    return _NAME.search(name) is not None


def callbacks_log_path(dag_id: str, run_id: str) -> str:
    """The path of the log of the callbacks of a run. No segment of a task id begins with `~`."""
    return f"{segment(dag_id)}/{segment(run_id)}/~callbacks.log"


@functools.lru_cache(maxsize=4096)
def segment(text: str) -> str:
    """`text` as one path segment: not empty, not `.` or `..`, at most 255 bytes, and different for different texts."""
    encoded = "".join(c if c in _PLAIN else _percent(c) for c in text)
    if not encoded:
        return "%"
    if encoded[0] == ".":
        encoded = "%2E" + encoded[1:]
    if len(encoded) <= _LONGEST:
        return encoded

    from hashlib import sha256  # lazy import: only very long ids need a hash

    return f"{encoded[: _LONGEST - 40]}~{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
