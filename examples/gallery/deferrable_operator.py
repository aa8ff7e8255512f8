"""A deferrable operator: a task that waits without a process.

The task starts a job on a server and defers itself: its process ends. A trigger (a few lines of asyncio code) waits in one process
together
with all other triggers. When the trigger fires, the task continues in `finished`, in another process and in the same try.

`serialize` returns the data that creates the trigger again in another process. Its class can be in the DAG file, in a module
beside it, or in
a package.

tradewind dags test deferrable_operator
"""

from __future__ import annotations

import asyncio
import time
from datetime import datetime, timedelta

from tradewind import DAG, BaseOperator
from tradewind.triggers.base import BaseTrigger, TriggerEvent


class JobFinished(BaseTrigger):
    """This one only looks at the clock; a real one would ask a server."""

    def __init__(self, job: str, done_at: float) -> None:
        super().__init__()
        self.job = job
        self.done_at = done_at

    def serialize(self):
        return f"{type(self).__module__}.JobFinished", {"job": self.job, "done_at": self.done_at}

    async def run(self):
        while time.time() < self.done_at:
            await asyncio.sleep(0.05)  # not time.sleep: it would stop all other triggers
        self.log.info("job %s has finished", self.job)
        yield TriggerEvent({"job": self.job, "rows": 120})


class RunJob(BaseOperator):
    template_fields = ("name",)

    def __init__(self, *, name: str, **kwargs) -> None:
        super().__init__(**kwargs)
        self.name = name

    def execute(self, context):
        trigger = JobFinished(self.name, time.time() + 0.2)
        self.defer(trigger=trigger, method_name="finished", kwargs={"unit": "rows"}, timeout=timedelta(minutes=10))

    def finished(self, context, event, unit):
        print(f"{event['job']} wrote {event['rows']} {unit}")
        return event["rows"]


with DAG("deferrable_operator", schedule=None, start_date=datetime(2026, 1, 1), tags=["example", "gallery"]):
    RunJob(task_id="load", name="load {{ ds }}")
