"""The files that a DAG file depends on: the modules that its import has loaded from the bundle."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tradewind.sdk.load import load_file


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Modules of the bundle can be imported, and are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = dict(sys.modules)
    yield
    for name in set(sys.modules) - set(before):
        del sys.modules[name]
    sys.modules.update(before)


def sources(folder: Path, text: str) -> list[str]:
    """The names of the files that the DAG file `file.py` with this text depends on."""
    (folder / "file.py").write_text(text)
    return [Path(source.path).name for source in load_file(str(folder), "file.py").sources]


def test_modules_of_the_bundle_are_sources(tmp_path: Path) -> None:
    (tmp_path / "sources_second.py").write_text("")
    (tmp_path / "sources_first.py").write_text("import sources_second\nimport wave\n")
    assert sources(tmp_path, "import sources_first\n") == ["file.py", "sources_second.py", "sources_first.py"]


def test_packages_beside_the_dag_folder_are_sources_but_not_a_virtual_environment_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in ("include/__init__.py", "include/sources_names.py", "dags/sources_helper.py", "venv/site/sources_package.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("")
    monkeypatch.syspath_prepend(str(tmp_path / "venv" / "site"))
    text = "import include.sources_names, sources_helper, sources_package\n"
    found = sources(tmp_path / "dags", text)
    assert found == ["file.py", "__init__.py", "sources_names.py", "sources_helper.py"]


def test_a_file_that_removes_the_module_that_was_imported_before_it_has_its_sources(tmp_path: Path) -> None:
    (tmp_path / "sources_helper.py").write_text("")
    newest = next(reversed(sys.modules))
    assert sources(tmp_path, f"import sys\ndel sys.modules[{newest!r}]\nimport sources_helper\n") == [
        "file.py",
        "sources_helper.py",
    ]


def test_a_file_that_reloads_the_module_that_was_imported_before_it_has_its_sources(tmp_path: Path) -> None:
    (tmp_path / "sources_reloaded.py").write_text("")
    (tmp_path / "sources_helper.py").write_text("")
    importlib.import_module("sources_reloaded")
    text = "import importlib, sources_reloaded, sources_helper\nimportlib.reload(sources_reloaded)\n"
    assert "sources_helper.py" in sources(tmp_path, text)


def test_a_module_that_is_imported_again_is_a_source(tmp_path: Path) -> None:
    (tmp_path / "sources_again.py").write_text("")
    assert sources(tmp_path, "import sources_again\n") == ["file.py", "sources_again.py"]
    assert sources(tmp_path, "import sys\ndel sys.modules['sources_again']\nimport sources_again\n") == [
        "file.py",
        "sources_again.py",
    ]


def test_the_same_file_again_has_no_other_modules_of_the_project(tmp_path: Path) -> None:
    """The modules of the project folder that were imported before the file belong to somebody else."""
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "__init__.py").write_text("")
    (tmp_path / "dags").mkdir()
    importlib.import_module("others")
    (tmp_path / "dags" / "earlier.py").write_text("")
    load_file(
        str(tmp_path / "dags"), "earlier.py"
    )  # so that the module of the file below is the last one when it is read again
    for _ in range(2):
        assert sources(tmp_path / "dags", "import json\n") == ["file.py"]
    assert not [name for name in sys.modules if name.startswith("_tradewind_before_")]
