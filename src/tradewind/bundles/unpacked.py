"""The copies of bundles on a worker: content by hash, and one folder for each version.

    blobs/<sha256>          content, as it was received
    versions/<version>/     the files of a version under their names

The folder of a version appears with all its files at once. Its files are copies: a task that changes one damages only this version.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Collection

from tradewind.platform.private_file import private_folder
from tradewind.wire.bundle_manifest import BundleFile, is_hash

VERSIONS_KEPT = 5
"""Number of newest versions that stay although no attempt uses them."""


class UnpackedBundles:
    """See the module.

    Args:
        folder: absolute path. It belongs to one worker host.
    """

    def __init__(self, folder: str) -> None:
        self._blobs = os.path.join(folder, "blobs")
        self._versions = os.path.join(folder, "versions")

    def find(self, version: str) -> str | None:
        """Return the folder of a version; None: this machine does not have the version."""
        path = os.path.join(self._versions, version)
        return path if is_hash(version) and os.path.isdir(path) else None

    def absent(self, bundle_version: str) -> str:
        """Return the path for a version of a bundle that cannot be fetched. There is no such folder."""
        return os.path.join(self._versions, "absent", bundle_version)

    def missing(self, files: Collection[BundleFile]) -> list[str]:
        """Return the hashes of missing content, each once."""
        names = dict.fromkeys(one.sha256 for one in files)
        return [name for name in names if not os.path.exists(os.path.join(self._blobs, name))]

    def add(self, name: str, content: bytes) -> bool:
        """Store content. False: the content does not match its hash.

        Raises:
            OSError: it cannot be written.
        """
        if hashlib.sha256(content).hexdigest() != name:
            return False
        path = os.path.join(private_folder(self._blobs), name)
        with open(f"{path}.new", "wb") as file:
            file.write(content)
        os.replace(f"{path}.new", path)
        return True

    def unpack(self, version: str, files: Collection[BundleFile]) -> str:
        """Make the folder of a version, whose content is complete. Returns its path.

        Raises:
            OSError: it cannot be written.
        """
        draft = os.path.join(private_folder(self._versions), f".{version}.new")
        shutil.rmtree(draft, ignore_errors=True)
        os.mkdir(draft, 0o700)
        for one in files:
            path = os.path.join(draft, *one.path.split("/"))
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            shutil.copyfile(os.path.join(self._blobs, one.sha256), path)
            os.chmod(path, 0o700 if one.executable else 0o600)
        final = os.path.join(self._versions, version)
        os.rename(draft, final)
        return final

    def clean(self, used: Collection[str]) -> None:
        """Delete old versions, and the content that only they had.

        Args:
            used: versions that must stay.
        """
        try:
            entries = sorted(os.scandir(self._versions), key=lambda entry: entry.stat().st_mtime, reverse=True)
        except OSError:
            return
        for entry in entries[VERSIONS_KEPT:]:
            if entry.name not in used:
                shutil.rmtree(entry.path, ignore_errors=True)

    def clean_blobs(self, needed: Collection[str]) -> None:
        """Delete content that none of these names: the versions have copies of their own."""
        try:
            entries = list(os.scandir(self._blobs))
        except OSError:
            return
        for entry in entries:
            if entry.name not in needed:
                try:
                    os.unlink(entry.path)
                except OSError:
                    continue
