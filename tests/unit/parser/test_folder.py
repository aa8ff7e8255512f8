from __future__ import annotations

import os
from pathlib import Path

import pytest

from tradewind.parser.folder import FolderScan, scan_folder


def touch(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def test_hidden_files_are_not_listed(tmp_path: Path) -> None:
    touch(
        tmp_path, "a.py", "x/b.py", "c.txt", ".d.py", ".git/e.py", "__pycache__/f.py", "#g.py#", "h.py~", ".#i.py", "j.py.swp"
    )
    touch(tmp_path, "venv/pyvenv.cfg", "venv/lib/k.py")
    found = scan_folder(str(tmp_path))
    assert sorted(found.files) == ["a.py", "x/b.py"]
    assert found.unreadable == {}


def test_ignore_files_of_both_names_work_in_every_folder(tmp_path: Path) -> None:
    touch(tmp_path, "a.py", "skip/b.py", "x/c.py", "x/d.py", "x/e/f.py")
    (tmp_path / ".airflowignore").write_text("skip\n")
    (tmp_path / "x/.tradewindignore").write_text("d.py\ne/\n")
    assert sorted(scan_folder(str(tmp_path)).files) == ["a.py", "x/c.py"]


def test_real_folders_are_listed_before_links_and_loops_end(tmp_path: Path) -> None:
    touch(tmp_path, "z/a.py")
    (tmp_path / "a_link").symlink_to("z")
    (tmp_path / "z/up").symlink_to("..")
    assert list(scan_folder(str(tmp_path)).files) == ["z/a.py"]


def test_a_folder_is_watched_before_it_is_listed(tmp_path: Path) -> None:
    touch(tmp_path, "x/a.py")
    look_order: list[str] = []

    def announce(path: str) -> None:
        look_order.append(os.path.relpath(path, tmp_path))
        if path.endswith("x"):
            touch(tmp_path, "x/late.py")

    assert "x/late.py" in scan_folder(str(tmp_path), announce).files
    assert look_order == [".", "x"]


def test_a_missing_dag_folder_removes_no_files(tmp_path: Path) -> None:
    found = scan_folder(str(tmp_path / "nowhere"))
    assert "" in found.unreadable
    assert not found.is_confirmed_absent("a.py")


def test_a_dag_folder_that_is_a_file_is_reported(tmp_path: Path) -> None:
    touch(tmp_path, "file")
    assert "Not a directory" in scan_folder(str(tmp_path / "file")).unreadable[""]


def test_a_folder_that_cannot_be_listed_keeps_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "x/a.py", "b.py")
    whole = os.scandir

    def scandir(path: str) -> object:
        if path.endswith("/x"):
            raise PermissionError(13, "Permission denied")
        return whole(path)

    monkeypatch.setattr(os, "scandir", scandir)
    found = scan_folder(str(tmp_path))
    assert found.unreadable == {"x": "Permission denied"}
    assert not found.is_confirmed_absent("x/a.py")
    assert not found.is_confirmed_absent("x/y/a.py")
    assert found.is_confirmed_absent("xy/a.py")


def test_absence() -> None:
    found = FolderScan(files={"a.py": (0, 0, 0, 0)})
    assert not found.is_confirmed_absent("a.py")
    assert found.is_confirmed_absent("b.py")
