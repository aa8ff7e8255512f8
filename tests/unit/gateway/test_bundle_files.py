"""What a gateway announces to a worker: the newest files of a folder, and the files of versions."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from tests.git_server import GitServer
from tradewind.bundles.fetch_child import fetch
from tradewind.bundles.fetch_messages import FetchRequest
from tradewind.bundles.specs import BundleSpec, VersionedBundle
from tradewind.gateway.bundle_files import AnnouncedBundles, BundleFiles
from tradewind.wire import gateway as g


def test_versions_of_a_bundle_are_announced_side_by_side(tmp_path: Path) -> None:
    server = GitServer(tmp_path / "server")
    bundle = VersionedBundle(BundleSpec("repo", "git", str(server.bare), subdir="dags"), str(tmp_path / "bundles" / "repo"))
    commits = []
    for text in ("1", "2"):
        commits.append(server.commit({"dags/a.py": text, "beside.txt": "not sent"}))
        fetch(FetchRequest(bundle.folder, bundle.spec))
    shutil.rmtree(Path(bundle.folder, "versions", commits[0]))  # it is made again
    sent: list[object] = []

    async def send(message: object) -> None:
        sent.append(message)

    files = BundleFiles(str(tmp_path), {}, str(tmp_path / "store"), {"repo": bundle})
    announced = AnnouncedBundles(files, send)
    asyncio.run(announced.announce([("repo", commits[0]), ("repo", commits[1]), ("repo", commits[0]), ("repo", "0" * 40)]))
    first, second, unknown = sent
    assert isinstance(first, g.BundleAt)
    assert isinstance(second, g.BundleAt)
    assert isinstance(unknown, g.BundleAt)
    assert (first.bundle_version, second.bundle_version) == tuple(commits)
    assert first.version != second.version
    assert not unknown.version
    assert "has no files of the version" in unknown.problem
    sent.clear()
    asyncio.run(announced.send_manifest(first.version))
    (manifest,) = sent
    assert isinstance(manifest, g.Manifest)
    assert manifest.files is not None
    assert [one.path for one in manifest.files] == ["a.py"]
    assert files.content(manifest.files[0].sha256) == b"1"
