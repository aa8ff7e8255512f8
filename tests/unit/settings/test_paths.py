"""Paths of an installation, and sockets for home folders with long paths."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tradewind.model.errors import ConfigError
from tradewind.settings import Paths, load
from tradewind.settings.paths import SOCKET_PATH_MAX_BYTES


def mode(path: str) -> int:
    return os.stat(path).st_mode & 0o777


def paths_at(home: Path, **env: str) -> Paths:
    return load(env, str(home)).paths


@pytest.fixture
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A short private folder, such as the one that systemd creates for each login."""
    folder = f"/tmp/tw-test-{os.getpid()}"
    os.mkdir(folder, 0o700)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    return tmp_path / ("d" * 100)


def test_paths_are_below_home(tmp_path: Path) -> None:
    paths = paths_at(Path("/srv/tw"))
    assert paths.scheduler_socket == "/srv/tw/run/scheduler.sock"
    assert paths.host_socket == "/srv/tw/run/host.sock"
    assert (paths.lock, paths.database, paths.fernet_key) == (
        "/srv/tw/run/lock",
        "/srv/tw/tradewind.db",
        "/srv/tw/fernet.key",
    )
    assert (paths.spool, paths.xcom, paths.logs) == ("/srv/tw/spool", "/srv/tw/xcom", "/srv/tw/logs")
    assert (paths.jwt_key, paths.accounts) == ("/srv/tw/jwt.key", "/srv/tw/accounts.db")


def test_folders_are_created_private_and_prepare_can_be_repeated(tmp_path: Path) -> None:
    paths = paths_at(tmp_path / "home")
    before = os.umask(0)
    try:
        paths.prepare()
    finally:
        os.umask(before)
    paths.prepare()
    folders = (paths.home, paths.run, paths.logs, paths.xcom, paths.spool, paths.dags)
    assert {folder: mode(folder) for folder in folders} == dict.fromkeys(folders, 0o700)


def test_a_run_folder_that_others_can_enter_is_closed(tmp_path: Path) -> None:
    paths = paths_at(tmp_path)
    os.makedirs(paths.run, 0o755)
    paths.prepare()
    assert mode(paths.run) == 0o700


def test_a_dag_folder_outside_home_is_not_created(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    paths = paths_at(tmp_path / "home", TRADEWIND__CORE__DAGS_FOLDER=str(elsewhere))
    paths.prepare()
    assert paths.dags == str(elsewhere)
    assert not elsewhere.exists()


def test_the_error_names_a_folder_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("in the way")
    with pytest.raises(ConfigError, match=r"cannot create the folder .*home"):
        paths_at(tmp_path / "home").prepare()


def test_a_long_home_path_has_its_sockets_in_a_short_private_folder(deep: Path, runtime: str) -> None:
    paths = paths_at(deep, XDG_RUNTIME_DIR=runtime)
    paths.prepare()
    assert paths.socket_folder.startswith(runtime + "/tradewind-")
    assert mode(paths.socket_folder) == 0o700
    assert len(os.fsencode(paths.socket("x" * 24))) <= SOCKET_PATH_MAX_BYTES
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(paths.scheduler_socket)


@pytest.mark.parametrize("length", range(70, 90))
def test_the_longest_socket_can_be_bound_for_any_length_of_home(tmp_path: Path, length: int, runtime: str) -> None:
    home = f"{runtime}/{'h' * (length - len(runtime) - 1)}"
    paths = paths_at(Path(home), XDG_RUNTIME_DIR=runtime)
    paths.prepare()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(paths.socket("x" * 24))
    assert (paths.socket_folder == paths.run) == (len(paths.run) + 25 <= SOCKET_PATH_MAX_BYTES)


def test_two_homes_never_share_a_socket_folder(tmp_path: Path, runtime: str) -> None:
    one, two = (paths_at(tmp_path / (c * 100), XDG_RUNTIME_DIR=runtime) for c in "ab")
    assert one.socket_folder != two.socket_folder


def test_a_process_without_the_runtime_folder_finds_the_same_sockets(deep: Path, runtime: str) -> None:
    first = paths_at(deep, XDG_RUNTIME_DIR=runtime)
    first.prepare()
    assert paths_at(deep).socket_folder == first.socket_folder


def test_another_socket_folder_is_chosen_if_the_recorded_one_is_gone(deep: Path, runtime: str) -> None:
    first = paths_at(deep, XDG_RUNTIME_DIR=runtime)
    first.prepare()
    os.rmdir(first.socket_folder)
    assert paths_at(deep).socket_folder.startswith("/tmp/tradewind-")


def test_a_runtime_folder_open_to_others_is_not_used(deep: Path, runtime: str) -> None:
    os.chmod(runtime, 0o755)
    assert paths_at(deep, XDG_RUNTIME_DIR=runtime).socket_folder.startswith("/tmp/tradewind-")


@pytest.mark.parametrize("trick", ["open", "link", "file"])
def test_a_socket_folder_that_others_can_access_is_refused(deep: Path, runtime: str, trick: str) -> None:
    folder = paths_at(deep, XDG_RUNTIME_DIR=runtime).socket_folder
    if trick == "open":
        os.mkdir(folder)
        os.chmod(folder, 0o777)
    elif trick == "link":
        os.symlink(runtime, folder)
    else:
        os.close(os.open(folder, os.O_CREAT, 0o600))
    with pytest.raises(ConfigError, match=r"is not safe: it.*shorter than"):
        paths_at(deep, XDG_RUNTIME_DIR=runtime)


def test_a_socket_folder_taken_between_choice_and_use_is_refused(deep: Path, runtime: str) -> None:
    paths = paths_at(deep, XDG_RUNTIME_DIR=runtime)
    os.symlink(runtime, paths.socket_folder)
    with pytest.raises(ConfigError, match="symbolic link"):
        paths.prepare()


def test_a_long_socket_name_is_refused() -> None:
    with pytest.raises(ValueError, match="longer than 24 bytes"):
        paths_at(Path("/h")).socket("x" * 25)
