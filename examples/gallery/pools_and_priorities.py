"""Pools and priorities: at most so many tasks of a kind at a time, over all DAGs; and who goes first where slots are few.

    tradewind pools set telephone 1 "one line out"
    tradewind dags trigger pools_and_priorities

The urgent call gets the line first, though it is written last.
"""

from __future__ import annotations

import time
from datetime import datetime

from tradewind import DAG, WeightRule, task

with DAG("pools_and_priorities", schedule=None, start_date=datetime(2026, 1, 1), tags=["example", "gallery"]):
    # A pool that does not exist holds its tasks back; `tradewind why` says so. absolute: this number and nothing else, while
    # by the usual rule the weights of everything behind a task are added.
    @task(pool="telephone", weight_rule=WeightRule.ABSOLUTE)
    def call(whom: str) -> str:
        time.sleep(1)
        return f"called {whom}"

    call.override(task_id="call_a_friend", priority_weight=1)("a friend")
    call.override(task_id="call_the_bank", priority_weight=5)("the bank")
    call.override(task_id="call_the_fire_brigade", priority_weight=100)("the fire brigade")
