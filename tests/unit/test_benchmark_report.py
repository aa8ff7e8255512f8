"""The report that benchmarks, kill test and simulation share."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import report
from benchmarks.measure import LOAD, Result


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


@pytest.mark.parametrize(("load", "busy"), [(0.4, False), (14.0, True)])
def test_times_that_were_measured_on_a_busy_machine_say_so(load: float, busy: bool) -> None:
    result = Result("page_in_browser", facts={"cores": 2})
    result.add("1k grid drawn", [300.0])
    result.add(LOAD, [load])
    text = report.render({"page_in_browser": result})
    assert f"Load average of the machine, which has 2 cores: {load:.0f} to {load:.0f}." in text
    assert ("Other programs used the cores meanwhile" in text) is busy
