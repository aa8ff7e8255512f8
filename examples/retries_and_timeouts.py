"""Failures: tries, delays between them, time limits, and a task that cleans up in any case.

    shaky ─┬▶ tidy_up
    slow  ─┴▶ all_went_well

`shaky` fails twice and succeeds at its third try; `slow` is stopped after two seconds, and this fails the run. Try it:

    tradewind dags trigger retries_and_timeouts
    tradewind tasks list retries_and_timeouts
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from tradewind import DAG, Param, TriggerRule, task


# Up to 1 + 3 tries; one second before the second try, then two seconds, then four.
# AirflowFailException fails the task at once: use it if another try cannot help.
@task(retries=3, retry_delay=timedelta(seconds=1), retry_exponential_backoff=True)
def shaky(ti) -> str:
    if ti.try_number < 3:
        raise ConnectionError(f"try {ti.try_number}: nobody answers")
    return f"answered at try {ti.try_number}"


# The worker stops the task after this time in any case: first with SIGTERM, then with SIGKILL.
@task(execution_timeout=timedelta(seconds=2))
def slow(params: dict[str, float]) -> None:
    print(f"this takes {params['seconds']} seconds")
    time.sleep(params["seconds"])


# ALL_DONE: runs when the upstream tasks have ended, with any result.
@task(trigger_rule=TriggerRule.ALL_DONE)
def tidy_up() -> None:
    print("all put back where it was")


with DAG(
    "retries_and_timeouts",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    params={"seconds": Param(60, type="number", minimum=0, description="How long the slow task wants to take.")},
    tags=["example"],
):
    # The last tasks decide the state of the run: with tidy_up alone at the end, every run would be a success. `all_went_well` has
    # the default rule, so the run fails if one of the upstream tasks failed.
    @task
    def all_went_well() -> None:
        print("both did what they should")

    both = [shaky(), slow()]
    both >> tidy_up()
    both >> all_went_well()
