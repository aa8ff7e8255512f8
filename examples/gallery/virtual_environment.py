"""A virtual environment for one task: libraries that only this task uses.

The function runs in a separate interpreter: it contains its own imports, and its arguments and its result are passed as data.
"""

from __future__ import annotations

from datetime import datetime

from tradewind import DAG, task

with DAG("virtual_environment", schedule=None, start_date=datetime(2026, 1, 1), tags=["example", "gallery"]):
    # requirements=["pandas==2.2.*"] would be installed first; with venv_cache_path="…" they are installed only once.
    @task.virtualenv(requirements=[], system_site_packages=False)
    def in_its_own(numbers: list) -> dict:
        import statistics
        import sys

        return {"mean": statistics.mean(numbers), "isolated": sys.prefix != sys.base_prefix}

    @task
    def tell(found: dict) -> str:
        return f"{found['mean']} on average, isolated: {found['isolated']}"

    tell(in_its_own([1, 2, 6]))
