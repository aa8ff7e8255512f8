"""The promise to a newcomer: four years of weather from one `tradewind dags unpause weather_warehouse`, and its monthly pages."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.acceptance.harness import Standalone
from tests.integration.examples.conftest import EXAMPLES
from tests.integration.examples.direct import direct_totals

RUNS = 1461
SECONDS = 150.0
"""Ample: a quiet 2-core machine needs a third of it or less. What it takes is measured by the benchmarks."""


def ended(house: Standalone, dag_id: str, count: int) -> Callable[[], dict[str, int] | None]:
    """Looks whether so many runs of a DAG have ended: their states. Asks four times a second at most."""
    asked = 0.0

    def look() -> dict[str, int] | None:
        nonlocal asked
        if time.monotonic() - asked < 0.25:
            return None
        asked = time.monotonic()
        with house.store() as store:
            rows = store.engine.rows(
                "SELECT state, count(*) FROM dag_run WHERE dag_id = ? AND state >= 2 GROUP BY state", (dag_id,)
            )
        states = {"success" if state == 2 else "failed": number for state, number in rows}
        return states if sum(states.values()) >= count else None

    return look


@pytest.mark.timeout(400)
def test_four_years_of_weather_from_one_unpause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """1,461 runs succeed, the warehouse equals the table, and every month gets its page."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import weather_data

    house = Standalone(tmp_path / "home", arguments=("--port", "0", "--examples", "--plain"))
    with house.started():
        house.wait_dag("weather_report")
        house.wait_dag("weather_warehouse")
        house.cli("dags", "unpause", "weather_warehouse")
        states = house.wait(ended(house, "weather_warehouse", RUNS), "1,461 runs of weather_warehouse", SECONDS)
        assert states == {"success": RUNS}

        with weather_data.table_path().open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))[1:]
        folder = house.home / "warehouse"
        assert weather_data.totals(folder) == pytest.approx(direct_totals(rows))
        assert not (folder / "rejected").exists()
        with house.store() as store:
            tasks = store.engine.row("SELECT count(*) FROM attempt WHERE outcome = 'success'")
        assert tasks == (4 * RUNS,)

        house.cli("dags", "unpause", "weather_report")
        states = house.wait(ended(house, "weather_report", 48), "48 runs of weather_report", SECONDS)
        assert states == {"success": 48}
    pages = sorted(path.stem for path in (house.home / "reports").glob("*.html"))
    assert (len(pages), pages[0], pages[-1]) == (48, "2012-01", "2015-12")
    january = (house.home / "reports" / "2012-01.html").read_text(encoding="utf-8")
    assert "31 days; 173.3 mm of precipitation" in january
    assert ("2012-01.png" in january) == (find_spec("matplotlib") is not None)
