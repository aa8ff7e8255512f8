"""Task logs in a remote file system: what is uploaded when, and what is read where."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fsspec", reason="tests of uploaded logs need fsspec: pip install 'tradewind[remote-logs]'")

import fsspec

from tradewind.model.errors import ConfigError
from tradewind.storage.local_logs import LocalLogs
from tradewind.storage.remote_logs import GROWING_SECONDS, QUIET_SECONDS, SMALL_BYTES, LogUploads, RemoteFolder, RemoteLogs

NOW = 1_800_000_000.0
NAME = "etl/daily/load~attempt=1.1.log"


class Machine:
    """One machine with a log folder, on a remote file system that all machines of the test share."""

    def __init__(self, root: Path, since: float = 0.0) -> None:
        self.root = root
        self.now = NOW
        self.folder = RemoteFolder("memory://logs")
        self.uploads = LogUploads(LocalLogs(str(root)), self.folder, since, lambda: self.now)
        self.logs = RemoteLogs(LocalLogs(str(root)), self.folder)

    def write(self, text: str, name: str = NAME, *, changed: float) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (changed, changed))

    def read(self, name: str = NAME) -> str:
        with self.logs.open(name) as file:
            return file.read().decode()


def stored(name: str = NAME) -> str | None:
    files = fsspec.filesystem("memory")
    return files.cat_file(f"/logs/{name}").decode() if files.exists(f"/logs/{name}") else None


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    fsspec.filesystem("memory").store.clear()
    yield
    fsspec.filesystem("memory").store.clear()


def test_a_log_is_uploaded_when_it_has_been_quiet(tmp_path: Path) -> None:
    one = Machine(tmp_path)
    one.write("begun\n", changed=NOW - QUIET_SECONDS / 2)
    assert one.uploads.run_pass() == 0
    one.now += QUIET_SECONDS
    assert one.uploads.run_pass() == 1
    assert stored() == "begun\n"
    assert one.uploads.run_pass() == 0, "nothing has changed"


def test_a_log_that_grows_is_uploaded_now_and_then(tmp_path: Path) -> None:
    one = Machine(tmp_path)
    one.write("1", changed=NOW - QUIET_SECONDS)
    one.uploads.run_pass()
    one.now = NOW + GROWING_SECONDS - 1
    one.write("12", changed=one.now)
    assert one.uploads.run_pass() == 0
    one.now += 1
    one.write("123", changed=one.now)
    assert one.uploads.run_pass() == 1
    assert stored() == "123"


def test_a_log_that_is_never_quiet_is_uploaded_too(tmp_path: Path) -> None:
    one = Machine(tmp_path)
    one.write("1", changed=NOW)
    assert one.uploads.run_pass() == 0
    one.now = NOW + GROWING_SECONDS
    one.write("12", changed=one.now)
    assert one.uploads.run_pass() == 1
    assert stored() == "12"


def test_the_end_of_the_process_uploads_everything(tmp_path: Path) -> None:
    one = Machine(tmp_path)
    one.write("still going", changed=NOW)
    assert one.uploads.run_pass(everything=True) == 1
    assert stored() == "still going"


def test_the_next_process_continues_where_the_last_one_ended(tmp_path: Path) -> None:
    one = Machine(tmp_path)
    one.write("old", changed=NOW - 100)
    one.write("waits", "etl/daily/wait~attempt=1.1.log", changed=NOW - 1)
    assert one.uploads.run_pass() == 1
    again = Machine(tmp_path, since=one.uploads.since)
    again.now = NOW + 100
    assert again.uploads.run_pass() == 1
    assert stored("etl/daily/wait~attempt=1.1.log") == "waits"


def test_what_could_not_be_uploaded_is_due_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Machine(tmp_path)
    one.write("text", changed=NOW - 100)
    with monkeypatch.context() as broken:
        broken.setattr(one.folder.files, "open", lambda *_: (_ for _ in ()).throw(OSError("no network")))
        with pytest.raises(OSError, match="no network"):
            one.uploads.run_pass()
    assert one.uploads.since == 0.0
    assert one.uploads.run_pass() == 1
    assert stored() == "text"


def test_another_machine_reads_the_log_and_adds_to_it(tmp_path: Path) -> None:
    """The machine of a worker was lost; the scheduler of another one writes the last line of the log."""
    one, two = Machine(tmp_path / "one"), Machine(tmp_path / "two")
    long = "line\n" * SMALL_BYTES
    one.write(long, changed=NOW - 100)
    one.uploads.run_pass()
    assert two.read() == long
    two.write("lost\n", changed=NOW - 50)
    assert two.read() == long, "what is here is only the end"
    two.uploads.run_pass()
    assert stored() == long + "lost\n"
    two.now = NOW + 100
    two.write("lost\ncallback\n", changed=NOW + 50)
    two.uploads.run_pass()
    assert stored() == long + "lost\ncallback\n"
    again = Machine(tmp_path / "two")
    again.now = NOW + 200
    again.uploads.run_pass()
    assert stored() == long + "lost\ncallback\n", "a restarted process does not add it twice"


def test_a_log_that_is_nowhere(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Machine(tmp_path).read()


def test_a_file_system_that_does_not_answer_is_a_log_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Machine(tmp_path)
    monkeypatch.setattr(one.folder.files, "open", lambda *_: (_ for _ in ()).throw(PermissionError("no credentials")))
    with pytest.raises(FileNotFoundError, match="no credentials"):
        one.read()


@pytest.mark.parametrize(
    ("url", "options", "why"),
    [
        ("wasb-logs://x", None, "remote_base_log_folder = wasb-logs://x"),
        ("memory://x", "[1]", "not a JSON object"),
        ("memory://x", "{", "not a JSON object"),
    ],
)
def test_a_wrong_setting_is_named(url: str, options: str | None, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        RemoteFolder(url, options)
