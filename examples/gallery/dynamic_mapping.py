"""Dynamic task mapping: how many tasks there are is known only when the run is under way, one for each element of a list.

    tradewind dags trigger dynamic_mapping --conf '{"cities": ["Lyon", "Oslo", "Rome"]}'

Each instance has a number of its own (its map index), a state, tries and a log; the sum waits for all of them.
"""

from __future__ import annotations

from datetime import datetime

from tradewind import DAG, task, task_group

with DAG(
    "dynamic_mapping",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    params={"cities": ["Lyon", "Oslo"]},
    tags=["example", "gallery"],
):

    @task
    def list_cities(params) -> list[str]:
        return params["cities"]

    # partial: what all instances share. expand: what they differ in.
    @task
    def measure(city: str, unit: str) -> dict:
        return {"city": city, "degrees": len(city), "unit": unit}

    # With two lists: one instance for each pair.
    @task
    def compare(city: str, year: int) -> str:
        return f"{city} in {year}"

    # A whole group for each element.
    @task_group
    def prepare(found: dict) -> None:
        @task
        def convert(found: dict) -> float:
            return found["degrees"] * 1.8 + 32

        @task
        def announce(fahrenheit: float) -> None:
            print(f"{fahrenheit} °F")

        announce(convert(found))

    @task
    def total(found: list[dict]) -> int:
        return sum(one["degrees"] for one in found)

    cities = list_cities()
    measured = measure.partial(unit="°C").expand(city=cities)
    compare.expand(city=cities, year=[2025, 2026])
    prepare.expand(found=measured)
    total(measured)
