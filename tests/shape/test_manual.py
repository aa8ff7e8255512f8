"""The manual is true: generated pages are fresh, links lead somewhere, and the DAGs in it are DAGs."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from tests.shape.source import ROOT
from tradewind.authoring.load import load_file

DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def test_the_page_of_commands_is_what_the_commands_say() -> None:
    """After a change of a command: make docs."""
    generated = runpy.run_path(str(DOCS / "generate_cli.py"))["page"]()
    assert (DOCS / "reference" / "cli.md").read_text(encoding="utf-8") == generated


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Links to files of this project."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    lost = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    # written by `make bench`, which a fresh clone has not run
    assert [target for target in lost if not target.endswith("RESULTS.md")] == []


@pytest.mark.parametrize(("page", "dag_id"), [("README.md", "letters"), ("docs/tutorial.md", "orders")])
def test_the_dags_of_the_manual_are_dags(page: str, dag_id: str, tmp_path: Path) -> None:
    """What a newcomer copies first must work."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    (tmp_path / "copied.py").write_text(blocks[0], encoding="utf-8")
    assert len(blocks[0].splitlines()) <= 26
    assert list(load_file(str(tmp_path), "copied.py").dags) == [dag_id]


def test_the_readme_begins_with_the_two_commands() -> None:
    """Before anything else that can be typed."""
    first = re.findall(r"```sh\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)[0]
    assert [line.split("#")[0].strip() for line in first.splitlines()] == ["make run", "make test"]


def test_every_make_target_has_its_line_of_help() -> None:
    """`make help` shows all there is."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z-]+):(.*)$", text, flags=re.MULTILINE)
    assert [name for name, rest in targets if "##" not in rest] == []
