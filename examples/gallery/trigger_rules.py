"""Trigger rules: the states of the upstream tasks decide if a task runs. Here one succeeds, one fails and one is skipped.

With the default rule, all_success, none of these four would run. The run fails, because the last tasks include a failed one.
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

    # One runs after all have ended with any result; one as soon as a task failed; one as soon as a task succeeded.
    @task(trigger_rule=TriggerRule.ALL_DONE)
    def clean_up() -> None:
        print("put back")

    @task(trigger_rule=TriggerRule.ONE_FAILED)
    def raise_the_alarm() -> None:
        print("something failed")

    @task(trigger_rule=TriggerRule.ONE_SUCCESS)
    def celebrate() -> None:
        print("something went well")

    # NONE_FAILED allows skipped tasks, but here a task failed: the task becomes upstream_failed.
    @task(trigger_rule=TriggerRule.NONE_FAILED)
    def publish() -> None:
        print("not reached")

    [succeeds(), fails(), skips_itself()] >> clean_up()
    [succeeds.override(task_id="succeeds_again")(), fails.override(task_id="fails_again")()] >> raise_the_alarm()
    [succeeds.override(task_id="one")(), skips_itself.override(task_id="other")()] >> celebrate()
    [fails.override(task_id="last")()] >> publish()
