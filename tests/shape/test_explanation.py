"""The explanation pages name files, classes and packages that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.shape.source import ROOT, SOURCE, syntax_tree
from tests.shape.test_import_ranks import BATTERIES, RANKS

EXPLANATION = ROOT / "docs" / "explanation"
ARCHITECTURE = EXPLANATION / "architecture.md"
PAGES = sorted(EXPLANATION.glob("*.md"))
FILE_ENDINGS = (".py", ".sql", ".tsv")
FOLDERS = {path.name for base in (ROOT, SOURCE) for path in base.iterdir() if path.is_dir()}


def source_paths(text: str) -> set[str]:
    """Names in backticks that look like a source file or a source folder: `kernel/machine.py`, `scheduler/dags/`.

    Patterns of file names, such as `NNNN_name.sql`, are left out.
    """
    return {
        word
        for word in re.findall(r"`([\w./-]+)`", text)
        if "NNNN" not in word and (word.endswith(FILE_ENDINGS) or ("/" in word and word.partition("/")[0] in FOLDERS))
    }


def located(name: str) -> Path | None:
    """The file or folder, below the root of the project or below src/tradewind."""
    return next((base / name for base in (ROOT, SOURCE) if (base / name).exists()), None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_source_paths_exist(page: Path) -> None:
    """After a file was moved: name its new place on the page."""
    assert sorted(name for name in source_paths(page.read_text(encoding="utf-8")) if located(name) is None) == []


def test_source_paths_are_recognized() -> None:
    """The test above sees paths, and no words that only contain a slash."""
    assert source_paths("`kernel/machine.py`, `scheduler/dags/`, `core.py`, `a/b`, `x.y`, kernel/why.py") == {
        "kernel/machine.py",
        "scheduler/dags/",
        "core.py",
    }
    assert located("kernel/machine.py") == SOURCE / "kernel" / "machine.py"
    assert located("tests/shape/") == ROOT / "tests" / "shape"
    assert located("runs/run_registry.py") is None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_classes_exist_in_their_file(page: Path) -> None:
    """Where a page writes "`model/rows.py`: `RunRow`", the file defines this name at its top level."""
    missing = []
    for name, symbol in re.findall(r"`([\w./-]+\.py)`: `(\w+)`", page.read_text(encoding="utf-8")):
        path = located(name)
        assert path is not None, name
        defined = {node.name for node in syntax_tree(path).body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        if symbol not in defined:
            missing.append(f"{name}: {symbol}")
    assert missing == []


def test_the_table_of_packages_lists_every_package_with_its_rank() -> None:
    """The table of the architecture page agrees with the ranks that the import test enforces."""
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", ARCHITECTURE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {package: int(rank) for rank, package in rows} == {
        name: rank for name, rank in RANKS.items() if name not in ("__main__", "lazy_names")
    }


def test_the_architecture_page_names_every_package_of_operators() -> None:
    """Packages beside the ranks (hooks, triggers, operators, sensors) stand in their order below the table."""
    present = [name for name in BATTERIES if (SOURCE / name).is_dir()]
    assert ", ".join(f"`{name}`" for name in present[:-1]) + f" and `{present[-1]}`" in ARCHITECTURE.read_text(encoding="utf-8")


def test_the_glossary_leads_into_every_package() -> None:
    """After a new package: explain its terms on the page."""
    named = {path.partition("/")[0] for path in source_paths((EXPLANATION / "glossary.md").read_text(encoding="utf-8"))}
    assert RANKS.keys() - named - {"__main__", "lazy_names"} == set()
