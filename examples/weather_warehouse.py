"""Four years of daily weather into a warehouse: one run a day, 1,461 runs, each repeatable.

    extract ─▶ validate ─▶ load ─▶ update_month

Each run takes its own day out of the table, checks it, puts it into a SQLite warehouse and computes the day's month anew.
Start all of them with

    tradewind dags unpause weather_warehouse

What happens to a bad row: `validate` sets it aside as `rejected/<date>.json` in the warehouse's folder and *fails*, without
another try, with a sentence that names line, column and value. Failing, rather than skipping, makes the day show red in every
list until somebody looks at it; trying again would meet the same row. `load` and `update_month` of that day do not run, so the
totals are those of the good days; the other days go on. When the table is corrected,

    tradewind tasks clear weather_warehouse --start-date 2012-03-04 --end-date 2012-03-04

runs the day again, which loads it and takes the file away.

What it costs: `extract` reads the whole table each time (a millisecond). It could be read once while this file is imported,
and every task would be forked with it in memory; but then a correction would not be seen until the next import.
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
