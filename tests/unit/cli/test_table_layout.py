"""Tables on terminals with 60, 80 and 120 columns: whole ids, short times, without the least important columns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run
from tradewind.cli.table_layout import GAP, fit

RUN = "scheduled__2026-11-19T00:00:00+00:00"
COLUMNS = ("dag_id", "run_id", "state", "run_after", "logical_date", "start_date", "end_date")
ROWS = [
    ["weather_warehouse", RUN, "success", "2026-11-20T00:00:00Z", "2026-11-19T00:00:00Z", "2026-11-20T00:00:03.123456Z", ""],
    ["weather_warehouse", RUN, "running", "2026-11-21T00:00:00Z", "2026-11-20T00:00:00Z", "2026-11-21T00:00:04Z", ""],
]


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (60, ["dag_id", "run_id", "state"]),
        (80, ["dag_id", "run_id", "state", "start_date"]),
        (120, list(COLUMNS[:-1])),
    ],
)
def test_the_least_important_columns_are_left_out_first(width: int, columns: list[str]) -> None:
    shown = fit(COLUMNS, ROWS, width)
    assert shown.columns == columns
    assert [row[1] for row in shown.cells] == [RUN, RUN], "an id is never cut"
    assert set(shown.columns) | set(shown.left_out) | {"end_date"} == set(COLUMNS)
    assert shown.widths == [None] * len(columns)


def test_known_columns_are_left_out_first() -> None:
    shown = fit(COLUMNS, ROWS, 80, known=("dag_id",))
    assert shown.columns == ["run_id", "state", "logical_date", "start_date"]
    assert shown.left_out == ["dag_id", "run_after"], "nobody misses an empty column"
    assert "dag_id" in fit(COLUMNS, ROWS, 200, known=("dag_id",)).columns, "but only where it does not fit"


def test_times_are_short() -> None:
    wide, narrow = fit(COLUMNS, ROWS, 200), fit(COLUMNS, ROWS, 120)
    assert wide.zone == "UTC"
    assert wide.cells[0][3:] == ["2026-11-20", "2026-11-19", "2026-11-20 00:00:03", ""], "midnights are days"
    assert narrow.cells[0][5] == "2026-11-20 00:00:03"
    assert fit(COLUMNS, ROWS, 100).cells[0][-1] == "11-20 00:00"
    years = fit(("at",), [["2025-12-31T23:00:00Z"], ["2026-01-01T00:00:00Z"]], 10)
    assert [row[0] for row in years.cells] == ["2025-12-31 23:00", "2026-01-01 00:00"]


def test_the_zone_of_times_is_named_and_times_of_several_zones_are_not_shortened() -> None:
    other = fit(("at",), [["2026-11-19 06:30:00+05:30"], [""]], 80)
    assert (other.cells, other.zone) == ([["2026-11-19 06:30:00"], [""]], "UTC+05:30")
    mixed = [["2026-11-19T06:30:00Z", "2026-11-19 06:30:00+05:30"]]
    assert fit(("at", "local"), mixed, 200)[1:] == (mixed, [None, None], None, [], 49)


def test_sentences_share_the_remaining_width() -> None:
    columns, row = ("filepath", "line", "message"), ["orders.py", "24", "NameError: " + "a word " * 40]
    for width in (60, 80, 120):
        shown = fit(columns, [row], width)
        assert shown.columns == list(columns)
        assert shown.widths == [None, None, width - len("orders.py") - len("line") - 2 * GAP]
    two = fit(("id", "short", "long"), [["1", "two words", "many words " * 20]], 60)
    assert two.widths == [None, 9, 60 - 2 - 9 - 2 * GAP], "what one does not need, the other gets"


def test_chosen_columns_are_kept() -> None:
    shown = fit(COLUMNS, ROWS, 60, all_of_them=True)
    assert (shown.columns, shown.left_out) == (list(COLUMNS), [])
    assert shown.width > 60


def test_an_empty_table_fits() -> None:
    assert fit(("a", "b"), [], 80).columns == ["a", "b"]
    assert fit((), [], 80).columns == []


LISTS = [
    "dags list",
    "dags list-runs",
    "dags list-runs beta",
    "dags list-import-errors",
    "dags list-skipped alpha",
    "dags list-jobs",
    "dags next-execution alpha -n 3 --table",
    "dags upcoming",
    "dags report",
    "dags show beta",
    "dags show-dependencies",
    "tasks list beta -o table",
    "tasks states-for-dag-run beta",
    "tasks tries beta only",
    "xcom list beta",
    "assets list",
    "assets events",
    "assets queued",
    "backfill list --all",
    "callbacks list",
    "callbacks list-misses",
    "connections list",
    "variables list",
    "pools list",
    "waits list",
    "plugins",
    "users list",
    "roles list",
    "config list --defaults",
]


@pytest.mark.parametrize("words", LISTS)
def test_every_list_fits_and_its_ids_are_whole(words: str, run: Run, stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = run(*words.split()).stdout
    rows = run(*words.replace(" --table", "").split(), "-o", "json").stdout
    ids = {str(row[name]) for row in json.loads(rows or "[]") for name in ("dag_id", "run_id", "task_id") if row.get(name)}
    monkeypatch.setattr("tradewind.cli.output.on_terminal", lambda: True)
    for width in (60, 80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        done = run(*words.split())
        assert done.exit_code in (0, 1), done.stderr
        assert "unexpected" not in done.stderr
        lines = [line.rstrip() for line in done.stdout.splitlines()]
        table = lines[next((place for place, line in enumerate(lines) if line.startswith("──")), 1) - 1 :]
        assert max(map(len, table), default=0) <= width, done.stdout
        missing = [one for one in ids if one in plain and one not in done.stdout]
        assert not missing or "Columns not shown" in done.stderr, done.stdout
