"""Sensors: tasks that wait. With `poke`, the process runs between two checks; with `reschedule`, the slot is free meanwhile.

Use poke for waits of seconds, and reschedule for waits of hours: a hundred such sensors use no slot. Try it:

    tradewind dags trigger waiting_for_a_file --conf '{"path": "/tmp/letters.csv"}'
    touch /tmp/letters.csv
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta

from tradewind import DAG, Param, task
from tradewind.sensors.filesystem import FileSensor

with DAG(
    "waiting_for_a_file",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    params={"path": Param("/tmp/letters.csv", type="string")},
    tags=["example", "gallery"],
):
    arrived = FileSensor(
        task_id="arrived",
        filepath="{{ params.path }}",
        mode="reschedule",
        poke_interval=timedelta(minutes=5),
        timeout=timedelta(hours=12),
    )

    # A custom sensor is a function that returns if the wait is over. soft_fail: after the timeout, the task is skipped, not failed.
    @task.sensor(poke_interval=2, timeout=60, mode="poke", soft_fail=True)
    def has_content(params) -> bool:
        return os.path.getsize(params["path"]) > 0

    @task
    def count_bytes(params) -> int:
        return os.path.getsize(params["path"])

    arrived >> has_content() >> count_bytes()
