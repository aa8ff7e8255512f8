"""A DAG with one task that runs until a file exists, for tests that stop something meanwhile."""

from __future__ import annotations

from pathlib import Path

_SOURCE = """
import time
from datetime import datetime
from tradewind import DAG
from tradewind.sdk.decorators import task

def mark(what, name):
    with open({marks!r}, "a") as file:
        file.write(f"{{what}} {{name}} {{time.monotonic()}}\\n")

with DAG("slow", schedule=None, start_date=datetime(2026, 1, 1)):
    @task({arguments}retries={retries}, retry_delay=0)
    def nap(ti=None):
        name = f"nap{{ti.try_number}}"
        mark("begin", name)
        deadline = time.monotonic() + {seconds}
        while time.monotonic() < deadline:
            try:
                open({go!r}).close()
                break
            except FileNotFoundError:
                time.sleep(0.02)
        mark("end", name)

    nap()
"""


def slow_dag(marks: Path, go: Path, *, retries: int = 2, queue: str = "", seconds: int = 60) -> str:
    """The source of the DAG `slow`. Its task `nap` writes `begin nap<try>` and `end nap<try>` to a file.

    Args:
        marks: the file to which it writes; see `world.read_marks`.
        go: the file whose existence ends the task.
        queue: the queue of the task; empty: the default one.
        seconds: the task ends after this time at the latest.
    """
    arguments = f"queue={queue!r}, " if queue else ""
    return _SOURCE.format(marks=str(marks), go=str(go), retries=retries, arguments=arguments, seconds=seconds)
