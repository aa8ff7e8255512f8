"""The folders of versions of bundles on the scheduler's machine. A deleted folder is made again from the copy of the repository."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from tradewind.bundles.fetch_messages import FetchAnswer, FetchRequest
from tradewind.bundles.fetches import Fetch
from tradewind.bundles.specs import VersionedBundle
from tradewind.model.bundles import version_folder
from tradewind.model.moments import SECOND
from tradewind.observe.log import Log
from tradewind.platform.loop import Loop

log = Log("host")

DEADLINE = 120 * SECOND
RETRY_AFTER = 10 * SECOND


class LocalVersions:
    """See the module.

    Args:
        ready: called when a folder was made, or cannot be made.
    """

    def __init__(self, bundles: Mapping[str, VersionedBundle], loop: Loop, ready: Callable[[], None]) -> None:
        self._bundles = bundles
        self._loop = loop
        self._ready = ready
        self._fetches: dict[tuple[str, str], Fetch] = {}
        self._failed: dict[tuple[str, str], int] = {}
        """(bundle, version) → the time until which its folder counts as missing."""

    def has(self, bundle: str) -> bool:
        """Whether this bundle has versions."""
        return bundle in self._bundles

    def folder(self, bundle: str, version: str) -> str | None:
        """Return the folder of a version. None: it is being made, and `ready` is called afterwards.

        If it cannot be made, the path is returned nevertheless: the attempt then fails, and its reason names the path.
        """
        known, key = self._bundles[bundle], (bundle, version)
        path = known.files(version)
        if os.path.isdir(version_folder(known.folder, version)):
            return path
        if self._failed.get(key, 0) > self._loop.clock.monotonic():
            return path
        if key not in self._fetches:
            request = FetchRequest(known.folder, known.spec, version)
            self._fetches[key] = Fetch(self._loop, request, DEADLINE, lambda answer: self._done(key, answer))
        return None

    def pids(self) -> set[int]:
        """The processes that make folders."""
        return {fetch.pid for fetch in self._fetches.values()}

    def _done(self, key: tuple[str, str], answer: FetchAnswer) -> None:
        del self._fetches[key]
        if answer.problem:
            self._failed = {one: until for one, until in self._failed.items() if until > self._loop.clock.monotonic()}
            self._failed[key] = self._loop.clock.monotonic() + RETRY_AFTER
            log.error(
                "the files of an earlier version of a bundle are missing", bundle=key[0], version=key[1], why=answer.problem
            )
        self._ready()
