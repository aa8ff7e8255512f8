"""Files that only their owner can read."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tradewind.platform.private_file import create_private_file, exposure, private_folder


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture(params=[0o000, 0o022, 0o777])
def umask(request: pytest.FixtureRequest) -> object:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_file_and_folders_are_private_whatever_the_umask(tmp_path: Path) -> None:
    folder = private_folder(str(tmp_path / "a" / "b"))
    assert create_private_file(os.path.join(folder, "key"), b"secret")
    assert [mode(tmp_path / p) for p in ("a", "a/b", "a/b/key")] == [0o700, 0o700, 0o600]


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    path = str(tmp_path / "key")
    assert create_private_file(path, b"first")
    assert not create_private_file(path, b"second")
    assert Path(path).read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["key"], "drafts are cleared away"


def test_one_of_many_racing_processes_creates_the_file_and_all_see_it_whole(tmp_path: Path) -> None:
    path = str(tmp_path / "key")
    start = threading.Barrier(8)
    won: list[bytes] = []
    seen: list[bytes] = []

    def race(number: int) -> None:
        content = bytes([number]) * 10_000
        start.wait()
        if create_private_file(path, content):
            won.append(content)
        seen.append(Path(path).read_bytes())

    threads = [threading.Thread(daemon=True, target=race, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert set(seen) == set(won)


def test_a_file_in_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(OSError, match=r"a/b|a'"):
        private_folder(str(tmp_path / "a" / "b"))


def test_existing_folders_keep_their_mode(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o755)
    private_folder(str(tmp_path / "shared" / "mine"))
    assert (mode(tmp_path / "shared"), mode(tmp_path / "shared" / "mine")) == (0o755, 0o700)


def test_exposure_names_the_reason(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    assert exposure(str(folder)) is None
    folder.chmod(0o750)
    assert exposure(str(folder)) == "its mode is 0750, which gives others access"
    (tmp_path / "link").symlink_to(folder)
    assert exposure(str(tmp_path / "link")) == "it is a symbolic link"


def test_exposure_names_another_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert "belongs to user id" in (exposure(str(tmp_path)) or "")
