"""Trigger rules: when a task runs is a question to the tasks before it. Here one succeeds, one fails and one is skipped.

The usual rule, all_success, would run none of these four; the run is red because `clean_up` does not make good what failed.
"""

from __future__ import annotations

from datetime import datetime

from tradewind import DAG, AirflowSkipException, TriggerRule, task

with DAG("trigger_rules", schedule=None, start_date=datetime(2026, 1, 1), tags=["example", "gallery"]):

    @task
    def succeeds() -> str:
        return "well done"

    @task
    def fails() -> None:
        raise ValueError("this one always fails")

    @task
    def skips_itself() -> None:
        raise AirflowSkipException("nothing to do today")

    # One after the end of all, whichever way; one as soon as something failed; one as soon as something went well.
    @task(trigger_rule=TriggerRule.ALL_DONE)
    def clean_up() -> None:
        print("put back")

    @task(trigger_rule=TriggerRule.ONE_FAILED)
    def raise_the_alarm() -> None:
        print("something failed")

    @task(trigger_rule=TriggerRule.ONE_SUCCESS)
    def celebrate() -> None:
        print("something went well")

    # NONE_FAILED lets skips pass, but here something failed: it becomes upstream_failed.
    @task(trigger_rule=TriggerRule.NONE_FAILED)
    def publish() -> None:
        print("not reached")

    [succeeds(), fails(), skips_itself()] >> clean_up()
    [succeeds.override(task_id="succeeds_again")(), fails.override(task_id="fails_again")()] >> raise_the_alarm()
    [succeeds.override(task_id="one")(), skips_itself.override(task_id="other")()] >> celebrate()
    [fails.override(task_id="last")()] >> publish()
