"""Every shipped example runs, and shows what its text says."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest

from tests.integration.examples.conftest import EXAMPLES
from tests.integration.examples.direct import direct_totals
from tests.unit.execution.world import installed
from tradewind.model.definition import DefinitionDefaults
from tradewind.model.moments import parse_moment, to_micros
from tradewind.sdk.dag import DAG
from tradewind.sdk.definition import to_definition
from tradewind.sdk.load import load_file
from tradewind.sensors.external_task import ExternalTaskSensor
from tradewind.testing import assert_states, run_dag
from tradewind.timetables import Bounds, next_run

Load = Callable[[str], DAG]
ALL = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem != "weather_data")


@pytest.mark.parametrize("name", ALL)
def test_each_file_defines_the_dag_of_its_name_and_explains_it(name: str, load_example: Load) -> None:
    """A newcomer finds the file from the DAG; no file costs a short-lived template."""
    assert load_example(name).dag_id == name
    loaded = load_file(str(EXAMPLES), f"{name}.py")
    assert loaded.duplicates == {}
    assert loaded.volatile_because is None
    assert len((EXAMPLES / f"{name}.py").read_text(encoding="utf-8").split('"""')[1]) > 100


def test_hello_chain(load_example: Load, capsys: pytest.CaptureFixture[str]) -> None:
    """A value travels along three tasks."""
    run = run_dag(load_example("hello_chain"))
    assert run.state == "success"
    assert run.xcom("shout") == "HELLO, WORLD!"
    assert "HELLO, WORLD!" in capsys.readouterr().out


@pytest.mark.spec("S18")
@pytest.mark.parametrize(("kilograms", "taken", "left"), [(5, "by_bicycle", "by_van"), (40, "by_van", "by_bicycle")])
def test_branching(load_example: Load, kilograms: float, taken: str, left: str) -> None:
    """One way is taken, the other skipped, and both meet again."""
    run = run_dag(load_example("branching"), run_conf={"kilograms": kilograms})
    assert run.state == "success"
    assert_states(run, {taken: "success", left: "skipped"}, arrived="success")


def test_retries(load_example: Load) -> None:
    """The third try succeeds; the waits between are jumped over here."""
    run = run_dag(load_example("retries_and_timeouts"), run_conf={"seconds": 0})
    assert run.state == "success"
    assert run.tasks["shaky"].try_number == 3
    assert run.xcom("shaky") == "answered at try 3"


def test_a_failure_fails_the_run_and_the_cleanup_runs(load_example: Load) -> None:
    """A task that ends after all others, whichever way, does not make the run a success."""
    dag = load_example("retries_and_timeouts")
    dag.task_dict["shaky"].retries = 0
    run = run_dag(dag, run_conf={"seconds": 0})
    assert run.state == "failed"
    assert_states(run, tidy_up="success", all_went_well="upstream_failed")


def test_params(load_example: Load, capsys: pytest.CaptureFixture[str]) -> None:
    """Values reach template and function; defaults stand for the rest."""
    run = run_dag(load_example("params_and_conf"), run_conf={"name": "Ada", "copies": 2, "language": "de"})
    assert run.state == "success"
    assert run.xcom("in_a_template") == "letters for Ada in de"
    assert run.xcom("in_python") == ["Liebe Ada (1)", "Liebe Ada (2)"]


def test_params_are_checked_before_anything_starts(load_example: Load) -> None:
    """As the text at the top of the example promises."""
    with pytest.raises(Exception, match=r"copies.*99 is greater than the maximum of 10"):
        run_dag(load_example("params_and_conf"), run_conf={"copies": 99})


def test_bash_and_python(load_example: Load) -> None:
    """JSON from a command, a text from a function, and exit code 99."""
    run = run_dag(load_example("bash_and_python"))
    assert run.state == "success"
    assert run.xcom("count")["files"] == len([path for path in Path("/").iterdir() if not path.name.startswith(".")])
    assert run.xcom("report").startswith(run.xcom("describe"))
    assert run.tasks["maybe"].state == "skipped"


# --- weather ----------------------------------------------------------------------------------------------------------


def scheduled_dates(dag: DAG) -> list[datetime]:
    """Every date that catch-up gives, up to 2020."""
    definition = to_definition(dag, dag.fileloc, DefinitionDefaults())
    bounds = Bounds(definition.start_date, definition.end_date, catchup=definition.catchup)
    now, found, last = parse_moment("2020-01-01T00:00:00Z"), [], None
    while (last := next_run(definition.schedule, last, bounds, now)) is not None and last.run_after <= now:
        assert last.logical_date is not None
        found.append(datetime.fromtimestamp(last.logical_date / 1e6, tz=UTC))
    return found


def test_the_schedules_match_the_days_and_months_of_the_table(load_example: Load) -> None:
    """Exactly 1,461 runs, and one for each of their 48 months."""
    days = scheduled_dates(load_example("weather_warehouse"))
    assert (len(days), days[0].date().isoformat(), days[-1].date().isoformat()) == (1461, "2012-01-01", "2015-12-31")
    months = scheduled_dates(load_example("weather_report"))
    assert (len(months), months[-1].date().isoformat()) == (48, "2015-12-01")


def test_a_day_of_weather(load_example: Load, weather: ModuleType, table: list[list[str]], home: Path) -> None:
    """Four tasks take a day from the table into the warehouse; repeating them changes nothing."""
    dag = load_example("weather_warehouse")
    for _ in range(2):
        run = run_dag(dag, logical_date=datetime(2012, 3, 14, tzinfo=UTC))
        assert run.state == "success"
        assert len(run.tasks) == 4
        assert weather.totals(home / "warehouse") == pytest.approx(direct_totals([table[31 + 29 + 13]]))


def test_three_kinds_of_bad_row_fail_their_days_with_a_clear_error(
    load_example: Load,
    weather: ModuleType,
    table: list[list[str]],
    planted: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The day fails once, with the sentence in its log and its result; the row is kept; the others make the totals."""
    dag = load_example("weather_warehouse")
    folder = tmp_path / "own"
    bad = {
        3: r"line 4 \(2012-01-03\): the field weather is missing",
        10: r"line 11 \(2012-01-10\): wind is 'breezy', which is no number",
        20: r"line 21 \(2012-01-20\): temp_min 55.0 is greater than temp_max 7.2, which cannot be",
    }
    for day in (2, 3, 4, 10, 11, 20):
        conf = {"table": str(planted), "warehouse": str(folder)}
        run = run_dag(dag, logical_date=datetime(2012, 1, day, tzinfo=UTC), run_conf=conf)
        output = capsys.readouterr()
        if day not in bad:
            assert run.state == "success"
            continue
        kept = folder / "rejected" / f"2012-01-{day:02d}.json"
        validated = run.tasks["validate"]
        assert (run.state, validated.state, validated.try_number) == ("failed", "failed", 1)
        assert (run.tasks["load"].state, run.tasks["update_month"].state) == ("upstream_failed", "upstream_failed")
        assert re.search(bad[day], validated.reason or "")
        assert str(kept) in (validated.reason or "")
        assert re.search(bad[day], output.out + output.err)
        assert re.search(bad[day], json.loads(kept.read_text(encoding="utf-8"))["problem"])
    assert weather.totals(folder) == pytest.approx(direct_totals([table[1], table[3], table[10]]))


def test_a_missing_table_is_reported_once_with_a_clear_error(load_example: Load, tmp_path: Path) -> None:
    """No retries: it will not appear by itself."""
    run = run_dag(load_example("weather_warehouse"), run_conf={"table": str(tmp_path / "none.csv")})
    assert run.state == "failed"
    assert "none.csv does not exist" in (run.tasks["extract"].reason or "")


def test_the_sensor_sends_one_request_for_all_days_of_its_month(load_example: Load) -> None:
    """One question with 29 dates in February 2012; done when each of these runs has ended."""
    sensor = load_example("weather_report").task_dict["wait_for_days"]
    assert isinstance(sensor, ExternalTaskSensor)
    assert sensor.reschedule
    days = sensor.execution_date_fn(datetime(2012, 2, 1, tzinfo=UTC))  # type: ignore[misc]
    assert [day.day for day in days] == list(range(1, 30))

    class Ti:
        """As much of a task instance as the sensor looks at."""

        class workload:
            logical_date = parse_moment("2012-02-01T00:00:00Z")

    context = {"ti": Ti, "logical_date": datetime(2012, 2, 1, tzinfo=UTC)}
    with installed() as world:
        world.states = [(to_micros(day), None, "success") for day in days[:-1]]
        assert not sensor.poke(context)
        world.states.append((to_micros(days[-1]), None, "failed"))
        assert sensor.poke(context)
        assert len(world.questions) == 2


def report_of(load_example: Load, weather: ModuleType, home: Path) -> str:
    """The page of January 2012, of which three days are in and one was set aside."""
    folder = home / "warehouse"
    for day in ("2012-01-01", "2012-01-02", "2012-01-04"):
        weather.load_day(folder, weather.check(weather.read_day(weather.table_path(), day), day))
    weather.update_month(folder, "2012-01")
    row = weather.RawRow(4, ["2012/01/03", "0.8", "<b>11.7</b>", "7.2", "2.3", "rain"])
    with pytest.raises(weather.BadRow) as bad:
        weather.check(row, "2012-01-03")
    weather.set_aside(folder, weather.table_path(), "2012-01-03", row, bad.value)
    run = run_dag(
        load_example("weather_report"),
        logical_date=datetime(2012, 1, 1, tzinfo=UTC),
        mark_success_pattern="wait_for_days",
    )
    assert run.state == "success"
    page = Path(run.xcom("render"))
    assert page == home / "reports" / "2012-01.html"
    return page.read_text(encoding="utf-8")


def test_a_report_without_matplotlib_says_how_to_get_the_plot(
    load_example: Load, weather: ModuleType, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page comes all the same; what a row says is text, never markup."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    page = report_of(load_example, weather, home)
    assert "3 days; 31.2 mm of precipitation" in page
    assert "pip install &#39;tradewind[plots]&#39;" in page
    assert "<img" not in page
    assert "line 4 (2012-01-03): temp_max is &#39;&lt;b&gt;11.7&lt;/b&gt;&#39;, which is no number" in page


def test_a_report_with_matplotlib_has_a_picture(load_example: Load, weather: ModuleType, home: Path) -> None:
    """The PNG lies beside the page."""
    pytest.importorskip("matplotlib")
    assert '<img src="2012-01.png"' in report_of(load_example, weather, home)
    assert (home / "reports" / "2012-01.png").read_bytes().startswith(b"\x89PNG")
