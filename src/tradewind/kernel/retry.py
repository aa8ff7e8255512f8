"""When a failed task is tried again. Source: Airflow 3.3.2 (`next_retry_datetime`)."""

from __future__ import annotations

import hashlib
import math

from tradewind.model.definition import TaskDefinition
from tradewind.model.moments import DAY

LONGEST = DAY
"""The longest delay that a back-off can give (Airflow's `max_task_retry_delay`)."""


def retry_delay(task: TaskDefinition, dag_id: str, moment: int | None, try_number: int) -> int:
    """Return the microseconds between the end of try `try_number` and the next try.

    With back-off factor m the delay grows as d = retry_delay·m^(try−1), plus a spread in [0, d). The spread is a hash of DAG,
    task, date and try, so that a thousand tasks that failed together are not retried together.
    """
    delay = task.retry_delay
    multiplier = task.retry_exponential_backoff
    if multiplier:
        try:
            grown = math.ceil(delay * multiplier ** (try_number - 1))
        except OverflowError:
            grown = LONGEST
        grown = min(max(grown, 1), LONGEST)
        seed = f"{dag_id}#{task.task_id}#{moment}#{try_number}".encode()
        spread = int.from_bytes(hashlib.sha1(seed, usedforsecurity=False).digest()[:8], "big") % grown
        delay = min(grown + spread, LONGEST)
    if task.max_retry_delay is not None:
        delay = min(delay, task.max_retry_delay)
    return delay
