"""The folders of versions on the scheduler's machine: made again if they were deleted, and never waited for in vain."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.git_server import GitServer
from tradewind.bundles.fetch_child import fetch
from tradewind.bundles.fetch_messages import FetchRequest
from tradewind.bundles.specs import VersionedBundle
from tradewind.platform.clock import SystemClock
from tradewind.platform.loop import Loop
from tradewind.worker.local_versions import LocalVersions


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop(SystemClock())
    yield loop
    loop.close()


@pytest.fixture
def server(tmp_path: Path) -> GitServer:
    return GitServer(tmp_path / "server")


@pytest.fixture
def bundle(server: GitServer, tmp_path: Path) -> VersionedBundle:
    return server.bundle(tmp_path / "bundles" / "repo")


def test_a_deleted_folder_is_made_again(server: GitServer, bundle: VersionedBundle, loop: Loop) -> None:
    version = server.commit({"dags/a.py": "1"})
    fetch(FetchRequest(bundle.folder, bundle.spec))
    versions = LocalVersions({"repo": bundle}, loop, loop.stop)
    assert versions.folder("repo", version) == bundle.files(version)
    shutil.rmtree(Path(bundle.folder, "versions"))
    assert versions.folder("repo", version) is None
    assert len(versions.pids()) == 1
    assert versions.folder("repo", version) is None
    loop.run()
    assert (versions.folder("repo", version), versions.pids()) == (bundle.files(version), set())
    assert Path(bundle.files(version), "a.py").read_text() == "1"


def test_a_version_that_cannot_be_made_blocks_nothing(bundle: VersionedBundle, loop: Loop) -> None:
    versions = LocalVersions({"repo": bundle}, loop, loop.stop)
    unknown = "0" * 40
    assert versions.folder("repo", unknown) is None
    loop.run()
    assert versions.folder("repo", unknown) == bundle.files(unknown)  # the attempt fails, and names this path


def test_a_version_without_the_configured_folder_is_not_made_again_and_again(
    server: GitServer, bundle: VersionedBundle, loop: Loop
) -> None:
    version = server.commit({"elsewhere/a.py": "1"})
    fetch(FetchRequest(bundle.folder, bundle.spec))
    assert LocalVersions({"repo": bundle}, loop, loop.stop).folder("repo", version) == bundle.files(version)
