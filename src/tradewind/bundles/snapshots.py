"""Snapshots of DAG folders, which a gateway sends to workers that do not share the folder.

A snapshot is a list of files with the hash of each one; the hash of the list is its version. The content is copied when the
snapshot is taken, so it can be sent after the folder has changed. A folder that changes while it is read is read again.

A snapshot leaves out names that begin with a dot, compiled Python files, and links that lead out of the folder. Files that
`.airflowignore` names are sent, because DAG files import from there.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

from tradewind.platform.private_file import private_folder
from tradewind.wire.bundle_manifest import BYTES_MAX, FILES_MAX, BundleFile, is_hash, manifest_problem, version_of

SNAPSHOTS_MAX = 32
"""Maximum number of snapshots that are kept, over all bundles. The oldest are removed first."""
KEPT_SECONDS = 3600.0
"""How long content is kept when no snapshot names it: another gateway with this home folder may have just written it."""
TRIES_MAX = 5
PAUSE_SECONDS = 0.05
_SKIPPED_FOLDERS = {"__pycache__", "node_modules"}


class Snapshot(NamedTuple):
    """The files of a bundle at one moment."""

    version: str
    files: tuple[BundleFile, ...]


class SnapshotRefused(Exception):
    """A folder cannot be sent to workers. The argument is a sentence without its subject."""


class _Facts(NamedTuple):
    """Facts about a file. At least one of them changes when its content changes."""

    size: int
    modified: int
    changed: int
    inode: int
    executable: bool


class Snapshots:
    """See the module. Not thread-safe.

    Args:
        folder: where content is stored, absolute. Several gateways may share it.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._last: dict[str, tuple[dict[str, _Facts], Snapshot]] = {}
        """Folder → the facts of the files of its last snapshot."""
        self._taken: OrderedDict[str, Snapshot] = OrderedDict()

    def take(self, folder: str) -> Snapshot:
        """Return the snapshot of a folder as it is now.

        Raises:
            SnapshotRefused: the folder is too large, cannot be read, or does not stop changing.
            OSError: the content cannot be stored.
        """
        root = os.path.realpath(folder)
        if not os.path.isdir(root):
            raise SnapshotRefused(f"has no folder {folder}")
        facts = dict(_scan(root))
        known = self._last.get(root)
        if known is not None and known[0] == facts and all(os.path.exists(self._blob(one.sha256)) for one in known[1].files):
            self._remember(known[1])
            return known[1]
        for _ in range(TRIES_MAX):
            snapshot = self._read(root, facts, known)
            again = dict(_scan(root))
            if snapshot is not None and again == facts:
                self._last[root] = facts, snapshot
                self._remember(snapshot)
                self._clean()
                return snapshot
            facts = again
            time.sleep(PAUSE_SECONDS)  # somebody is copying files into it
        raise SnapshotRefused(f"was changed again and again while {folder} was read")

    def _read(self, root: str, facts: dict[str, _Facts], known: tuple[dict[str, _Facts], Snapshot] | None) -> Snapshot | None:
        """Read the changed files. None: a file was deleted meanwhile."""
        before = {one.path: one for one in known[1].files} if known is not None else {}
        files = []
        for path, fact in sorted(facts.items()):
            old = before.get(path)
            if known is not None and old is not None and known[0].get(path) == fact and os.path.exists(self._blob(old.sha256)):
                files.append(old)
                continue
            try:
                with open(os.path.join(root, path), "rb") as file:
                    content = file.read(BYTES_MAX + 1)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise SnapshotRefused(f"has a file that cannot be read: {path}: {error.strerror}") from None
            files.append(BundleFile(path, self._store(content), len(content), fact.executable))
        if problem := manifest_problem(tuple(files)):
            raise SnapshotRefused(f"cannot be sent: {problem}")
        return Snapshot(version_of(tuple(files)), tuple(files))

    def _store(self, content: bytes) -> str:
        name = hashlib.sha256(content).hexdigest()
        path = self._blob(name)
        if not os.path.exists(path):
            private_folder(self._folder)
            draft = f"{path}.{os.getpid()}.new"
            with open(draft, "wb") as file:
                file.write(content)
            os.replace(draft, path)
        return name

    def _blob(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def _remember(self, snapshot: Snapshot) -> None:
        self._taken[snapshot.version] = snapshot
        self._taken.move_to_end(snapshot.version)
        while len(self._taken) > SNAPSHOTS_MAX:
            self._taken.popitem(last=False)

    def find(self, version: str) -> Snapshot | None:
        """Return an earlier snapshot; None: it is not kept any more."""
        return self._taken.get(version)

    def content(self, name: str) -> bytes:
        """Return the content with this hash.

        Raises:
            OSError: the content is not stored.
        """
        if not is_hash(name):
            raise FileNotFoundError(f"{name!r} is no SHA-256")
        with open(self._blob(name), "rb") as file:
            return file.read()

    def _clean(self) -> None:
        """Delete content that no snapshot names."""
        named = {file.sha256 for snapshot in self._taken.values() for file in snapshot.files}
        oldest = time.time() - KEPT_SECONDS
        try:
            entries = list(os.scandir(self._folder))
        except FileNotFoundError:
            return
        for entry in entries:
            try:
                if entry.name not in named and entry.stat().st_mtime < oldest:
                    os.unlink(entry.path)
            except OSError:
                continue  # another gateway has deleted it


def _scan(root: str) -> Iterator[tuple[str, _Facts]]:
    """Yield the path and the facts of each file.

    Raises:
        SnapshotRefused: there are too many files, or a folder cannot be read.
    """
    waiting, count, visited = [""], 0, {root}
    while waiting:
        inside = waiting.pop()
        try:
            entries = list(os.scandir(os.path.join(root, inside)))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise SnapshotRefused(f"has a folder that cannot be read: {inside or '.'}: {error.strerror}") from None
        for entry in entries:
            if entry.name.startswith(".") or entry.name in _SKIPPED_FOLDERS or entry.name.endswith((".pyc", ".pyo")):
                continue
            path = f"{inside}/{entry.name}" if inside else entry.name
            try:
                if entry.is_symlink():
                    target = os.path.realpath(entry.path)
                    if not target.startswith(f"{root}/") or target in visited:
                        continue
                    if entry.is_dir():
                        visited.add(target)  # a link to a folder above it would cause an endless loop
                if entry.is_dir():
                    waiting.append(path)
                elif entry.is_file():
                    found = entry.stat()
                    count += 1
                    executable = bool(found.st_mode & 0o100)
                    yield path, _Facts(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino, executable)
            except FileNotFoundError:
                continue
        if count > FILES_MAX:
            raise SnapshotRefused(f"cannot be sent: it has more than {FILES_MAX:,} files")
