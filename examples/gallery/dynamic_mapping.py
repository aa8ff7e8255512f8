"""Dynamic task mapping: one task instance for each element of a list. The number is known only while the run is running.

    tradewind dags trigger dynamic_mapping --conf '{"cities": ["Lyon", "Oslo", "Rome"]}'

Each instance has its own number (the map index), state, tries and log. The sum waits for all instances.
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

    # partial: the arguments that all instances share. expand: the arguments that differ.
    @task
    def measure(city: str, unit: str) -> dict:
        return {"city": city, "degrees": len(city), "unit": unit}

    # Two lists: one instance for each pair.
    @task
    def compare(city: str, year: int) -> str:
        return f"{city} in {year}"

    # One whole group for each element.
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
