"""The page about timetables shows the runs that Tradewind computes."""

from __future__ import annotations

import runpy

from tests.shape.source import ROOT


def test_the_page_is_up_to_date() -> None:
    """After a change, run `make docs`."""
    module = runpy.run_path(str(ROOT / "docs" / "generate_timetables.py"))
    assert (ROOT / "docs" / "reference" / "timetables.md").read_text(encoding="utf-8") == module["page"]()
