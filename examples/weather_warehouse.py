"""Loads four years of daily weather into a warehouse: one run for each day, 1,461 runs, each of them repeatable.

    extract ─▶ validate ─▶ load ─▶ update_month

Each run reads its own day from the table, checks it, stores it in a SQLite warehouse and computes the month again.
Start all runs with

    tradewind dags unpause weather_warehouse

For a bad row, `validate` saves the row as `rejected/<date>.json` in the folder of the warehouse and *fails* without another try.
The
error names the line, the column and the value. The task fails instead of being skipped, so every list shows the day as failed until
somebody corrects it; another try would read the same row. `load` and `update_month` of this day do not run, so the totals contain
only
the good days. The other days continue. After the correction of the table,

    tradewind tasks clear weather_warehouse --start-date 2012-03-04 --end-date 2012-03-04

runs the day again. This loads the day and removes the file.

The cost: `extract` reads the whole table each time (a millisecond). The file could also read the table once during its import, and
every
task would be forked with the table in memory. But then a correction of the table would have no effect until the next import.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

import weather_data as weather

from tradewind import DAG, AirflowFailException, Param, task

log = logging.getLogger(__name__)

PLACES = {
    "table": Param("", type="string", description="The weather table; empty: the one in vega-datasets."),
    "warehouse": Param("", type="string", description="The warehouse's folder; empty: $TRADEWIND_HOME/warehouse."),
}


@task
def extract(ds: str, params: dict[str, str]) -> list[Any]:
    """Take this run's day out of the table: its line and its cells."""
    try:
        return list(weather.read_day(weather.table_path(params["table"]), ds))
    except weather.TableError as error:
        raise AirflowFailException(str(error)) from None


@task
def validate(raw: list[Any], ds: str, params: dict[str, str]) -> list[Any]:
    """Check the row; set a bad one aside."""
    folder = weather.warehouse_folder(params["warehouse"])
    row = weather.RawRow(*raw)
    try:
        reading = weather.check(row, ds)
    except weather.BadRow as bad:
        kept = weather.set_aside(folder, weather.table_path(params["table"]), ds, row, bad)
        log.error("The row of %s is set aside: %s", ds, bad)
        raise AirflowFailException(f"{bad}. It is set aside in {kept} and counted nowhere.") from None
    weather.take_back(folder, ds)
    return list(reading)


@task
def load(reading: list[Any], params: dict[str, str]) -> None:
    """Put the day into the warehouse: an upsert, so that a repetition changes nothing."""
    weather.load_day(weather.warehouse_folder(params["warehouse"]), weather.Reading(*reading))


@task
def update_month(ds: str, params: dict[str, str]) -> int:
    """Compute the day's month anew. Returns how many days it has so far."""
    return weather.update_month(weather.warehouse_folder(params["warehouse"]), ds[:7])


with DAG(
    "weather_warehouse",
    description="Seattle's weather, day by day, into a SQLite warehouse",
    schedule="@daily",
    start_date=datetime(2012, 1, 1),
    end_date=datetime(2015, 12, 31),
    catchup=True,
    max_active_runs=16,
    params=PLACES,
    tags=["example", "weather"],
    doc_md=__doc__,
):
    load(validate(extract())) >> update_month()
