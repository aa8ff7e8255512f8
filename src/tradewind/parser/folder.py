"""One scan of the DAG folder: which Python files and zip archives exist, and which parts cannot be read.

Hidden names, `__pycache__`, virtual environments and everything that an ignore file excludes are skipped. Folders behind symbolic
links are scanned, but each real folder only once: first the folders in the tree, then the targets of links. So a link to a parent
folder does not loop, and a file that can be reached in two ways has always the same name.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec

from tradewind.observe.log import Log
from tradewind.sdk.conf import conf
from tradewind.sdk.dag_files import ENDING
from tradewind.sdk.ignore_files import IGNORE_FILES, Rule, ignored, read_rules

log = Log("folder")

_KINDS = {
    stat.S_IFIFO: "a FIFO (named pipe)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

Signature = tuple[int, int, int, int]
"""(inode, size, mtime in ns, ctime in ns). Equal signatures mean equal content, except for writes within one tick of the clock."""


def signature(facts: os.stat_result) -> Signature:
    return facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


class FolderScan(msgspec.Struct):
    """The result of a scan. Paths are relative to the folder, with forward slashes; the folder itself is ''."""

    files: dict[str, Signature] = {}
    folders: list[str] = []
    unreadable: dict[str, str] = {}
    """Folders and files that could not be read, and why. Nothing is known about their content."""
    linked: list[str] = []
    """The files that are symbolic links."""
    unusable: dict[str, str] = {}
    """Names that end in `.py` but are not readable files (a dangling link, a FIFO, a folder), and why."""

    def keep(self, wanted: Callable[[str], bool]) -> None:
        """Keep only the wanted files."""
        self.files = {name: facts for name, facts in self.files.items() if wanted(name)}
        self.linked = [name for name in self.linked if wanted(name)]
        self.unusable = {name: why for name, why in self.unusable.items() if wanted(name)}

    def is_confirmed_absent(self, file: str) -> bool:
        """True if this file certainly does not exist, because the folder that would contain it could be listed."""
        return not (file in self.files or file in self.unusable) and not any(
            where == "" or file == where or file.startswith(where + "/") for where in self.unreadable
        )


def scan_folder(root: str, on_folder: Callable[[str], None] = lambda path: None) -> FolderScan:
    """Scan the folder.

    Args:
        on_folder: called with the absolute path of each folder before it is listed, so that a watch that is added there misses no
            later change.
    """
    found = FolderScan()
    seen: set[tuple[int, int]] = set()
    todo: list[tuple[str, list[Rule]]] = [("", [])]
    linked: list[tuple[str, list[Rule]]] = []
    while todo or linked:
        if not todo:
            linked.sort(key=lambda entry: entry[0], reverse=True)
            todo.append(linked.pop())
        relative, rules = todo.pop()
        _scan_into(root, relative, rules, found, seen, on_folder, todo, linked)
    return found


def _scan_into(
    root: str,
    relative: str,
    rules: list[Rule],
    found: FolderScan,
    seen: set[tuple[int, int]],
    on_folder: Callable[[str], None],
    todo: list[tuple[str, list[Rule]]],
    linked: list[tuple[str, list[Rule]]],
) -> None:
    path = os.path.join(root, relative) if relative else root
    try:
        facts = os.stat(path)
        if (facts.st_dev, facts.st_ino) in seen:
            return
        seen.add((facts.st_dev, facts.st_ino))
        on_folder(path)
        with os.scandir(path) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError as error:
        if not relative:  # a subfolder was removed during the scan; without the root, nothing is known about its files
            found.unreadable[""] = error.strerror or "not found"
        return
    except OSError as error:
        found.unreadable[relative] = error.strerror or type(error).__name__
        return
    found.folders.append(relative)
    names = {entry.name for entry in listed}
    if "pyvenv.cfg" in names:
        return
    rules = rules + [rule for name in IGNORE_FILES if name in names for rule in _read_rules(path, name, relative)]
    for entry in listed:
        _add_entry(entry, f"{relative}/{entry.name}" if relative else entry.name, rules, found, todo, linked)


def _add_entry(
    entry: os.DirEntry[str],
    name: str,
    rules: list[Rule],
    found: FolderScan,
    todo: list[tuple[str, list[Rule]]],
    linked: list[tuple[str, list[Rule]]],
) -> None:
    if entry.name.startswith(".") or entry.name == "__pycache__":
        return
    try:
        if entry.is_dir():
            if not ignored(name, True, rules):
                (linked if entry.is_symlink() else todo).append((name, rules))
                if entry.name.endswith(".py"):
                    found.unusable[name] = f"{name} is a folder, not a Python file; rename it, or exclude it in .airflowignore"
        elif entry.name.endswith((".py", ENDING)) and not ignored(name, False, rules):
            facts = entry.stat()
            if not stat.S_ISREG(facts.st_mode):
                kind = _KINDS.get(stat.S_IFMT(facts.st_mode), "not a regular file")
                found.unusable[name] = f"{name} is {kind}, not a Python file; it is never opened"
            elif not os.access(entry.path, os.R_OK):
                found.unusable[name] = f"{name} cannot be read: {os.strerror(errno.EACCES)} (mode {facts.st_mode & 0o7777:04o})"
            else:
                found.files[name] = signature(facts)
                if entry.is_symlink():
                    found.linked.append(name)
    except FileNotFoundError:
        if entry.is_symlink():  # otherwise it was removed during the scan
            _record_dangling(entry, name, found)
    except OSError as error:
        if error.errno == errno.ELOOP:
            found.unusable[name] = f"{name} is a symbolic link that leads to itself"
        else:
            found.unreadable[name] = error.strerror or type(error).__name__


def _record_dangling(entry: os.DirEntry[str], name: str, found: FolderScan) -> None:
    try:
        target = os.readlink(entry.path)
    except OSError:
        return  # it was removed during the scan
    found.unusable[name] = f"{name} is a symbolic link to {target!r}, which does not exist"


def _read_rules(path: str, name: str, relative: str) -> list[Rule]:
    where = os.path.join(path, name)
    try:
        syntax = conf.value_if_set("core", "dag_ignore_file_syntax")
        rules, wrong = read_rules(Path(where).read_text(encoding="utf-8", errors="replace"), relative, syntax)
    except OSError as error:
        log.warning("cannot read an ignore file", file=where, why=error.strerror)
        return []
    for line in wrong:
        log.warning("an ignore file contains an invalid pattern", file=where, line=line)
    return rules
