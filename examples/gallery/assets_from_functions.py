"""A function as an asset: `@asset` creates a DAG with one task for it. The names of its parameters are the assets that it reads.

`cleaned` runs whenever `measured` was updated, and reads the data of the last event. `archive` has only an alias: it decides which
file
it writes while it runs, and `audit` runs for each file.
"""

from __future__ import annotations

from datetime import datetime

from tradewind import DAG, Asset, AssetAlias, asset, task

SAME = {"start_date": datetime(2026, 1, 1), "tags": ["example", "gallery"]}
archived = AssetAlias("archived")


@asset(schedule="@hourly", uri="file:///data/measured", dag_id="assets_from_functions", **SAME)
def measured(self, outlet_events):
    outlet_events[self].extra = {"values": [3, 1, 2]}


@asset(schedule=measured, **SAME)
def cleaned(measured, inlet_events) -> list[int]:
    return sorted(inlet_events[measured][-1].extra["values"])


with DAG("archive", schedule=cleaned, **SAME):

    @task(outlets=[archived])
    def write_file(outlet_events, run_id):
        outlet_events[archived].add(Asset("measured-2026-01", uri="file:///data/archive/2026-01"), extra={"by": run_id})

    write_file()

with DAG("audit", schedule=archived, **SAME):

    @task
    def look(triggering_asset_events) -> list[str]:
        return [event.uri for event in triggering_asset_events[archived]]

    look()
