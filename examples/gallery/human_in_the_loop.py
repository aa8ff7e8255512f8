"""Ask a person. The tasks wait in the state awaiting_input, without a process, until somebody answers.

What to see: `tradewind hitl list` shows the open questions. Answer them on the command line or over the REST API:

    tradewind hitl respond human_in_the_loop fill_in RUN_ID --option OK --params '{"copies": 3}'
    tradewind hitl respond human_in_the_loop approve RUN_ID --option Approve

If nobody answers, the defaults count after an hour. After Reject, `publish` is skipped.
"""

from datetime import datetime, timedelta

from tradewind import DAG, Param, task
from tradewind.operators.hitl import ApprovalOperator, HITLEntryOperator

with DAG("human_in_the_loop", start_date=datetime(2026, 1, 1), schedule=None, tags=["example", "gallery"]):
    fill_in = HITLEntryOperator(
        task_id="fill_in",
        subject="How many copies shall we print?",
        params={"copies": Param(1, type="integer", minimum=1, maximum=100, description="Copies of the report")},
        response_timeout=timedelta(hours=1),
    )

    approve = ApprovalOperator(
        task_id="approve",
        subject="Publish the report of {{ ds or 'today' }}?",
        body="{{ ti.xcom_pull('fill_in')['params_input']['copies'] }} copies will be printed.",
        defaults="Approve",
        response_timeout=timedelta(hours=1),
    )

    @task
    def publish(answer: dict) -> str:
        copies = answer["params_input"]["copies"]
        print(f"printing {copies} copies")
        return f"{copies} copies"

    fill_in >> approve >> publish(fill_in.output)
