"""DAGs whose callbacks write their arguments to files."""

from __future__ import annotations

import json
import os
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tradewind import DAG, AsyncCallback, DeadlineAlert, DeadlineReference, task

NOTES = Path(os.environ["CALLBACK_NOTES"])


def note(name: str, **said: object) -> None:
    """Append a line to a note."""
    with open(NOTES / name, "a", encoding="utf-8") as file:
        file.write(json.dumps({"pid": os.getpid(), **said}, default=str) + "\n")


def wait_for(name: str) -> None:
    """Wait until the test writes this file."""
    while not (NOTES / name).exists():
        time.sleep(0.01)


def tell(context):
    ti = context["ti"]
    print(f"called for {ti.task_id}")
    note(
        context["dag"].dag_id,
        state=ti.state,
        exception=str(context.get("exception")),
        try_number=ti.try_number,
        reason=context.get("reason"),
        run_state=context["dag_run"].state,
        greeting=context["var"]["value"].get("greeting", "none"),
        duration=ti.duration,
    )


def break_down(context):
    note("breaks", called=True)
    if not (NOTES / "mended").exists():
        raise RuntimeError("the pager is away")


def linger(context):
    note("lingers", called=True)
    wait_for("go_on")
    note("lingers", done=True)


def die_once(context):
    """A callback that kills its process during the first call."""
    before = NOTES / "died_once"
    if not before.exists():
        before.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    note("dies_calling", second=True)


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def raises():
    raise ValueError("boom")


def plain(dag_id, function, dag=None, **arguments):
    with DAG(dag_id, schedule=None, **(dag or {})):
        task(task_id="t", **arguments)(function)()


quick = {"retries": 1, "retry_delay": timedelta(milliseconds=10)}
plain("killed", killed, on_failure_callback=tell)
plain("killed_retry", killed, on_retry_callback=tell, **quick)
plain("in_process", raises, on_failure_callback=tell)
plain("dies_calling", lambda: 1, on_success_callback=[tell, die_once])
plain("run_failed", raises, dag={"on_failure_callback": tell})
plain("run_succeeded", lambda: 1, dag={"on_success_callback": [tell, tell]})
plain("run_late", lambda: time.sleep(60), dag={"on_failure_callback": tell, "dagrun_timeout": timedelta(milliseconds=300)})
plain("breaks", killed, on_failure_callback=[break_down, tell])
plain("lingers", killed, on_failure_callback=linger)

plain("mails", raises, email=["ada@example.org", "bob@example.org"])
plain("mails_retry", raises, email="ada@example.org", email_on_failure=False, on_failure_callback=tell, **quick)
plain("mails_killed", killed, email="ada@example.org")
plain("mails_nobody", raises, email="refused@example.org")

with DAG("listened", schedule=None, tags=["heard"]):

    @task
    def works():
        pass

    @task
    def fails():
        raise ValueError("boom")

    @task
    def dies():
        os.kill(os.getpid(), signal.SIGKILL)

    works() >> [fails(), dies()]

with DAG("fails_fast", schedule=None, fail_fast=True):

    @task(on_failure_callback=tell)
    def slow():
        note("slow_began")
        time.sleep(60)

    @task
    def quick_one():
        wait_for("slow_began")
        raise ValueError("boom")

    slow()
    quick_one()


async def too_late(team, context):
    deadline = context["deadline"]
    note("late_run", team=team, alert=deadline["alert_name"], run=context["dag_run"].run_id, state=context["dag_run"].state)


def sla_missed(dag, task_list, blocking_task_list, slas, blocking_tis):
    note(
        "late_task",
        dag=dag.dag_id,
        tasks=task_list,
        blocking=blocking_task_list,
        slas=[sla.task_id for sla in slas],
        states=[ti.state for ti in blocking_tis],
    )


soon = DeadlineAlert(
    DeadlineReference.DAGRUN_QUEUED_AT, timedelta(milliseconds=200), AsyncCallback(too_late, {"team": "ops"}), name="soon"
)
plain("late_run", lambda: wait_for("late_run"), dag={"deadline": soon})

with DAG(
    "late_task",
    schedule="@once",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    is_paused_upon_creation=True,
    sla_miss_callback=sla_missed,
    default_args={"email": "ada@example.org"},
):

    @task(sla=timedelta(seconds=1))
    def first():
        wait_for("late_task")

    @task
    def second():
        pass

    first() >> second()

with DAG("nothing", schedule=None, on_success_callback=lambda context: note("nothing", reason=context["reason"])):
    pass
