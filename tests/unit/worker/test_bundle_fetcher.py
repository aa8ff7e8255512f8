"""The DAG files of a remote worker host: what it asks for, and what it does with the answers."""

from __future__ import annotations

import hashlib
from pathlib import Path

from tradewind.bundles.unpacked import UnpackedBundles
from tradewind.wire import gateway as g
from tradewind.wire.bundle_manifest import BundleFile, version_of
from tradewind.worker.bundle_fetcher import ASKED_MAX, BundleFetcher

TEXTS = {f"f{number}.py": f"n = {number}\n".encode() for number in range(2 * ASKED_MAX)}
FILES = tuple(BundleFile(path, hashlib.sha256(text).hexdigest(), len(text)) for path, text in TEXTS.items())
CONTENT = {hashlib.sha256(text).hexdigest(): text for text in TEXTS.values()}
VERSION = version_of(FILES)


class Rig:
    """A fetcher whose gateway is the test."""

    def __init__(self, folder: Path) -> None:
        self.sent: list[object] = []
        self.ready = 0
        self.fetcher = BundleFetcher(
            UnpackedBundles(str(folder)), lambda bundle: f"/local/{bundle}", self.sent.append, self._count, lambda: ()
        )

    def _count(self) -> None:
        self.ready += 1

    def begin(self) -> None:
        """Announce the version, and have it asked for."""
        self.fetcher.on_bundle_at(g.BundleAt("dags", VERSION))
        assert self.fetcher.folder("dags") is None
        assert self.sent == [g.GetManifest(VERSION)]
        self.sent.clear()

    def answer(self) -> None:
        """Answer all questions for content, each in two pieces."""
        while self.sent:
            question = self.sent.pop(0)
            assert isinstance(question, g.GetContent)
            assert len(self.sent) < ASKED_MAX
            text = CONTENT[question.sha256]
            self.fetcher.on_content(g.ContentPiece(question.sha256, text[:3], last=False))
            self.fetcher.on_content(g.ContentPiece(question.sha256, text[3:]))


def test_all_files_come_and_attempts_may_begin(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.begin()
    rig.fetcher.on_manifest(g.Manifest(VERSION, FILES))
    assert len(rig.sent) == ASKED_MAX
    rig.answer()
    folder = rig.fetcher.folder("dags")
    assert folder is not None
    assert {one.name: one.read_bytes() for one in Path(folder).iterdir()} == TEXTS
    assert rig.ready == 1


def test_a_lost_connection_asks_again_for_what_is_missing(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.begin()
    rig.fetcher.on_manifest(g.Manifest(VERSION, FILES))
    first = rig.sent.pop(0)
    assert isinstance(first, g.GetContent)
    rig.fetcher.on_content(g.ContentPiece(first.sha256, CONTENT[first.sha256]))
    rig.sent.clear()
    rig.fetcher.on_connected()
    assert rig.sent == [g.GetManifest(VERSION)]
    rig.sent.clear()
    rig.fetcher.on_manifest(g.Manifest(VERSION, FILES))
    assert g.GetContent(first.sha256) not in rig.sent
    rig.answer()
    assert rig.fetcher.folder("dags") is not None


def test_without_files_from_the_gateway_the_local_folder_is_used(tmp_path: Path) -> None:
    """An older gateway says nothing; one whose folder is too large says so."""
    rig = Rig(tmp_path)
    assert rig.fetcher.folder("dags") == "/local/dags"
    rig.fetcher.on_bundle_at(g.BundleAt("dags", problem="cannot be sent"))
    assert rig.fetcher.folder("dags") == "/local/dags"
    assert rig.sent == []


def test_bad_answers_are_given_up_and_asked_for_again(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    name = FILES[0].sha256
    bad_answers: list[tuple[g.Manifest, g.ContentPiece | None]] = [
        (g.Manifest(VERSION), None),
        (g.Manifest(VERSION, FILES[1:]), None),
        (g.Manifest(VERSION, (BundleFile("../x", name, 1),)), None),
        (g.Manifest(VERSION, FILES), g.ContentPiece(name, b"bad")),
        (g.Manifest(VERSION, FILES), g.ContentPiece(name, problem="gone")),
    ]
    for manifest, content in bad_answers:
        rig.sent.clear()
        rig.begin()
        rig.fetcher.on_manifest(manifest)
        if content is not None:
            rig.fetcher.on_content(content)
    rig.sent.clear()
    rig.begin()
    rig.fetcher.on_manifest(g.Manifest(VERSION, FILES))
    rig.answer()
    assert rig.fetcher.folder("dags") is not None
    assert not (tmp_path / "x").exists()


def test_each_version_of_a_bundle_has_files_of_its_own(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.fetcher.on_bundle_at(g.BundleAt("dags", "1" * 64, bundle_version="new"))
    rig.fetcher.on_bundle_at(g.BundleAt("dags", VERSION, bundle_version="old"))
    assert rig.fetcher.folder("dags", "old") is None
    assert rig.sent == [g.GetManifest(VERSION)]
    rig.sent.clear()
    rig.fetcher.on_manifest(g.Manifest(VERSION, FILES))
    rig.answer()
    assert str(rig.fetcher.folder("dags", "old")).endswith(VERSION)
    assert rig.fetcher.folder("dags", "new") is None


def test_an_attempt_never_runs_other_files_than_those_of_its_version(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.fetcher.on_bundle_at(g.BundleAt("dags", problem="has no files of the version abc", bundle_version="abc"))
    folder = rig.fetcher.folder("dags", "abc")
    assert folder is not None
    assert "/local/" not in folder
    assert not Path(folder).exists()
