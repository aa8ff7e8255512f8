"""An asset watcher: a DAG that runs when a file arrives from outside. The watcher's trigger waits for the file in a folder.

Unpause the DAG, then create the file: `touch /tmp/inbox/orders.csv`. The trigger deletes the file and updates the asset, and a run
starts. The event tells the path. `tradewind assets details orders_file` shows what the trigger does.
"""

from __future__ import annotations

from datetime import datetime

from tradewind import DAG, Asset, AssetWatcher, task
from tradewind.triggers.file import DirectoryFileDeleteTrigger

arrived = AssetWatcher(
    name="inbox",
    trigger=DirectoryFileDeleteTrigger(directory="/tmp/inbox", filename="orders.csv", poke_interval=1.0),
)
orders = Asset("orders_file", watchers=[arrived])

with DAG("asset_watcher", schedule=orders, start_date=datetime(2026, 1, 1), tags=["example", "gallery"]):

    @task
    def load(triggering_asset_events) -> list[str]:
        return [event.extra["payload"]["filepath"] for events in triggering_asset_events.values() for event in events]

    load()
