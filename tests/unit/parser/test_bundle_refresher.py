"""The refresher of a bundle: connections, and when old versions are deleted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.git_server import GitServer
from tradewind.bundles.fetch_child import fetch
from tradewind.bundles.fetch_messages import FetchAnswer, FetchRequest, state_of
from tradewind.bundles.specs import BundleSpec, VersionedBundle
from tradewind.bundles.version_folders import VERSIONS_KEPT
from tradewind.model.moments import SECOND
from tradewind.parser.bundle_refresher import BundleRefresher
from tradewind.parser.scheduler_link import Answered
from tradewind.parser.service import ParserService
from tradewind.platform.clock import SystemClock
from tradewind.platform.loop import Loop
from tradewind.wire.messages import Lookup, Value

DEADLINE = 100 * SECOND


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop(SystemClock())
    yield loop
    loop.close()


def run(loop: Loop) -> None:
    """Run until something stops the loop."""
    loop.stopping = False
    loop.run()


class Service:
    """The part of the parser service that a refresher uses. Its loop stops when the scheduler is asked."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.config = SimpleNamespace(version="")
        self.pending: Callable[[list[str] | None], None] | None = None

    def use_version(self, version: str, folder: str) -> None:
        self.config.version = version

    def ask_used_versions(self, version: str, done: Callable[[list[str] | None], None]) -> None:
        assert self.pending is None, "it is asked once"
        self.pending = done
        self.loop.stop()

    def answer(self, versions: list[str] | None) -> None:
        """Answer the last question."""
        assert self.pending is not None
        done, self.pending = self.pending, None
        done(versions)


def no_connection(lookup: Lookup, answered: Answered) -> None:
    answered(Value(0, False, None))


def refresher_of(bundle: VersionedBundle, service: Service) -> BundleRefresher:
    return BundleRefresher(bundle, cast(ParserService, service), service.loop, no_connection, 1000 * SECOND, DEADLINE)


def test_old_versions_are_deleted_after_the_scheduler_has_said_what_is_used(tmp_path: Path, loop: Loop) -> None:
    server, versions = GitServer(tmp_path / "server"), list[str]()
    bundle = server.bundle(tmp_path / "bundle")
    for number in range(VERSIONS_KEPT + 3):
        versions.append(server.commit({"dags/a.py": str(number)}))
        fetch(FetchRequest(bundle.folder, bundle.spec))
        os.utime(Path(bundle.folder, "versions", versions[-1]), (number, number))

    def there() -> list[str]:
        return [version for version in versions if os.path.isdir(bundle.files(version))]

    service = Service(loop)
    refresher = refresher_of(bundle, service)
    refresher.start()
    run(loop)
    assert service.pending is not None
    assert there() == versions
    cleaned = refresher._on_cleaned

    def and_stop(answer: FetchAnswer) -> None:
        cleaned(answer)
        loop.stop()

    refresher._on_cleaned = and_stop  # type: ignore[method-assign]
    service.answer(None)
    assert refresher.pids == set(), "the scheduler has refused: nothing is deleted"
    refresher.refresh()
    run(loop)
    service.answer(versions[:1])
    assert len(refresher.pids) == 1
    run(loop)
    assert there() == [versions[0], *versions[-VERSIONS_KEPT:]]
    assert refresher.pids == set()
    refresher.close()


@pytest.mark.parametrize("conn_id", ["aws_default", "mine"])
def test_only_a_default_connection_may_be_missing(tmp_path: Path, loop: Loop, conn_id: str) -> None:
    pytest.importorskip("fsspec", reason="tests of object stores need fsspec: pip install 'tradewind[object-store]'")
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "a.py").write_text("1")
    spec = BundleSpec("dags", "object-store", f"file://{tmp_path}/store", "", "", conn_id)
    bundle = VersionedBundle(spec, str(tmp_path / "bundle"))
    service = Service(loop)
    refresher = refresher_of(bundle, service)
    refresher.start()
    if conn_id == "mine":
        assert "there is no connection 'mine'" in state_of(bundle.folder).problem
    else:
        run(loop)
        assert Path(bundle.newest, "a.py").read_text() == "1"
    refresher.close()


def test_a_fetch_without_an_answer_of_the_scheduler_is_tried_again(tmp_path: Path, loop: Loop) -> None:
    bundle = VersionedBundle(BundleSpec("x", "git", str(tmp_path / "none"), conn_id="c"), str(tmp_path / "bundle"))
    asked: list[Any] = []

    def unreachable(lookup: Lookup, answered: Answered) -> None:
        asked.append(lookup)
        answered(None)
        if len(asked) == 2:
            loop.stop()

    refresher = BundleRefresher(bundle, cast(ParserService, Service(loop)), loop, unreachable, 1000 * SECOND, DEADLINE)
    refresher.start()
    run(loop)
    assert state_of(bundle.folder).problem == ""
    refresher.close()
