"""The shipped examples, imported as Tradewind imports DAG files, with a separate home folder for each test."""

from __future__ import annotations

import csv
import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tradewind.sdk.dag import DAG
from tradewind.sdk.load import MODULE_PREFIX, load_file

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder. Settings of the caller's environment are removed."""
    for name in ("WEATHER_TABLE", "WEATHER_WAREHOUSE", "WEATHER_REPORTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def load_example(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], DAG]]:
    """Import an example as the parser does, and forget it afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def load(name: str) -> DAG:
        return load_file(str(EXAMPLES), f"{name}.py").dags[name]

    yield load
    for name in [name for name in sys.modules if name.startswith(MODULE_PREFIX) or name == "weather_data"]:
        del sys.modules[name]


@pytest.fixture
def weather(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module `weather_data`."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield importlib.import_module("weather_data")
    sys.modules.pop("weather_data", None)


@pytest.fixture
def table(weather: ModuleType) -> list[list[str]]:
    """Every row of the real table, without its heading."""
    with weather.table_path().open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))[1:]


@pytest.fixture
def planted(weather: ModuleType, table: list[list[str]], tmp_path: Path) -> Path:
    """A copy of the table with one bad row of each kind: 3, 10 and 20 January 2012."""
    rows = [list(row) for row in table]
    rows[2] = rows[2][:-1]
    rows[9][4] = "breezy"
    rows[19][3] = "55.0"
    path = tmp_path / "planted.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([weather.COLUMNS, *rows])
    return path
