"""The weather example's functions: the table, its checks, the warehouse."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

from tests.integration.examples.direct import direct_totals


def run_day(weather: ModuleType, table: Path, folder: Path, day: str) -> bool:
    """What the four tasks of a run do, without the tasks. False: the row was set aside."""
    raw = weather.read_day(table, day)
    try:
        reading = weather.check(raw, day)
    except weather.BadRow as bad:
        weather.set_aside(folder, table, day, raw, bad)
        return False
    weather.take_back(folder, day)
    weather.load_day(folder, reading)
    weather.update_month(folder, day[:7])
    return True


def days(table: list[list[str]]) -> list[str]:
    return [row[0].replace("/", "-") for row in table]


def test_the_table_has_every_day_of_four_years(table: list[list[str]]) -> None:
    """1,461 days, each once, and all of them good."""
    assert len(table) == len(set(days(table))) == 1461
    assert (days(table)[0], days(table)[-1]) == ("2012-01-01", "2015-12-31")


def test_the_totals_of_all_days_equal_a_direct_computation(weather: ModuleType, table: list[list[str]], tmp_path: Path) -> None:
    """The warehouse's totals after every day went through it are those of the table."""
    source = weather.table_path()
    # the order in which parallel runs end is any order
    for day in sorted(days(table), key=lambda day: day[::-1]):
        assert run_day(weather, source, tmp_path, day)
    assert weather.totals(tmp_path) == pytest.approx(direct_totals(table))


def test_repeating_a_day_changes_nothing(weather: ModuleType, table: list[list[str]], tmp_path: Path) -> None:
    """A cleared or retried task writes the same row and the same sums again."""
    for _ in range(3):
        for day in days(table)[:10]:
            run_day(weather, weather.table_path(), tmp_path, day)
    assert weather.totals(tmp_path) == pytest.approx(direct_totals(table[:10]))


def test_three_kinds_of_bad_rows_are_set_aside_and_not_counted(
    weather: ModuleType, table: list[list[str]], planted: Path, tmp_path: Path
) -> None:
    """Missing field, unreadable number, impossible value: a file for each, totals of the other days."""
    month = days(table)[:31]
    loaded = [day for day in month if run_day(weather, planted, tmp_path, day)]
    assert sorted(set(month) - set(loaded)) == ["2012-01-03", "2012-01-10", "2012-01-20"]
    good = [row for place, row in enumerate(table[:31]) if place not in (2, 9, 19)]
    assert weather.totals(tmp_path) == pytest.approx(direct_totals(good))
    kept = {path.stem: json.loads(path.read_text()) for path in (tmp_path / "rejected").iterdir()}
    assert {day: facts["kind"] for day, facts in kept.items()} == {
        "2012-01-03": "missing",
        "2012-01-10": "unreadable",
        "2012-01-20": "impossible",
    }
    assert kept["2012-01-03"]["problem"] == "line 4 (2012-01-03): the field weather is missing"
    assert kept["2012-01-10"]["problem"] == "line 11 (2012-01-10): wind is 'breezy', which is no number"
    assert kept["2012-01-20"]["problem"].endswith("temp_min 55.0 is greater than temp_max 7.2, which cannot be")
    assert kept["2012-01-10"]["row"] == ["2012/01/10", "1.0", "6.1", "0.6", "breezy", "rain"]


def test_a_bad_value_leaves_the_totals_and_a_corrected_one_returns(
    weather: ModuleType, table: list[list[str]], planted: Path, tmp_path: Path
) -> None:
    """The warehouse follows the table as it is when a day is run again."""
    good = weather.table_path()
    for day in days(table)[:5]:
        run_day(weather, good, tmp_path, day)
    assert not run_day(weather, planted, tmp_path, "2012-01-03")
    assert weather.totals(tmp_path) == pytest.approx(direct_totals([*table[:2], *table[3:5]]))
    assert run_day(weather, good, tmp_path, "2012-01-03")
    assert weather.totals(tmp_path) == pytest.approx(direct_totals(table[:5]))
    assert list((tmp_path / "rejected").iterdir()) == []


def test_the_last_day_of_a_month_leaves_no_empty_month_behind(
    weather: ModuleType, table: list[list[str]], planted: Path, tmp_path: Path
) -> None:
    """A month whose only day turns bad has no row."""
    run_day(weather, weather.table_path(), tmp_path, "2012-01-03")
    run_day(weather, planted, tmp_path, "2012-01-03")
    assert weather.month_facts(tmp_path, "2012-01")["summary"] is None


@pytest.mark.parametrize(
    ("cells", "kind", "sentence"),
    [
        (["2012/01/01", "0.0", "", "5.0", "4.7", "sun"], "missing", "the field temp_max is missing"),
        (["2012/01/01", "0.0", "12.8", "5.0", "4.7"], "missing", "the field weather is missing"),
        (["2012/01/01", "0,0", "12.8", "5.0", "4.7", "sun"], "unreadable", "precipitation is '0,0', which is no number"),
        (["2012/01/01", "nan", "12.8", "5.0", "4.7", "sun"], "unreadable", "precipitation is 'nan', which is no number"),
        (["2012/01/01", "0", "1", "0", "4.7", "sun", "x"], "unreadable", "there are 7 fields, and the heading has 6"),
        (["2012/01/01", "-0.1", "12.8", "5.0", "4.7", "sun"], "impossible", "precipitation is -0.1, and it cannot be negative"),
        (["2012/01/01", "0.0", "12.8", "12.9", "4.7", "sun"], "impossible", "temp_min 12.9 is greater than temp_max 12.8"),
        (["2012/01/01", "0.0", "12.8", "5.0", "-4", "sun"], "impossible", "wind is -4, and it cannot be negative"),
    ],
)
def test_a_bad_row_is_named_with_line_column_and_value(weather: ModuleType, cells: list[str], kind: str, sentence: str) -> None:
    """What a person needs to find and correct it."""
    with pytest.raises(weather.BadRow, match="line 2") as caught:
        weather.check(weather.RawRow(2, cells), "2012-01-01")
    assert caught.value.kind == kind
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("date,rain\n2012/01/01,1\n", "begins with the heading date,rain; expected date,precipitation"),
        ("{heading}\n2012/01/02,0,1,0,1,sun\n", "has no row for 2012-01-01"),
        ("{heading}\n,0,1,0,1,sun\n", "has no row for 2012-01-01. Line 2 has no date."),
        ("{heading}\n2012/01/01,0,1,0,1,sun\n2012/01/01,0,2,0,1,sun\n", "has 2 rows for 2012-01-01, in lines 2 and 3"),
    ],
)
def test_an_unreadable_table_has_an_error_with_the_reason(
    weather: ModuleType, tmp_path: Path, text: str, sentence: str
) -> None:
    """Another heading, no row, two rows."""
    path = tmp_path / "table.csv"
    path.write_text(text.format(heading=",".join(weather.COLUMNS)))
    with pytest.raises(weather.TableError) as caught:
        weather.read_day(path, "2012-01-01")
    assert sentence in str(caught.value)


def test_the_error_for_a_missing_package_says_how_to_install_it(weather: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither make run nor pip has installed the data."""
    monkeypatch.setattr(weather.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(weather, "_PACKAGED", None)
    with pytest.raises(weather.TableError, match=r"make run installs it; by hand: pip install --no-deps vega-datasets"):
        weather.table_path()


def test_a_missing_table_is_named_in_the_error(weather: ModuleType, tmp_path: Path) -> None:
    """A parameter with a slip in it must not fall back to the real table."""
    with pytest.raises(weather.TableError, match=r"nowhere\.csv does not exist"):
        weather.table_path(str(tmp_path / "nowhere.csv"))
