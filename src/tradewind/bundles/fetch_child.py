"""The process that fetches a bundle: `python -m tradewind.bundles.fetch_child`, with a request on its standard input.

It is a separate process so that a fetch which hangs can be killed with everything that it started, and so that credentials never
enter a process that forks user code. The answer on its standard output is one JSON document.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from tradewind.bundles.fetch_messages import FetchAnswer, FetchRequest, write_state
from tradewind.bundles.git_repository import GitRepository
from tradewind.bundles.version_folders import FetchFailed, VersionFolders
from tradewind.observe.failpoints import fp
from tradewind.platform.private_file import private_folder

if TYPE_CHECKING:
    from tradewind.bundles.object_store import ObjectStoreFolder

MIB = 1024 * 1024
NO_FSSPEC = "object stores need the package fsspec. Install it: pip install 'tradewind[object-store]'"


def fetch(request: FetchRequest) -> FetchAnswer:
    """Execute a request. Fetches of one bundle wait for each other."""
    try:
        if request.looks_only:
            return FetchAnswer(_source(request).look())
        lock = os.open(os.path.join(private_folder(request.folder), "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)  # the parent of this process sets the deadline
            return _fetch_alone(request)
        finally:
            os.close(lock)
    except FetchFailed as failed:
        return FetchAnswer(problem=str(failed))
    except OSError as error:
        return FetchAnswer(problem=f"{error.filename or request.folder}: {error.strerror}")


def _fetch_alone(request: FetchRequest) -> FetchAnswer:
    source, versions = _source(request), VersionFolders(request.folder)
    version = request.version or source.refresh()
    fp("bundles.before_version")
    source.make(version)
    fp("bundles.after_version")
    answer = FetchAnswer(version, warnings=source.warnings(version))
    if not request.version:
        versions.point_to(version)
        write_state(request.folder, answer)
    if request.used is not None:
        answer.warnings.extend(_clean(request, source, versions, {*request.used, version}))
    return answer


def _clean(
    request: FetchRequest, source: GitRepository | ObjectStoreFolder, versions: VersionFolders, used: set[str]
) -> list[str]:
    """Delete old versions. Returns a warning if what has to stay is larger than the limit."""
    most = request.bytes_max
    size = versions.clean(used, most, source.size())
    if most is None or size <= most:
        return []
    source.shrink({*used, *versions.names()})
    size = versions.clean(used, most, source.size())
    if size <= most:
        return []
    return [
        f"the bundle needs {size / MIB:,.0f} MiB of disk space, more than bundles.max_mb ({most / MIB:,.0f} MiB), "
        f"and nothing more can be deleted: {len(versions.names())} versions are in use"
    ]


def _source(request: FetchRequest) -> GitRepository | ObjectStoreFolder:
    connection = _with_extra(request.connection)
    if request.spec.kind == "git":
        return GitRepository(request.folder, request.spec, connection)
    try:
        from tradewind.bundles.object_store import ObjectStoreFolder  # lazy import: an extra
    except ImportError:
        raise FetchFailed(NO_FSSPEC) from None
    return ObjectStoreFolder(request.folder, request.spec, connection)


def _with_extra(connection: dict[str, Any]) -> dict[str, Any]:
    """Return the connection with its extra as an object: it is stored as a text."""
    extra = connection.get("extra") or {}
    if isinstance(extra, str):
        try:
            extra = json.loads(extra)
        except ValueError:
            extra = None
    if not isinstance(extra, dict):
        raise FetchFailed("the extra of the connection is no JSON object")
    return {**connection, "extra": extra}


if __name__ == "__main__":
    answer = fetch(msgspec.json.decode(sys.stdin.buffer.read(), type=FetchRequest))
    sys.stdout.buffer.write(msgspec.json.encode(answer))
