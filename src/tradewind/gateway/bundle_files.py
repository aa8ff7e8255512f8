"""DAG files for workers that do not share the DAG folder.

A worker gets only files that were announced to it: those of bundles of which it has attempts. So a stolen worker token does
not give access to the DAG files of other teams.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType

from tradewind.bundles.fetch_child import fetch
from tradewind.bundles.fetch_messages import FetchRequest
from tradewind.bundles.snapshots import Snapshot, SnapshotRefused, Snapshots
from tradewind.bundles.specs import VersionedBundle
from tradewind.model.bundles import folder_of, version_folder
from tradewind.observe.log import Log
from tradewind.wire import gateway as g

log = Log("gateway")

LARGE_FILES = 200
"""If a bundle has more files than this, a scan takes milliseconds, and its last snapshot is used again for some time."""
LARGE_FRESH_SECONDS = 0.5
"""The time for which the last snapshot of a large bundle is used again. The parser needs about this time for a change, too."""
ANNOUNCED_MAX = 64
"""Maximum number of versions that one worker may request. The oldest are removed first."""


class BundleFiles:
    """The newest snapshot of each bundle, for all workers of a gateway.

    Args:
        dags_folder: the DAG folder, absolute.
        folders: folders of other bundles, by name.
        store: the folder for snapshots, absolute.
        versioned: bundles that have versions, by name.
    """

    def __init__(
        self,
        dags_folder: str,
        folders: Mapping[str, str],
        store: str,
        versioned: Mapping[str, VersionedBundle] = MappingProxyType({}),
    ) -> None:
        self._versioned = versioned
        self._dags_folder = dags_folder
        self._folders = folders
        self._snapshots = Snapshots(store)
        self._lock = asyncio.Lock()
        self._last: OrderedDict[tuple[str, str | None], tuple[float, Snapshot | str]] = OrderedDict()
        """(bundle, version) → the time when its last scan began, and its snapshot or the reason why there is none."""

    async def files(self, bundle: str, version: str | None = None) -> Snapshot | str:
        """Return the snapshot of a bundle as it is now, or of one of its versions, or the reason why there is none.

        Simultaneous callers share one scan.
        """
        asked = time.monotonic()
        async with self._lock:
            at, found = self._last.get((bundle, version), (0.0, ""))
            is_large = isinstance(found, Snapshot) and len(found.files) > LARGE_FILES
            if at >= (asked - LARGE_FRESH_SECONDS if is_large else asked):
                return found
            begun = time.monotonic()
            taken: Snapshot | str
            try:
                folder = await asyncio.to_thread(self._folder, bundle, version)
                taken = await asyncio.to_thread(self._snapshots.take, folder)
            except SnapshotRefused as refused:
                taken = str(refused)
            except OSError as error:
                taken = f"cannot be stored by the gateway: {error.strerror}"
            if isinstance(taken, str) and taken != found:
                log.error("the files of a bundle cannot be sent to workers", bundle=bundle, why=taken)
            self._last[bundle, version] = begun, taken
            self._last.move_to_end((bundle, version))
            while len(self._last) > ANNOUNCED_MAX:
                self._last.popitem(last=False)
            return taken

    def _folder(self, bundle: str, version: str | None) -> str:
        """Return the folder of the files. The folder of an old version is made again if it was deleted.

        Raises:
            SnapshotRefused: the folder cannot be made.
        """
        known = self._versioned.get(bundle)
        if known is None or version is None:
            return folder_of(bundle, self._folders, self._dags_folder)
        if not os.path.isdir(version_folder(known.folder, version)):
            made = fetch(FetchRequest(known.folder, known.spec, version))
            if made.problem:
                raise SnapshotRefused(f"has no files of the version {version} on the machine of the gateway: {made.problem}")
        return known.files(version)

    def content(self, sha256: str) -> bytes:
        """Return the content with this hash.

        Raises:
            OSError: the content is not stored.
        """
        return self._snapshots.content(sha256)


class AnnouncedBundles:
    """The versions of bundles that were announced to one worker.

    Args:
        send: sends a message to the worker.
    """

    def __init__(self, files: BundleFiles, send: Callable[[object], Awaitable[None]]) -> None:
        self._files = files
        self._send = send
        self._last_sent: OrderedDict[tuple[str, str | None], str] = OrderedDict()
        self._announced: OrderedDict[str, Snapshot] = OrderedDict()
        """Version → its files. The worker may request only these."""

    async def announce(self, bundles: Iterable[tuple[str, str | None]]) -> None:
        """Announce these bundles to the worker, as (bundle, version; None: its newest files), before it gets attempts of them."""
        for bundle, version in dict.fromkeys(bundles):
            found = await self._files.files(bundle, version)
            if isinstance(found, Snapshot):
                self._announced[found.version] = found
                self._announced.move_to_end(found.version)
                while len(self._announced) > ANNOUNCED_MAX:
                    self._announced.popitem(last=False)
                answer = g.BundleAt(bundle, found.version, bundle_version=version or "")
            else:
                answer = g.BundleAt(bundle, problem=found, bundle_version=version or "")
            known = answer.version or answer.problem
            key = bundle, version
            if self._last_sent.get(key) != known:
                await self._send(answer)
            self._last_sent[key] = known
            self._last_sent.move_to_end(key)
            while len(self._last_sent) > ANNOUNCED_MAX:
                self._last_sent.popitem(last=False)

    async def send_manifest(self, version: str) -> None:
        """Answer `GetManifest`."""
        snapshot = self._announced.get(version)
        await self._send(g.Manifest(version, snapshot.files if snapshot is not None else None))

    async def send_content(self, sha256: str) -> None:
        """Answer `GetContent`."""
        if not any(file.sha256 == sha256 for snapshot in self._announced.values() for file in snapshot.files):
            await self._send(g.ContentPiece(sha256, problem="no version that was announced to this worker has such a file"))
            return
        try:
            data = await asyncio.to_thread(self._files.content, sha256)
        except OSError as error:
            await self._send(g.ContentPiece(sha256, problem=f"the gateway cannot read its copy: {error.strerror}"))
            return
        for start in range(0, max(len(data), 1), g.PIECE):
            await self._send(g.ContentPiece(sha256, data[start : start + g.PIECE], start + g.PIECE >= len(data)))
