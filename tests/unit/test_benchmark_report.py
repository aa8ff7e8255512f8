"""The report that benchmarks, kill test and simulation share."""

from __future__ import annotations

from pathlib import Path

from benchmarks import report


def test_sections_of_others_and_their_raw_numbers_are_left_alone(tmp_path: Path) -> None:
    raw = tmp_path / "raw" / "simulation"
    raw.mkdir(parents=True)
    (raw / "part.json").write_text("{}")
    (tmp_path / "RESULTS.md").write_text("# Measured\n\n## Budgets\n\nlast year\n\n## The simulation\n\n- 3 seeds\n")
    for _ in range(2):
        report.write(tmp_path)
    text = (tmp_path / "RESULTS.md").read_text()
    assert "last year" not in text
    assert text.count("## The simulation\n\n- 3 seeds\n") == 1
    assert text.count("## Budgets\n") == 1
