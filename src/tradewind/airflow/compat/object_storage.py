"""`airflow.sdk.ObjectStoragePath`: paths in object stores, opened with the connection they name.

    path = ObjectStoragePath("s3://aws_default@bucket/folder")
    (path / "file.csv").read_text()

It is a path of the package `universal_pathlib`; file systems come from installed provider packages, local files always work.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import shutil
from collections.abc import Callable
from stat import S_IFDIR, S_IFLNK, S_IFREG
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

try:
    from fsspec.implementations.local import LocalFileSystem
    from fsspec.utils import stringify_path
    from upath import UPath
    from upath.extensions import ProxyUPath, classmethod_or_method
except ImportError as missing:
    if missing.name in ("fsspec", "upath"):
        wrong = f"ObjectStoragePath needs the package universal-pathlib (no module named {missing.name!r}). Install it in the "
        wrong += "environment of Tradewind: pip install universal-pathlib"
    else:
        wrong = f"ObjectStoragePath needs a newer release of the package universal-pathlib ({missing}). Upgrade it in the "
        wrong += "environment of Tradewind: pip install --upgrade universal-pathlib"
    raise ModuleNotFoundError(wrong, name=missing.name) from missing

from tradewind.airflow.compat.module_loading import qualname
from tradewind.provider_packages import offers

__all__ = ["ObjectStoragePath", "ObjectStore", "Properties", "attach", "get_fs", "has_fs", "stat_result"]

Properties = dict[str, str]


class stat_result(dict[str, Any]):
    """The properties of a file, with the attributes of `os.stat_result` that the store knows."""

    st_dev = property(lambda self: 0)
    st_size = property(lambda self: self.get("size", 0))
    st_gid = property(lambda self: self.get("gid", 0))
    st_uid = property(lambda self: self.get("uid", 0))
    st_ino = property(lambda self: self.get("ino", 0))
    st_nlink = property(lambda self: self.get("nlink", 0))

    @property
    def st_mtime(self) -> Any:
        """When the content changed last, in seconds since 1970; 0 if the store does not know it."""
        return self["mtime"] if "mtime" in self else self["LastModified"].timestamp() if "LastModified" in self else 0

    @property
    def st_mode(self) -> int:
        """The kind of the file, and its permissions if the store knows them."""
        if "mode" in self:
            return int(self["mode"])
        if self.get("isLink"):
            return S_IFLNK
        return {"file": S_IFREG, "directory": S_IFDIR}.get(self.get("type", ""), 0)


def _file(_: str | None, storage_options: Properties) -> Any:
    return LocalFileSystem(**storage_options)


@functools.cache
def _file_systems() -> dict[str, Callable[..., Any]]:
    """Protocol → function that creates its file system, for local files and for the protocols of installed provider packages."""
    found: dict[str, Callable[..., Any]] = {"file": _file, "local": _file}
    for name in offers.filesystems():
        module = importlib.import_module(name)
        found.update(dict.fromkeys(getattr(module, "schemes", ()), module.get_fs))
    return found


def has_fs(scheme: str) -> bool:
    """Whether there is a file system for this protocol."""
    return scheme in _file_systems()


def get_fs(scheme: str, conn_id: str | None = None, storage_options: Properties | None = None) -> Any:
    """The file system of a protocol, for a connection.

    Raises:
        ValueError: no installed provider package has this protocol.
        AttributeError: options were given, and the package is too old to accept them.
    """
    make = _file_systems().get(scheme)
    if make is None:
        raise ValueError(f"No filesystem registered for scheme {scheme}")
    if len(inspect.signature(make).parameters) > 1:
        return make(conn_id, storage_options or {})
    if storage_options:
        raise AttributeError(f"Filesystem {scheme} does not support storage options, but options were passed.")
    return make(conn_id)


class ObjectStore:
    """A file system with its connection. `attach` creates it."""

    __version__: ClassVar[int] = 1

    def __init__(self, protocol: str, conn_id: str | None, fs: Any = None, storage_options: Properties | None = None) -> None:
        self.protocol = protocol
        self.conn_id = conn_id
        self.storage_options = storage_options
        if fs is not None:
            self.fs = fs

    def __str__(self) -> str:
        return f"{self.protocol}-{self.conn_id}" if self.conn_id else self.protocol

    @functools.cached_property
    def fs(self) -> Any:
        """The file system. It is created at the first use."""
        return get_fs(self.protocol, self.conn_id)

    @property
    def fsid(self) -> str:
        """A text that identifies this store."""
        try:
            return str(self.fs.fsid)
        except NotImplementedError:
            return f"{self.fs.protocol}-{self.conn_id or 'env'}"

    def serialize(self) -> dict[str, Any]:
        """The store as JSON."""
        return {
            "protocol": self.protocol,
            "conn_id": self.conn_id,
            "filesystem": qualname(self.fs) if self.fs else None,
            "storage_options": self.storage_options,
        }

    @classmethod
    def deserialize(cls, data: dict[str, Any], version: int) -> ObjectStore:
        """A store from its JSON.

        Raises:
            ValueError: the JSON was written by a later version, or no installed package has the file system.
        """
        if version > cls.__version__:
            raise ValueError(f"Cannot deserialize version {version} for {cls.__name__}")
        if not has_fs(data["protocol"]) and data.get("filesystem") and str(_alias(data)) not in _STORES:
            raise ValueError(f"No attached filesystem found for {data['filesystem']} with protocol {data['protocol']}.")
        return attach(protocol=data["protocol"], conn_id=data["conn_id"], storage_options=data["storage_options"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectStore) and self.conn_id == other.conn_id and self.fs == other.fs

    def __hash__(self) -> int:
        return hash((self.conn_id, self.fsid))


_STORES: dict[str, ObjectStore] = {}


def _alias(data: dict[str, Any]) -> str:
    return f"{data['protocol']}-{data['conn_id']}" if data.get("conn_id") else data["protocol"]


def attach(
    protocol: str | None = None,
    conn_id: str | None = None,
    alias: str | None = None,
    encryption_type: str | None = "",
    fs: Any = None,
    **kwargs: Any,
) -> ObjectStore:
    """The store of a protocol and connection, or of an alias; created at the first request.

    Raises:
        ValueError: neither a protocol nor a known alias is given.
    """
    if alias is not None and alias in _STORES:
        return _STORES[alias]
    if not protocol:
        raise ValueError(f"No registered store with alias: {alias}" if alias else "No protocol specified and no alias provided")
    alias = alias or _alias({"protocol": protocol, "conn_id": conn_id})
    return _STORES.setdefault(alias, ObjectStore(protocol, conn_id, fs, **kwargs))


class ObjectStoragePath(ProxyUPath):  # type: ignore[misc]  # the package has no types in every environment
    """A path in an object store: `protocol://connection@bucket/key`.

    Args:
        args: the path, and parts to append.
        protocol: the protocol, if the path does not contain it.
        conn_id: id of the connection, if the path does not contain it.
        storage_options: options of the file system.
    """

    __version__: ClassVar[int] = 1

    sep: ClassVar[str] = "/"
    root_marker: ClassVar[str] = "/"

    __slots__ = ("_conn_id", "_hash_cached")

    def __init__(self, *args: Any, protocol: str | None = None, conn_id: str | None = None, **storage_options: Any) -> None:
        given = storage_options.pop("conn_id", None)
        if args and isinstance(args[0], ObjectStoragePath):
            given = args[0].conn_id
        elif args:
            parsed = urlsplit(stringify_path(args[0]))
            user, at, host = parsed.netloc.rpartition("@")
            if at:
                given, parsed = user or None, parsed._replace(netloc=host)
            args = (parsed.geturl(), *args[1:])
            protocol = protocol or parsed.scheme
        self._conn_id = conn_id if conn_id is not None else given
        super().__init__(*args, protocol=protocol, **storage_options)
        self._use_connection(self.__wrapped__)

    @classmethod_or_method  # type: ignore[untyped-decorator]
    def _from_upath(cls_or_self, upath: Any, /) -> Any:
        """Wrap a path of the package; with the connection of the calling path."""
        of_instance = isinstance(cls_or_self, ObjectStoragePath)
        cls = type(cls_or_self) if of_instance else cls_or_self
        if isinstance(upath, cls):
            return upath
        made = object.__new__(cls)
        made.__wrapped__ = upath
        made._conn_id = getattr(cls_or_self, "_conn_id", None) if of_instance else None
        if not hasattr(upath, "_fs_cached"):
            made._use_connection(upath)
        return made

    def _use_connection(self, wrapped: Any) -> None:
        """Let all operations of the wrapped path use the connection's file system. An error is raised only at their first use."""
        if self._conn_id is not None:
            try:
                wrapped._fs_cached = attach(wrapped.protocol or "file", self._conn_id).fs
            except Exception:  # constructing a path must not need the store
                return

    @property
    def conn_id(self) -> str | None:
        """The connection."""
        return getattr(self, "_conn_id", None)

    @property
    def fs(self) -> Any:
        """The file system."""
        return attach(self.protocol or "file", self.conn_id).fs

    def __hash__(self) -> int:
        return hash(str(self))

    def __eq__(self, other: object) -> bool:
        return self.samestore(other) and str(self) == str(other)

    def __str__(self) -> str:
        if self.protocol and self.conn_id:
            return f"{self.protocol}://{self.conn_id}@{self.path}"
        return str(super().__str__())

    def samestore(self, other: object) -> bool:
        """Whether the other path is in the same store."""
        return isinstance(other, ObjectStoragePath) and self.protocol == other.protocol and self.conn_id == other.conn_id

    @property
    def bucket(self) -> str:
        """The bucket."""
        return str(self._url.netloc) if self._url else ""

    container = bucket

    @property
    def key(self) -> str:
        """The path in the bucket."""
        return str(self._url.path.lstrip(self.sep)) if self._url else ""

    @property
    def namespace(self) -> str:
        """`protocol://bucket`."""
        return f"{self.protocol}://{self.bucket}" if self.bucket else str(self.protocol)

    def open(self, mode: str = "r", **kwargs: Any) -> Any:
        """Open the file."""
        kwargs.setdefault("block_size", kwargs.pop("buffering", None))
        return self.fs.open(self.path, mode=mode, **kwargs)

    def stat(self) -> stat_result:
        """The properties of the file."""
        return stat_result(self.fs.stat(self.path), protocol=self.protocol, conn_id=self.conn_id)

    def samefile(self, other_path: Any) -> bool:
        """Whether both paths name the same file."""
        if not isinstance(other_path, ObjectStoragePath):
            return False
        mine, theirs = self.stat(), other_path.stat()
        return all(mine.get(name) == theirs.get(name) for name in ("protocol", "conn_id", "ino"))

    def replace(self, target: Any) -> Self:
        """Rename the file, and replace an existing file."""
        renamed: Self = self.rename(target)
        return renamed

    @classmethod
    def cwd(cls) -> Any:
        """The current folder."""
        return cls._from_upath(UPath.cwd())

    @classmethod
    def home(cls) -> Any:
        """The user's home folder."""
        return cls._from_upath(UPath.home())

    def ukey(self) -> str:
        """A hash of the file's properties: it changes when the file changes."""
        return str(self.fs.ukey(self.path))

    def checksum(self) -> int:
        """The store's checksum of the file."""
        return int(self.fs.checksum(self.path))

    def read_block(self, offset: int, length: int, delimiter: Any = None) -> Any:
        """`length` bytes from `offset`, cut at delimiters."""
        return self.fs.read_block(self.path, offset=offset, length=length, delimiter=delimiter)

    def sign(self, expiration: int = 100, **kwargs: Any) -> Any:
        """A URL that is valid for `expiration` seconds."""
        return self.fs.sign(self.path, expiration=expiration, **kwargs)

    def size(self) -> int:
        """Size of the file in bytes."""
        return int(self.fs.size(self.path))

    def _copy_file(self, dst: Any, **kwargs: Any) -> None:
        if dst.key.endswith(self.sep) or not dst.key:
            dst.mkdir(exist_ok=True, parents=True)
            dst = dst / self.key
        elif dst.is_dir():
            dst = dst / self.key
        with self.open("rb") as source, dst.open("wb") as target:
            shutil.copyfileobj(source, target, **kwargs)

    def copy(self, dst: Any, recursive: bool = False, **kwargs: Any) -> None:
        """Copy to another path. Between different stores the key is kept.

        Raises:
            FileNotFoundError: the path does not exist.
            ValueError: a folder would be copied to a file.
        """
        if isinstance(dst, str):
            dst = ObjectStoragePath(dst)
        if self.samestore(dst):
            self.fs.copy(self.path, dst.path, recursive=recursive, **kwargs)
        elif self.protocol == "file":
            dst.fs.put(self.path, dst.path, recursive=recursive, **kwargs)
        elif dst.protocol == "file":
            self.fs.get(self.path, dst.path, recursive=recursive, **kwargs)
        elif not self.exists():
            raise FileNotFoundError(f"{self} does not exist")
        elif self.is_dir():
            self._copy_folder(dst, **kwargs)
        else:
            self._copy_file(dst, **kwargs)

    def _copy_folder(self, dst: Any, **kwargs: Any) -> None:
        if dst.is_file():
            raise ValueError("Cannot copy directory to a file.")
        dst.mkdir(exist_ok=True, parents=True)
        for path in self.fs.expand_path(self.path, recursive=True, **kwargs):
            source = ObjectStoragePath(path, protocol=self.protocol, conn_id=self.conn_id)
            if path != self.path and not source.is_dir():
                source._copy_file(dst, **kwargs)

    def copy_into(self, target_dir: Any, recursive: bool = False, **kwargs: Any) -> None:
        """Copy into a folder.

        Raises:
            NotADirectoryError: the target is not a folder.
        """
        self.copy(_folder(target_dir) / self.name, recursive=recursive, **kwargs)

    def move(self, path: Any, recursive: bool = False, **kwargs: Any) -> None:
        """Move to another path."""
        if isinstance(path, str):
            path = ObjectStoragePath(path)
        if self.samestore(path):
            self.fs.move(self.path, path.path, recursive=recursive, **kwargs)
            return
        self.copy(path, recursive=recursive, **kwargs)
        self.unlink()

    def move_into(self, target_dir: Any, recursive: bool = False, **kwargs: Any) -> None:
        """Move into a folder.

        Raises:
            NotADirectoryError: the target is not a folder.
        """
        self.move(_folder(target_dir) / self.name, recursive=recursive, **kwargs)

    def serialize(self) -> dict[str, Any]:
        """The path as JSON."""
        return {"path": str(self), "conn_id": self.conn_id, "kwargs": {**self.storage_options}}

    @classmethod
    def deserialize(cls, data: dict[str, Any], version: int) -> ObjectStoragePath:
        """A path from its JSON.

        Raises:
            ValueError: the JSON was written by a later version.
        """
        if version > cls.__version__:
            raise ValueError(f"Cannot deserialize version {version} with version {cls.__version__}.")
        options = dict(data.get("kwargs") or {})
        return ObjectStoragePath(data["path"], conn_id=data.get("conn_id"), **options)


def _folder(path: Any) -> Any:
    found = ObjectStoragePath(path) if isinstance(path, str) else path
    if not found.is_dir():
        raise NotADirectoryError(f"Destination {found} is not a directory.")
    return found
