from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tradewind.parser.sources import Sources, imports_of
from tradewind.sdk.dag_files import may_hold_dags


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def sources(folder: Path, salt: str = "") -> Sources:
    return Sources(str(folder), salt, lambda: time.time_ns() // 1000)


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def needs(folder: Path, file: str) -> list[str]:
    return sorted(os.path.relpath(path, folder) for path in sources(folder).imported_modules(file))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"import a", [(0, "a", ())]),
        (b"import a.b as c, d", [(0, "a.b", ()), (0, "d", ())]),
        (b"from a.b import c as d, e  # f", [(0, "a.b", ("c", "e"))]),
        (b"from a import (\n    b,  # one\n    c as d,\n)", [(0, "a", ("b", "c"))]),
        (b"from a import b, \\\n    c", [(0, "a", ("b", "c"))]),
        (b"from . import b", [(1, "", ("b",))]),
        (b"from ..a import *", [(2, "a", ())]),
        (b"try:\n    import a\nexcept ImportError:\n    import b", [(0, "a", ()), (0, "b", ())]),
        (b"x = 'import a'", []),
        (b"import a; import b", [(0, "a", ()), (0, "b", ())]),
        (b"\xff\xfeimport", []),
    ],
)
def test_import_statements_are_found(text: bytes, expected: list[tuple[int, str, tuple[str, ...]]]) -> None:
    assert list(imports_of(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [(b"from airflow import DAG", True), (b"TradeWind dAg", True), (b"from airflow import x", False), (b"dag", False)],
)
def test_safe_mode(text: bytes, expected: bool) -> None:
    assert may_hold_dags(text) is expected


def test_dependencies_of_packages_relative_imports_and_modules_beside(folder: Path) -> None:
    write(folder, x__a="import near, pkg.deep.mod\nfrom pkg import named, other", x__near="", pkg____init__="")
    (folder / "pkg").mkdir(exist_ok=True)
    (folder / "pkg/__init__.py").write_text("from .inner import thing")
    write(folder, pkg__inner="from .. import top", pkg__named="", top="", pkg__deep__mod="from ..named import x", unrelated="")
    assert needs(folder, "x/a.py") == [
        "pkg/__init__.py",
        "pkg/deep/mod.py",
        "pkg/inner.py",
        "pkg/named.py",
        "top.py",
        "x/near.py",
    ]


def test_cyclic_imports_end(folder: Path) -> None:
    write(folder, a="import b", b="import a")
    assert needs(folder, "a.py") == ["b.py"]


def test_a_fingerprint_depends_on_the_file_its_modules_and_the_salt(folder: Path) -> None:
    write(folder, a="import b", b="", c="")
    first = sources(folder).fingerprint("a.py")
    assert first == sources(folder).fingerprint("a.py")
    write(folder, c="X = 1")
    assert sources(folder).fingerprint("a.py") == first
    assert sources(folder, "other").fingerprint("a.py") != first
    write(folder, b="X = 1")
    second = sources(folder).fingerprint("a.py")
    assert second != first
    assert sources(folder).fingerprint("a.py", [str(folder / "c.py")]) != second


def test_a_fingerprint_does_not_depend_on_the_path_of_the_folder(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, a="import b", b="x = 1")
    assert sources(tmp_path / "one").fingerprint("a.py") == sources(tmp_path / "two").fingerprint("a.py")


def test_a_deleted_file_has_no_fingerprint(folder: Path) -> None:
    assert sources(folder).fingerprint("a.py") is None
    assert sources(folder).last_change("a.py") == 0


def test_a_second_write_with_the_same_timestamp_is_noticed(folder: Path) -> None:
    found = sources(folder)
    path = folder / "a.py"
    for number in range(200):
        path.write_text(f"x = {number % 10}")
        source = found.source(str(path))
        again = sources(folder).source(str(path))
        assert source is not None
        assert again is not None
        assert source.digest == again.digest


def test_an_old_file_is_opened_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, a="x = 1")
    late = Sources(str(folder), "", lambda: time.time_ns() // 1000 + 10_000_000)
    first = late.source(str(folder / "a.py"))

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("opened again")

    monkeypatch.setattr("builtins.open", refuse)
    assert late.source(str(folder / "a.py")) is first
