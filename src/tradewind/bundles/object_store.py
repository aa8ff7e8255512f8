"""A folder in an object store as a bundle: `s3://bucket/prefix`, `gs://…`, `abfs://…`, and everything else that fsspec knows.

    <bundle>/listings/<version>.json     the files of a version: path, size, mark, hash of the content
    <bundle>/versions/<version>/         the files themselves

An object store changes one object at a time and has no versions of the whole folder. So a version is the hash of a listing: names,
sizes and marks (ETags) of all files. The listing is read again after the files were copied: if it has not changed, the folder is
the state of the store at one moment. Files that the newest version already has are copied from its folder.

A version that was deleted from this machine cannot be made again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import fsspec.core
import msgspec

from tradewind.bundles.specs import BundleSpec
from tradewind.bundles.store_options import PACKAGES, UnusableConnection, options_of, secrets_in
from tradewind.bundles.version_folders import FetchFailed, VersionFolders, disk_space
from tradewind.platform.private_file import private_folder

FILES_MAX = 20_000
"""Maximum number of files and folders of a bundle."""
BYTES_MAX = 256 * 1024 * 1024
"""Maximum size of the files of a bundle together, bytes."""
TRIES_MAX = 3
"""How often a listing is read again if the files change while they are copied."""
AT_ONCE = 64
"""How many files are requested in one call. The file system decides how many of them it reads at the same time."""
_SKIPPED_FOLDERS = {".git", "__pycache__", "node_modules"}
_MARKS = (
    *("ETag", "etag", "md5Hash", "generation", "content_md5", "sha", "mtime", "LastModified", "last_modified"),
    *("modificationTime", "last_write_time", "modify", "modified", "updated", "created"),
)
"""Facts about an object that change with its content, the best one first. Each file system has its own names."""


class Listed(msgspec.Struct, frozen=True, array_like=True):
    """One file in the store."""

    path: str
    """Relative to the bundle, with forward slashes."""
    size: int
    mark: str


class _Held(msgspec.Struct, frozen=True, array_like=True):
    """One file of a version on this machine."""

    path: str
    size: int
    mark: str
    sha256: str


class _Store(NamedTuple):
    files: Any
    base: str
    secrets: list[str]


class _FilesChanged(Exception):
    """A file of the listing does not exist any more."""


class ObjectStoreFolder:
    """See the module.

    Args:
        folder: the folder of the bundle, absolute.
        connection: host, login, password, and `extra` as an object; empty: credentials come from the environment.
    """

    def __init__(self, folder: str, spec: BundleSpec, connection: Mapping[str, Any]) -> None:
        self._folder = folder
        self._spec = spec
        self._connection = connection
        self._versions = VersionFolders(folder)

    def refresh(self) -> str:
        """Make the folder of the version that the store has now. Returns the version. Raises FetchFailed."""
        store = self._open()
        try:
            return self._copy_what_is_there(store)
        except FetchFailed:
            raise
        except Exception as error:  # each file system has its own errors
            raise FetchFailed(f"{self._spec.place} cannot be read: {_reason(error, store.secrets)}") from None

    def look(self) -> str:
        """Return the version that the store has now. Nothing is copied. Raises FetchFailed."""
        store = self._open()
        try:
            return version_of(self._list(store))
        except FetchFailed:
            raise
        except Exception as error:  # each file system has its own errors
            raise FetchFailed(f"{self._spec.place} cannot be read: {_reason(error, store.secrets)}") from None

    def make(self, version: str) -> None:
        """Check that the folder of a version exists. Raises FetchFailed: it does not, and it cannot be made again."""
        try:
            there = self._versions.has(version)
        except ValueError as error:
            raise FetchFailed(str(error)) from None
        if not there:
            raise FetchFailed(
                f"the files of the version {version} were deleted from this machine, and the object store has only its newest "
                "files. Clear the run with the newest version: tradewind tasks clear … --latest-version"
            )

    def warnings(self, version: str) -> list[str]:
        """What DAG files may miss in a version: nothing."""
        return []

    def size(self) -> int:
        """Disk space of everything except the folders of the versions, bytes."""
        return disk_space(os.path.join(self._folder, "listings"))

    def shrink(self, kept: Collection[str]) -> None:
        """Do nothing: nothing can be made smaller."""

    def _open(self) -> _Store:
        place = self._spec.place
        scheme = place.partition("://")[0]
        secrets: list[str] = []
        try:
            given = options_of(scheme, self._connection)
            secrets = secrets_in(given)
            named = fsspec.core.get_filesystem_class(scheme)._get_kwargs_from_urls(place)  # the address has priority
            options = {"use_listings_cache": False, "skip_instance_cache": True} | given
            files, base = fsspec.core.url_to_fs(place, **{key: options[key] for key in options.keys() - named.keys()})
        except UnusableConnection as error:
            raise FetchFailed(f"{error}. It is the connection {self._spec.conn_id!r}") from None
        except ImportError as error:
            package = PACKAGES.get(scheme)
            more = f". Install it: pip install {package}" if package else ""
            raise FetchFailed(f"{scheme}:// needs a package that is not installed: {error}{more}") from None
        except Exception as error:  # each file system has its own errors
            raise FetchFailed(f"{place} cannot be opened: {_reason(error, secrets)}") from None
        return _Store(files, base.rstrip("/"), secrets)

    # --- one version ------------------------------------------------------------------------------------------------

    def _copy_what_is_there(self, store: _Store) -> str:
        listing = self._list(store)
        for _ in range(TRIES_MAX):
            version = version_of(listing)
            if self._versions.has(version):
                return version
            try:
                with self._versions.draft(version) as draft:
                    self._fill(draft, store, listing)
                    again = self._list(store)
                    if again != listing:
                        raise _FilesChanged
                    self._remember(version, draft, listing)
            except _FilesChanged:
                listing = self._list(store)
                continue
            self._forget_listings()
            return version
        raise FetchFailed("its files were changed again and again while they were copied")

    def _list(self, store: _Store) -> list[Listed]:
        try:
            found = sorted(self._entries(store), key=lambda one: one.path)
        except (
            OSError
        ) as error:  # network errors are often OSErrors; they must not be reported as errors of this machine's disk
            raise FetchFailed(f"{self._spec.place} cannot be read: {_reason(error, store.secrets)}") from None
        if not found:
            raise FetchFailed(f"there are no files below {self._spec.place}")
        if (total := sum(one.size for one in found)) > BYTES_MAX:
            raise FetchFailed(f"its files have {total:,} bytes; at most {BYTES_MAX:,} are fetched")
        folders = {parent for one in found for parent in _parents(one.path)}
        for one in found:
            if one.path in folders:
                raise FetchFailed(f"{one.path!r} is both a file and a folder")
        return found

    def _entries(self, store: _Store) -> Iterator[Listed]:
        waiting, count, prefix = [store.base], 0, f"{store.base}/" if store.base else ""
        while waiting:
            inside = waiting.pop()
            for entry in store.files.ls(inside, detail=True):
                name = str(entry["name"])
                path = name.rstrip("/")
                if path == inside or not path.startswith(prefix):
                    continue  # the marker of the folder itself
                count += 1
                if count > FILES_MAX:
                    raise FetchFailed(f"it has more than {FILES_MAX:,} files")
                last = path.rpartition("/")[2]
                if entry.get("type") == "directory":
                    if last not in _SKIPPED_FOLDERS:
                        waiting.append(path)
                elif entry.get("type") == "file" and not name.endswith(("/", ".pyc", ".pyo")):
                    yield _listed(path.removeprefix(prefix), entry)

    def _fill(self, draft: str, store: _Store, listing: list[Listed]) -> None:
        held = self._held()
        wanted = []
        for one in listing:
            target = os.path.join(draft, *one.path.split("/"))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            known = held.get((one.path, one.size, one.mark))
            if known is None or not _copied(known[0], target, known[1]):
                wanted.append((f"{store.base}/{one.path}" if store.base else one.path, target))
        for start in range(0, len(wanted), AT_ONCE):
            part = wanted[start : start + AT_ONCE]
            try:
                store.files.get([source for source, _ in part], [target for _, target in part])
            except FileNotFoundError:
                raise _FilesChanged from None
            except OSError as error:  # as in _list
                raise FetchFailed(f"{self._spec.place} cannot be read: {_reason(error, store.secrets)}") from None

    def _held(self) -> dict[tuple[str, int, str], tuple[str, str]]:
        """(path, size, mark) → (file on this machine, hash of its content), of the newest version that has a listing."""
        for version in self._versions.names():
            try:
                with open(self._listing(version), "rb") as file:
                    known = msgspec.json.decode(file.read(), type=list[_Held])
            except (OSError, msgspec.DecodeError):
                continue
            root = self._versions.path(version)
            return {(one.path, one.size, one.mark): (os.path.join(root, one.path), one.sha256) for one in known}
        return {}

    def _remember(self, version: str, draft: str, listing: list[Listed]) -> None:
        held = [_Held(one.path, one.size, one.mark, _hash_of(os.path.join(draft, one.path))) for one in listing]
        path = self._listing(version)
        private_folder(os.path.dirname(path))
        with open(f"{path}.new", "wb") as file:
            file.write(msgspec.json.encode(held))
        os.replace(file.name, path)

    def _forget_listings(self) -> None:
        folder = os.path.dirname(self._listing("x"))
        kept = {f"{version}.json" for version in self._versions.names()}
        for entry in list(os.scandir(folder)):
            if entry.name not in kept:
                os.unlink(entry.path)

    def _listing(self, version: str) -> str:
        return os.path.join(self._folder, "listings", f"{version}.json")


def version_of(listing: Iterable[Listed]) -> str:
    """The version of a bundle with these files: the same files with the same marks have the same version."""
    return hashlib.sha256(msgspec.msgpack.encode(sorted(listing, key=lambda one: one.path))).hexdigest()


def _listed(path: str, entry: Mapping[str, Any]) -> Listed:
    if "\0" in path or any(part in ("", ".", "..") for part in path.split("/")):
        raise FetchFailed(f"{path!r} is no path of a file")
    for name in _MARKS:
        if entry.get(name) not in (None, ""):
            return Listed(path, int(entry.get("size") or 0), str(entry[name]).strip('"'))
    raise FetchFailed("its file system does not say when a file changes (no ETag and no time of the last change)")


def _parents(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _copied(source: str, target: str, sha256: str) -> bool:
    """Copy a file if it still has this content: a task may have changed it. Returns whether it was copied."""
    try:
        if _hash_of(source) != sha256:
            return False
        shutil.copyfile(source, target)
    except OSError:
        return False
    return True


def _hash_of(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _reason(error: Exception, secrets: Iterable[str]) -> str:
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    for secret in secrets:
        text = text.replace(secret, "***")
    return " ".join(text.split())[:500]
