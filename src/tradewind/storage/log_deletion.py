"""Deleting task logs: of runs that are gone, of an age, and beyond a size in all. Always a bounded number of files at a time.

Only files that our workers wrote are touched (`log_paths.is_log`), never a link, and a folder goes when it is empty.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from tradewind.wire.log_paths import is_log, run_folder

_DEEPEST = 2
"""Folders below that of a run, in the layout of earlier releases: task, map index."""


class LogOnDisk(NamedTuple):
    """One log file."""

    run: str
    """Folder of its run, relative to the log folder."""
    path: str
    """Absolute."""
    size: int
    changed: float
    """Seconds since the epoch."""


class Removal(NamedTuple):
    """What one step took away."""

    files: int
    bytes: int
    done: bool
    """Nothing is left that was to go."""


def remove_run(root: str, dag_id: str, run_id: str, older_than: float | None, at_most: int) -> Removal:
    """Delete the logs of a run, at most so many files; `older_than` spares what was written since (seconds since the epoch)."""
    return remove_folder(root, run_folder(dag_id, run_id), older_than, at_most)


def remove_folder(root: str, folder: str, older_than: float | None, at_most: int) -> Removal:
    """The same for a run's folder, relative to `root`.

    Raises:
        OSError: a file cannot be deleted.
    """
    files = taken = 0
    for found in list(_first(logs_of(root, folder), older_than, at_most)):
        with suppress(FileNotFoundError):
            os.unlink(found.path)
        files, taken = files + 1, taken + found.size
        remove_empty(root, os.path.dirname(found.path))
    if files < at_most:
        remove_empty(root, os.path.join(root, folder))
    return Removal(files, taken, files < at_most)


def _first(logs: Iterator[LogOnDisk], older_than: float | None, at_most: int) -> Iterator[LogOnDisk]:
    for found in logs:
        if at_most <= 0:
            return
        if older_than is None or found.changed < older_than:
            at_most -= 1
            yield found


def all_logs(root: str) -> Iterator[LogOnDisk]:
    """Every log of every run, some at a time. What goes away meanwhile is passed over."""
    for dag in _folders(root):
        for run in _folders(os.path.join(root, dag)):
            yield from logs_of(root, f"{dag}/{run}")


def logs_of(root: str, folder: str, _depth: int = 0, _at: str | None = None) -> Iterator[LogOnDisk]:
    """The logs of one run."""
    at = os.path.join(root, folder) if _at is None else _at
    try:
        with os.scandir(at) as entries:
            for entry in entries:
                try:
                    if entry.is_dir(follow_symlinks=False):
                        if _depth < _DEEPEST:
                            yield from logs_of(root, folder, _depth + 1, entry.path)
                    elif entry.is_file(follow_symlinks=False) and is_log(entry.name):
                        facts = entry.stat(follow_symlinks=False)
                        yield LogOnDisk(folder, entry.path, facts.st_size, facts.st_mtime)
                except FileNotFoundError:
                    continue
    except (FileNotFoundError, NotADirectoryError):
        return


def remove_empty(root: str, folder: str) -> None:
    """Delete a folder that is empty, and those above it that are then, up to the log folder itself."""
    while len(folder) > len(root):
        try:
            os.rmdir(folder)
        except OSError:
            return
        folder = os.path.dirname(folder)


def _folders(path: str) -> list[str]:
    """Names of the folders there, no links."""
    try:
        with os.scandir(path) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except (FileNotFoundError, NotADirectoryError):
        return []
