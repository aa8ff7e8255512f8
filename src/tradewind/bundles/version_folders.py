"""The folders of the versions of one bundle: each appears complete, a link points to the newest, unused ones are deleted.

    <bundle>/versions/<version>/     the files of a version
    <bundle>/newest                  link to the version that was fetched last

The folder of a version appears with all its files at once, and never changes. A process that is killed leaves only drafts.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from tradewind.bundles.specs import NEWEST
from tradewind.model.bundles import version_folder
from tradewind.platform.private_file import private_folder

VERSIONS_KEPT = 10
"""Number of newest versions that keep their folder although no unfinished run uses them."""
_DRAFTS = (".new-", ".gone-")


class FetchFailed(Exception):
    """A version cannot be fetched or made. The argument is a sentence for people, without secrets."""


class VersionFolders:
    """See the module.

    Args:
        folder: the folder of the bundle, absolute.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._versions = os.path.join(folder, "versions")

    def path(self, version: str) -> str:
        """The folder of a version, whether it exists or not."""
        return version_folder(self._folder, version)

    def has(self, version: str) -> bool:
        """Whether the folder of a version exists."""
        return os.path.isdir(self.path(version))

    @contextmanager
    def draft(self, version: str) -> Iterator[str]:
        """Yield an empty folder. It becomes the folder of the version at the end of the block, and is deleted after an error.

        Raises:
            FetchFailed: the folder cannot be written.
        """
        final, made = self.path(version), ""
        try:
            made = tempfile.mkdtemp(prefix=_DRAFTS[0], dir=private_folder(self._versions))
            yield made
            try:
                os.rename(made, final)
            except OSError:
                if not os.path.isdir(final):  # otherwise another process has just made it
                    raise
        except OSError as error:
            raise FetchFailed(f"the folder of the version cannot be written: {error.strerror or error}") from None
        finally:
            if made:
                shutil.rmtree(made, ignore_errors=True)

    def point_to(self, version: str) -> None:
        """Let the link `newest` point to a version. The link always points to a complete folder. Raises OSError."""
        draft = os.path.join(self._folder, f"{NEWEST}.new")
        if os.path.lexists(draft):
            os.unlink(draft)
        os.symlink(os.path.join("versions", version), draft)
        os.rename(draft, os.path.join(self._folder, NEWEST))

    def names(self) -> list[str]:
        """The versions that have a folder, the newest first."""
        try:
            found = [entry for entry in os.scandir(self._versions) if entry.name.isalnum()]
            return [entry.name for entry in sorted(found, key=lambda entry: entry.stat().st_mtime, reverse=True)]
        except OSError:
            return []

    def _newest(self) -> str:
        try:
            return os.path.basename(os.readlink(os.path.join(self._folder, NEWEST)))
        except OSError:
            return ""

    def clean(self, used: Collection[str], bytes_max: int | None = None, beside: int = 0) -> int:
        """Delete the folders of old versions that are not in `used`, and drafts of processes that were killed.

        The newest versions stay, too, unless the bundle is larger than its limit: then the oldest are deleted first. The caller
        holds the lock of the bundle, so no draft belongs to a living process.

        Args:
            bytes_max: the limit for the disk space of the bundle; None: there is none.
            beside: disk space of what else belongs to the bundle, bytes.

        Returns:
            The disk space of the bundle afterwards, bytes.
        """
        self._delete_drafts()
        names = self.names()
        unused = [name for name in names if name not in {*used, self._newest()}]
        for name in set(names[VERSIONS_KEPT:]) & set(unused):
            self._delete(name)
        sizes = {name: disk_space(self.path(name)) for name in self.names()}
        for name in reversed(unused):  # the oldest first
            if bytes_max is None or beside + sum(sizes.values()) <= bytes_max:
                break
            if name in sizes and self._delete(name):
                del sizes[name]
        return beside + sum(sizes.values())

    def _delete(self, version: str) -> bool:
        """Delete a folder: it disappears at once. False: it cannot be deleted."""
        gone = os.path.join(self._versions, f"{_DRAFTS[1]}{version}")
        try:
            os.rename(self.path(version), gone)
        except OSError:
            return False
        shutil.rmtree(gone, ignore_errors=True)
        return True

    def _delete_drafts(self) -> None:
        try:
            drafts = [entry.path for entry in os.scandir(self._versions) if entry.name.startswith(_DRAFTS)]
        except OSError:
            return
        for path in drafts:
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)


def disk_space(folder: str) -> int:
    """Disk space of a folder with everything in it, bytes. Files that are deleted meanwhile do not count."""
    total, waiting = 0, [folder]
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue
        for entry in entries:
            try:
                total += entry.stat(follow_symlinks=False).st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
            except OSError:
                continue
    return total
