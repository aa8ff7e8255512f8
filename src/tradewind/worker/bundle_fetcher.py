"""Fetches the DAG files of a remote worker host from its gateway.

    BundleAt ─▶ GetManifest ─▶ Manifest ─▶ GetContent (what is not here) ─▶ ContentPiece … ─▶ the folder of the version

An attempt waits until the files of its bundle's newest version have arrived. After a lost connection, missing files are
requested again. If the gateway cannot send the files, or is of an older release, the DAG folder of this machine is used.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Collection

from tradewind.bundles.unpacked import UnpackedBundles
from tradewind.observe.log import Log
from tradewind.wire import gateway as g
from tradewind.wire.bundle_manifest import BundleFile, manifest_problem, version_of

log = Log("host")

VERSIONS_KNOWN_MAX = 64
"""As many versions as a gateway keeps for one worker."""
ASKED_MAX = 16
"""Number of files that are requested at a time."""


class _Fetch:
    """One version that is being fetched."""

    def __init__(self) -> None:
        self.files: tuple[BundleFile, ...] | None = None
        self.left: deque[str] = deque()
        self.asked: dict[str, bytearray] = {}


class BundleFetcher:
    """See the module.

    Args:
        local_folder: bundle → its folder on this machine, if the gateway sends no files.
        send: sends a message to the gateway.
        ready: called when a version has arrived, or cannot be fetched.
        used: the folders that running attempts use.
    """

    def __init__(
        self,
        store: UnpackedBundles,
        local_folder: Callable[[str], str],
        send: Callable[[object], None],
        ready: Callable[[], None],
        used: Callable[[], Collection[str]],
    ) -> None:
        self._store = store
        self._local_folder = local_folder
        self._send = send
        self._ready = ready
        self._used = used
        self._at: OrderedDict[tuple[str, str], str] = OrderedDict()
        """(bundle, version there or "" for its newest files) → hash of its files; empty: the gateway cannot send them."""
        self._fetches: dict[str, _Fetch] = {}

    def folder(self, bundle: str, bundle_version: str | None = None) -> str | None:
        """Return the folder of a bundle's version. None: it is being fetched, and `ready` is called afterwards."""
        version = self._at.get((bundle, bundle_version or ""), "")
        if not version and bundle_version is not None:
            return self._store.absent(bundle_version)  # the attempt fails, and its reason names this path
        if not version:
            return self._local_folder(bundle)
        found = self._store.find(version)
        if found is None and version not in self._fetches:
            self._fetches[version] = _Fetch()
            self._send(g.GetManifest(version))
        return found

    def on_connected(self) -> None:
        """Repeat the open requests on a new connection."""
        for version in list(self._fetches):
            self._fetches[version] = _Fetch()
            self._send(g.GetManifest(version))

    def on_bundle_at(self, message: g.BundleAt) -> None:
        """A bundle has a new version."""
        key = message.bundle, message.bundle_version
        self._at[key] = message.version
        self._at.move_to_end(key)
        while len(self._at) > VERSIONS_KNOWN_MAX:
            self._at.popitem(last=False)
        if message.problem:
            log.error(
                "the gateway cannot send the files of a bundle"
                + ("" if message.bundle_version else "; the DAG folder of this machine is used"),
                why=f"bundle {message.bundle} {message.problem}",
            )

    def on_manifest(self, message: g.Manifest) -> None:
        """The files of a version."""
        fetch = self._fetches.get(message.version)
        if fetch is None:
            return
        if message.files is None:
            self._give_up(message.version, "the gateway does not have this version any more")
        elif problem := manifest_problem(message.files):
            self._give_up(message.version, problem)
        elif version_of(message.files) != message.version:
            self._give_up(message.version, "the list of files does not match this version")
        else:
            fetch.files = message.files
            fetch.left = deque(self._store.missing(message.files))
            self._continue(message.version, fetch)

    def on_content(self, message: g.ContentPiece) -> None:
        """A part of the content of a file."""
        for version, fetch in list(self._fetches.items()):
            data = fetch.asked.get(message.sha256)
            if data is None:
                continue
            if message.problem:
                self._give_up(version, message.problem)
                continue
            data += message.data
            if message.last:
                del fetch.asked[message.sha256]
                try:
                    if self._store.add(message.sha256, bytes(data)):
                        self._continue(version, fetch)
                    else:
                        self._give_up(version, "a file was damaged during the transfer")
                except OSError as error:
                    self._give_up(version, f"a file cannot be stored: {error.strerror}")

    def _continue(self, version: str, fetch: _Fetch) -> None:
        """Request the next files. After the last file, make the folder."""
        others = {name for other in self._fetches.values() for name in other.asked}
        while fetch.left and len(fetch.asked) < ASKED_MAX:
            name = fetch.left.popleft()
            fetch.asked[name] = bytearray()
            if name not in others:
                self._send(g.GetContent(name))
        if fetch.asked or fetch.files is None:
            return
        try:
            self._store.unpack(version, fetch.files)
        except OSError as error:
            self._give_up(version, f"its folder cannot be written: {error.strerror}")
            return
        del self._fetches[version]
        log.info("the DAG files have arrived", version=version[:12], files=len(fetch.files))
        if not self._fetches:
            self._store.clean_blobs({one.sha256 for one in fetch.files})
        self._store.clean({*self._at.values(), *(folder.rpartition("/")[2] for folder in self._used())})
        self._ready()

    def _give_up(self, version: str, why: str) -> None:
        """Give up a version. The scheduler sends the waiting attempts again, and then the version is requested again."""
        del self._fetches[version]
        log.error("the DAG files of this worker cannot be fetched; they are requested again", version=version[:12], why=why)
