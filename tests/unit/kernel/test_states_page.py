"""The page about states in the manual is generated from the transition tables."""

from __future__ import annotations

import runpy
from pathlib import Path

import tradewind.model.states as states

DOCS = Path(__file__).parents[3] / "docs"


def test_the_states_page_is_generated_from_the_tables() -> None:
    """After a change of the tables: python docs/generate_states.py."""
    generated = runpy.run_path(str(DOCS / "generate_states.py"))["page"]()
    assert (DOCS / "reference" / "states.md").read_text(encoding="utf-8") == generated


def test_every_step_is_drawn_once() -> None:
    """The three diagrams of task instances show every step exactly once."""
    page = (DOCS / "reference" / "states.md").read_text(encoding="utf-8")
    drawn = [line.strip() for line in page.splitlines() if "-->" in line and "<!--" not in line]
    tables = (states.TASK_TRANSITIONS, states.RUN_TRANSITIONS)
    steps = [
        f"{before.value} --> {after.value}" for table in tables for before, following in table.items() for after in following
    ]
    assert sorted(drawn) == sorted(steps)
