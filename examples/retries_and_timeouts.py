"""What happens when something goes wrong: tries, waits between them, time limits, and a task that tidies up in any case.

    shaky ─┬▶ tidy_up
    slow  ─┴▶ all_went_well

`shaky` fails twice and succeeds at its third try; `slow` is stopped after two seconds, which fails the run. Look at it with

    tradewind dags trigger retries_and_timeouts
    tradewind tasks list retries_and_timeouts
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from tradewind import DAG, Param, TriggerRule, task


# Up to 1 + 3 tries; one second before the second, then two, then four.
# AirflowFailException would end it at once: use it where another try cannot help.
@task(retries=3, retry_delay=timedelta(seconds=1), retry_exponential_backoff=True)
def shaky(ti) -> str:
    if ti.try_number < 3:
        raise ConnectionError(f"try {ti.try_number}: nobody answers")
    return f"answered at try {ti.try_number}"


# The worker ends the task after this time, whatever it does: first with SIGTERM, then with SIGKILL.
@task(execution_timeout=timedelta(seconds=2))
def slow(params: dict[str, float]) -> None:
    print(f"this takes {params['seconds']} seconds")
    time.sleep(params["seconds"])


# ALL_DONE: runs when the tasks before it have ended, whichever way.
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
    # A run is what its last tasks are: with tidy_up alone at the end, every run would be a success. `all_went_well` stands
    # beside it with the usual rule, so the run fails where one of them failed.
    @task
    def all_went_well() -> None:
        print("both did what they should")

    both = [shaky(), slow()]
    both >> tidy_up()
    both >> all_went_well()
