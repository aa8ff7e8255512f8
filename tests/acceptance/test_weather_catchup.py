"""What the README promises: `tradewind dags unpause weather_warehouse` loads four years of weather; then come the monthly pages.

`make test` loads the first half of 2012, from copies of the examples. `make test-slow` loads all four years.
"""

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

SECONDS = 150.0
"""Deadline of each wait. A quiet 2-core machine needs a third of it at most; the benchmarks measure the time."""
FILES = ("weather_data.py", "weather_warehouse.py", "weather_report.py")
LAST_RUNS = {
    "datetime(2015, 12, 31)": "datetime(2012, 6, 30)",  # of weather_warehouse
    "datetime(2015, 12, 1)": "datetime(2012, 6, 1)",  # of weather_report
}
"""`end_date` in an example → `end_date` in its copy for the short test."""


def ended(standalone: Standalone, dag_id: str, count: int) -> Callable[[], dict[str, int] | None]:
    """A function for `wait`: the states of the ended runs of a DAG, once there are `count`. It asks at most four times a second."""
    asked = 0.0

    def look() -> dict[str, int] | None:
        nonlocal asked
        if time.monotonic() - asked < 0.25:
            return None
        asked = time.monotonic()
        with standalone.store() as store:
            rows = store.engine.rows(
                "SELECT state, count(*) FROM dag_run WHERE dag_id = ? AND state >= 2 GROUP BY state", (dag_id,)
            )
        states = {"success" if state == 2 else "failed": number for state, number in rows}
        return states if sum(states.values()) >= count else None

    return look


def load_weather(standalone: Standalone, days: int, months: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unpause the two DAGs: all runs succeed, the warehouse equals the table, and every month gets its page."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import weather_data

    with standalone.started():
        standalone.wait_dag("weather_report")
        standalone.wait_dag("weather_warehouse")
        standalone.cli("dags", "unpause", "weather_warehouse")
        states = standalone.wait(ended(standalone, "weather_warehouse", days), f"{days} runs of weather_warehouse", SECONDS)
        assert states == {"success": days}

        with weather_data.table_path().open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))[1 : days + 1]
        folder = standalone.home / "warehouse"
        assert weather_data.totals(folder) == pytest.approx(direct_totals(rows))
        assert not (folder / "rejected").exists()
        with standalone.store() as store:
            tasks = store.engine.row("SELECT count(*) FROM attempt WHERE outcome = 'success'")
        assert tasks == (4 * days,)

        standalone.cli("dags", "unpause", "weather_report")
        states = standalone.wait(ended(standalone, "weather_report", months), f"{months} runs of weather_report", SECONDS)
        assert states == {"success": months}
    pages = sorted(path.stem for path in (standalone.home / "reports").glob("*.html"))
    assert pages == [f"{2012 + month // 12}-{month % 12 + 1:02d}" for month in range(months)]
    january = (standalone.home / "reports" / "2012-01.html").read_text(encoding="utf-8")
    assert "31 days; 173.3 mm of precipitation" in january
    assert ("2012-01.png" in january) == (find_spec("matplotlib") is not None)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_four_years_of_weather_from_one_unpause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped examples as they are: 1,461 days, 48 months."""
    standalone = Standalone(tmp_path / "home", arguments=("--port", "0", "--examples", "--plain"))
    load_weather(standalone, 1461, 48, monkeypatch)


def test_half_a_year_of_weather_from_one_unpause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of the examples that end in June 2012: 182 days, 6 months."""
    standalone = Standalone(tmp_path / "home")
    replaced = 0
    for name in FILES:
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        for before, after in LAST_RUNS.items():
            replaced += text.count(f"end_date={before}")
            text = text.replace(f"end_date={before}", f"end_date={after}")
        standalone.write_dag(name, text)
    assert replaced == len(LAST_RUNS), "an example has another end_date: change LAST_RUNS"
    load_weather(standalone, 182, 6, monkeypatch)
