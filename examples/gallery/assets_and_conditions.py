"""Assets: a DAG runs when other DAGs have updated its data.

Two DAGs each produce a table. The report waits for both tables, or for the asset with corrections. It needs no schedule and no
sensor.
Its run receives the asset events that started it, with their extra data.

tradewind assets list
tradewind assets create-event --name corrections
tradewind assets queued assets_and_conditions
"""

from __future__ import annotations

from datetime import datetime

from tradewind import DAG, Asset, Metadata, task

orders = Asset("orders", uri="s3://shop/orders")
prices = Asset("prices", uri="s3://shop/prices")
corrections = Asset("corrections", uri="s3://shop/corrections")

with DAG("orders_of_the_day", schedule="@daily", start_date=datetime(2026, 1, 1), tags=["example", "gallery"]):

    @task(outlets=[orders])
    def load_orders(outlet_events):
        outlet_events[orders].extra = {"rows": 120}

    load_orders()

with DAG("prices_of_the_day", schedule="@daily", start_date=datetime(2026, 1, 1), tags=["example", "gallery"]):

    @task(outlets=[prices])
    def load_prices():
        yield Metadata(prices, extra={"rows": 30})

    load_prices()

with DAG(
    "assets_and_conditions",
    schedule=(orders & prices) | corrections,
    start_date=datetime(2026, 1, 1),
    tags=["example", "gallery"],
):

    @task
    def report(triggering_asset_events) -> dict[str, int]:
        return {asset.name: events[-1].extra.get("rows", 0) for asset, events in triggering_asset_events.items()}

    report()
