"""The reference page of the settings agrees with the table of settings."""

from __future__ import annotations

import runpy
from pathlib import Path

from tradewind.settings import OPTIONS

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_agrees_with_the_table() -> None:
    """If this fails after a change of the table, run `make docs`."""
    generated = runpy.run_path(str(DOCS / "generate_configuration.py"))["page"]()
    assert (DOCS / "reference" / "configuration.md").read_text(encoding="utf-8") == generated


def test_every_setting_has_a_row_under_its_section() -> None:
    """No setting is missing, and none is there twice."""
    shown: list[str] = []
    section = ""
    for line in (DOCS / "reference" / "configuration.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("| `"):
            shown.append(f"{section}.{line.split('`')[1]}")
    assert shown == [option.name for option in OPTIONS]
