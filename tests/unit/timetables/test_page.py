"""The page about timetables shows what the calendars answer."""

from __future__ import annotations

import runpy

from tests.shape.source import ROOT


def test_the_page_is_what_the_calendars_say() -> None:
    """After a change: make docs."""
    module = runpy.run_path(str(ROOT / "docs" / "generate_timetables.py"))
    assert (ROOT / "docs" / "reference" / "timetables.md").read_text(encoding="utf-8") == module["page"]()
