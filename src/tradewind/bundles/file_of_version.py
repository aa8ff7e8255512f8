"""Reads one file of a version of a bundle, without making the folder of the version."""

from __future__ import annotations

import os

from tradewind.bundles.git_repository import GitRepository
from tradewind.bundles.specs import VersionedBundle
from tradewind.bundles.version_folders import FetchFailed


def read_file_of_version(bundle: VersionedBundle, version: str, name: str, at_most: int) -> bytes:
    """Return the content of a DAG file: from the folder of the version, or from the copy of the repository.

    Args:
        name: path inside the bundle, with forward slashes.
        at_most: the largest size, bytes.

    Raises:
        FetchFailed: the file cannot be read, or is larger.
    """
    if any(part in ("", ".", "..") for part in name.split("/")):
        raise FetchFailed(f"{name!r} is no path of a file")
    try:
        folder = bundle.files(version)
    except ValueError as error:
        raise FetchFailed(str(error)) from None
    try:
        with open(os.path.join(folder, name), "rb") as file:
            if os.fstat(file.fileno()).st_size > at_most:
                raise FetchFailed(f"the file {name} is larger than {at_most} bytes")
            return file.read(at_most)
    except OSError as error:
        if bundle.spec.kind != "git":
            raise FetchFailed(f"the file {name} of the version {version} is not kept: {error.strerror}") from None
    path = f"{bundle.spec.subdir}/{name}" if bundle.spec.subdir else name
    return GitRepository(bundle.folder, bundle.spec, {}).read(version, path, at_most)
