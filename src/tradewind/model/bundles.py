"""Bundles: folders with DAG files, by name.

A DAG belongs to one bundle and to a file in it. A scheduler or parser may be limited to a part of the deployment (`--subdir`,
`--dag-id`): it does not change anything outside of that part, which belongs to another scheduler.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

OTHER_FOLDER = "dags-folder:"
"""Prefix of a bundle name that stands for a folder other than the configured DAG folder; the absolute path follows."""


def folder_of(bundle: str, folders: Mapping[str, str], dags_folder: str) -> str:
    """Return the absolute path of a bundle's folder.

    Args:
        folders: folders of the configured bundles other than the DAG folder, by name.
    """
    if bundle.startswith(OTHER_FOLDER):
        return bundle.removeprefix(OTHER_FOLDER)
    return folders.get(bundle, dags_folder)


def version_folder(folder: str, version: str) -> str:
    """Return the folder with the files of one version of a bundle that has versions.

    Args:
        folder: the folder of the bundle, with all its versions.
    """
    if not version or not version.isalnum():
        raise ValueError(f"{version!r} is no version of a bundle")
    return os.path.join(folder, "versions", version)


class Scope(msgspec.Struct, frozen=True):
    """The part of a deployment that a scheduler or parser handles."""

    bundles: tuple[str, ...] = ()
    """Names of the bundles; empty: all."""
    only: str = ""
    """A file or folder inside the bundle, with forward slashes; empty: everything in it."""
    dag_id: str | None = None
    """If set, only this DAG."""

    def covers_file(self, bundle: str, file: str) -> bool:
        if self.bundles and bundle not in self.bundles:
            return False
        return not self.only or file == self.only or file.startswith(f"{self.only}/")

    def covers(self, dag_id: str, bundle: str, file: str) -> bool:
        return self.dag_id in (None, dag_id) and self.covers_file(bundle, file)
