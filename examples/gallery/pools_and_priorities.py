"""Pools limit the number of concurrent tasks of a kind over all DAGs. Priorities decide which task gets a free slot first.

    tradewind pools set telephone 1 "one line out"
    tradewind dags trigger pools_and_priorities

The urgent call gets the slot first, although it is the last task in the file.
"""

from __future__ import annotations

import time
from datetime import datetime

from tradewind import DAG, WeightRule, task

with DAG("pools_and_priorities", schedule=None, start_date=datetime(2026, 1, 1), tags=["example", "gallery"]):
    # Tasks of a pool that does not exist do not start; `tradewind why` says so. `absolute` uses only this number; the default rule
    # adds the weights of all downstream tasks.
    @task(pool="telephone", weight_rule=WeightRule.ABSOLUTE)
    def call(whom: str) -> str:
        time.sleep(1)
        return f"called {whom}"

    call.override(task_id="call_a_friend", priority_weight=1)("a friend")
    call.override(task_id="call_the_bank", priority_weight=5)("the bank")
    call.override(task_id="call_the_fire_brigade", priority_weight=100)("the fire brigade")
