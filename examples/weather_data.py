"""The code that weather_warehouse.py and weather_report.py share: the weather table, the checks of its rows, and the warehouse.

This file has no DAG, only plain functions, so you can test them (and use them from a shell) without an orchestrator.

The table is Seattle's daily weather from 2012 to 2015, a file of the package `vega-datasets`:

    date,precipitation,temp_max,temp_min,wind,weather
    2012/01/01,0.0,12.8,5.0,4.7,drizzle

Locations. Set each of them as a parameter of a run or in the environment:

    table        WEATHER_TABLE       the file in vega-datasets
    warehouse    WEATHER_WAREHOUSE   $TRADEWIND_HOME/warehouse   weather.db and rejected/<date>.json
    reports      WEATHER_REPORTS     $TRADEWIND_HOME/reports

Precipitation is in mm, temperatures in °C, wind in m/s.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

COLUMNS = ("date", "precipitation", "temp_max", "temp_min", "wind", "weather")
NUMBERS = COLUMNS[1:5]

INSTALL = "make run installs it; by hand: pip install --no-deps vega-datasets==0.9.0"


class TableError(Exception):
    """The table is not there, or does not say what the weather was on a day."""


class BadRow(Exception):
    """A row that must not get into the warehouse. `kind` is missing, unreadable or impossible."""

    def __init__(self, kind: str, problem: str) -> None:
        super().__init__(problem)
        self.kind = kind
        self.problem = problem


class RawRow(NamedTuple):
    """One row as it stands in the table: its line (the heading is line 1) and its cells, all texts."""

    line: int
    cells: list[str]


class Reading(NamedTuple):
    """The weather of one day, checked."""

    day: str
    precipitation: float
    temp_max: float
    temp_min: float
    wind: float
    weather: str


# --- locations -------------------------------------------------------------------------------------------------------


def home() -> Path:
    return Path(os.environ.get("TRADEWIND_HOME") or "~/.tradewind").expanduser()


def warehouse_folder(given: str = "") -> Path:
    return Path(given or os.environ.get("WEATHER_WAREHOUSE") or home() / "warehouse").expanduser()


def reports_folder(given: str = "") -> Path:
    return Path(given or os.environ.get("WEATHER_REPORTS") or home() / "reports").expanduser()


def table_path(given: str = "") -> Path:
    """The table's file.

    Raises:
        TableError: it is not there; the message says how to get it.
    """
    chosen = given or os.environ.get("WEATHER_TABLE")
    if chosen:
        path = Path(chosen).expanduser()
        if not path.is_file():
            raise TableError(f"the weather table {path} does not exist (it was named by the parameter table or WEATHER_TABLE)")
        return path
    # searched once, while the template of a DAG file imports this module; searched again if it was not found then
    found = _PACKAGED if _PACKAGED is not None and _PACKAGED.is_file() else _packaged_table()
    if found is None:
        raise TableError(f"the weather table is not installed: it comes with the package vega-datasets. {INSTALL}")
    return found


def _packaged_table() -> Path | None:
    """The file in vega-datasets: found, not imported, for importing the package would import pandas."""
    spec = importlib.util.find_spec("vega_datasets")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder, "_data", "seattle-weather.csv")
        if path.is_file():
            return path
    return None


_PACKAGED = _packaged_table()


# --- reading ----------------------------------------------------------------------------------------------------------


def read_day(path: Path, day: str) -> RawRow:
    """The row of one day (2012-01-31).

    The whole file is read for it: 1,461 rows take the csv module a millisecond, and a table that was corrected meanwhile is
    seen at once.

    Raises:
        TableError: the heading is another one, or the table has not exactly one row for this day.
    """
    found: list[RawRow] = []
    undated: list[int] = []
    wanted = day.replace("-", "/")
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.reader(file)
        heading = tuple(next(rows, ()))
        if heading != COLUMNS:
            raise TableError(f"{path} begins with the heading {','.join(heading)}; expected {','.join(COLUMNS)}")
        for cells in rows:
            if cells and cells[0] == wanted:
                found.append(RawRow(rows.line_num, cells))
            elif cells and not cells[0].strip():
                undated.append(rows.line_num)
    if len(found) == 1:
        return found[0]
    if found:
        lines = " and ".join(str(row.line) for row in found)
        raise TableError(f"{path} has {len(found)} rows for {day}, in lines {lines}; remove those that do not count")
    hint = f" Line {undated[0]} has no date." if undated else ""
    raise TableError(f"{path} has no row for {day}.{hint}")


def check(raw: RawRow, day: str) -> Reading:
    """The row as numbers, if it can be true.

    Raises:
        BadRow: a field is missing, is no number, or has an impossible value. The message names line, column and value.
    """
    where = f"line {raw.line} ({day})"
    cells = dict(zip(COLUMNS, raw.cells, strict=False))
    for name in COLUMNS:
        if not cells.get(name, "").strip():
            raise BadRow("missing", f"{where}: the field {name} is missing")
    if len(raw.cells) > len(COLUMNS):
        raise BadRow("unreadable", f"{where}: there are {len(raw.cells)} fields, and the heading has {len(COLUMNS)}")
    numbers = {name: _number(where, name, cells[name]) for name in NUMBERS}
    for name in ("precipitation", "wind"):
        if numbers[name] < 0:
            raise BadRow("impossible", f"{where}: {name} is {cells[name]}, and it cannot be negative")
    if numbers["temp_min"] > numbers["temp_max"]:
        raise BadRow(
            "impossible", f"{where}: temp_min {cells['temp_min']} is greater than temp_max {cells['temp_max']}, which cannot be"
        )
    return Reading(day, **numbers, weather=cells["weather"].strip())


def _number(where: str, name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadRow("unreadable", f"{where}: {name} is {text!r}, which is no number")
    return value


# --- the warehouse ----------------------------------------------------------------------------------------------------

_SCHEMA = """
CREATE TABLE IF NOT EXISTS daily (
  day TEXT PRIMARY KEY,
  precipitation REAL NOT NULL,
  temp_max REAL NOT NULL,
  temp_min REAL NOT NULL,
  wind REAL NOT NULL,
  weather TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS monthly (
  month TEXT PRIMARY KEY,
  days INTEGER NOT NULL,
  precipitation REAL NOT NULL,
  temp_max REAL NOT NULL,
  temp_min REAL NOT NULL,
  wind REAL NOT NULL
) WITHOUT ROWID;
PRAGMA user_version = 1;
"""

_UPSERT = """
INSERT INTO daily (day, precipitation, temp_max, temp_min, wind, weather) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (day) DO UPDATE SET precipitation = excluded.precipitation, temp_max = excluded.temp_max,
  temp_min = excluded.temp_min, wind = excluded.wind, weather = excluded.weather
"""

# computed from all its days each time: adding only the new day would count it twice when a task is repeated
_AGGREGATE = """
INSERT OR REPLACE INTO monthly
SELECT substr(day, 1, 7), count(*), sum(precipitation), max(temp_max), min(temp_min), avg(wind)
FROM daily WHERE day >= ? || '-01' AND day <= ? || '-31' GROUP BY 1
"""


@contextmanager
def writing(folder: Path) -> Iterator[sqlite3.Connection]:
    """One short transaction on the warehouse. Sixteen tasks may want to write at a time: each waits for its turn.

    A day is on the disk when its task succeeds (synchronous=FULL): the scheduler will not ask for it again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(folder / "weather.db", timeout=30, isolation_level=None)
    try:
        if connection.execute("PRAGMA user_version").fetchone() == (0,):
            _create(connection)
        connection.execute("BEGIN IMMEDIATE")
        yield connection
        connection.execute("COMMIT")
    finally:
        connection.close()  # without a commit, everything is rolled back


def _create(connection: sqlite3.Connection) -> None:
    """Several tasks may find the warehouse missing at once: one makes it while the others wait."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")


def load_day(folder: Path, reading: Reading) -> None:
    """Put a day into the warehouse. Repeating it changes nothing."""
    with writing(folder) as connection:
        connection.execute(_UPSERT, reading)


def update_month(folder: Path, month: str) -> int:
    """Compute a month (2012-01) anew from its days; how many days it has now."""
    with writing(folder) as connection:
        return _aggregate(connection, month)


def _aggregate(connection: sqlite3.Connection, month: str) -> int:
    if connection.execute(_AGGREGATE, (month, month)).rowcount == 0:
        connection.execute("DELETE FROM monthly WHERE month = ?", (month,))
        return 0
    return int(connection.execute("SELECT days FROM monthly WHERE month = ?", (month,)).fetchone()[0])


def set_aside(folder: Path, table: Path, day: str, raw: RawRow, bad: BadRow) -> Path:
    """Keep a bad row for people, in rejected/<day>.json, and its day out of the totals.

    A value that an earlier version of the table gave for the day leaves the warehouse, too: it must not hide the trouble.
    """
    path = folder / "rejected" / f"{day}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    facts = {"date": day, "kind": bad.kind, "problem": bad.problem, "table": str(table), "line": raw.line, "row": raw.cells}
    draft = path.with_suffix(f".{os.getpid()}.new")
    draft.write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    draft.replace(path)
    with writing(folder) as connection:
        if connection.execute("DELETE FROM daily WHERE day = ?", (day,)).rowcount:
            _aggregate(connection, day[:7])
    return path


def take_back(folder: Path, day: str) -> None:
    """The row of this day is good now: it was corrected."""
    (folder / "rejected" / f"{day}.json").unlink(missing_ok=True)


class Totals(NamedTuple):
    """What the warehouse comes to."""

    days: int
    precipitation: float
    temp_max: float
    temp_min: float


def totals(folder: Path) -> Totals:
    """Over all months."""
    with reading(folder) as connection:
        return Totals(
            *connection.execute("SELECT sum(days), sum(precipitation), max(temp_max), min(temp_min) FROM monthly").fetchone()
        )


@contextmanager
def reading(folder: Path) -> Iterator[sqlite3.Connection]:
    """A connection to look at the warehouse.

    Raises:
        TableError: there is no warehouse yet.
    """
    path = folder / "weather.db"
    if not path.exists():
        raise TableError(f"there is no warehouse at {path} yet: unpause weather_warehouse first")
    connection = sqlite3.connect(path, timeout=30)
    connection.row_factory = sqlite3.Row
    try:
        yield connection
    finally:
        connection.close()


def month_facts(folder: Path, month: str) -> dict[str, Any]:
    """A month for its report: `summary` (None when it has no days), `days`, and `rejected`, the rows that were set aside."""
    with reading(folder) as connection:
        summary = connection.execute("SELECT * FROM monthly WHERE month = ?", (month,)).fetchone()
        days = connection.execute(
            "SELECT * FROM daily WHERE day >= ? || '-01' AND day <= ? || '-31' ORDER BY day", (month, month)
        ).fetchall()
    rejected = sorted((folder / "rejected").glob(f"{month}-*.json"))
    return {
        "month": month,
        "summary": None if summary is None else dict(summary),
        "days": [dict(day) for day in days],
        "rejected": [json.loads(path.read_text(encoding="utf-8")) for path in rejected],
    }
