"""The base image of the parser lists the folders of Python's path once for all children."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tradewind.parser.base_image import SETTLED_SECONDS, list_for_imports


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of Python's path."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.path_importer_cache.pop(str(tmp_path), None)


def settle(folder: Path) -> float:
    """Make the last change of the folder old enough. Returns its time."""
    at = time.time() - SETTLED_SECONDS - 10
    os.utime(folder, (at, at))
    return at


def found(name: str) -> bool:
    """Whether Python finds a module."""
    return importlib.util.find_spec(name) is not None


def test_a_settled_folder_is_listed_before_the_children_need_it(folder: Path) -> None:
    at = settle(folder)
    list_for_imports(str(folder))
    (folder / "tw_listed_later.py").touch()
    os.utime(folder, (at, at))
    assert not found("tw_listed_later")  # the list from before is used


def test_a_change_of_the_folder_is_noticed(folder: Path) -> None:
    settle(folder)
    list_for_imports(str(folder))
    (folder / "tw_noticed.py").touch()
    assert found("tw_noticed")


def test_a_folder_that_changed_just_now_is_not_kept(folder: Path) -> None:
    (folder / "tw_first.py").touch()
    list_for_imports(str(folder))
    at = folder.stat()
    (folder / "tw_second.py").touch()
    os.utime(folder, ns=(at.st_atime_ns, at.st_mtime_ns))  # a coarse clock: both changes have the same time
    assert found("tw_second")


def test_a_folder_that_is_gone_is_left_alone(folder: Path) -> None:
    list_for_imports(str(folder / "gone"))
    sys.path_importer_cache.pop(str(folder / "gone"), None)
