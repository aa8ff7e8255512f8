"""Shell commands and Python functions in one DAG, and values that are passed between them.

count ─▶ describe ─▶ report
maybe
"""

from __future__ import annotations

import json
from datetime import datetime

from tradewind import DAG, task
from tradewind.operators.bash import BashOperator

with DAG("bash_and_python", schedule=None, start_date=datetime(2026, 1, 1), tags=["example"]):
    # The last line of the output of a command is its result. output_processor converts this text to a value.
    count = BashOperator(
        task_id="count",
        bash_command="""
        set -e
        echo "counting in $(pwd), an empty folder that is removed afterwards"
        echo '{"files": '"$(ls / | wc -l)"', "host": "'"$(uname -n)"'"}'
        """,
        output_processor=json.loads,
    )

    # `count.output` stands for this future value. A function receives it as an argument.
    @task
    def describe(found: dict) -> str:
        return f"{found['host']} has {found['files']} entries in /"

    # A command receives values through its template or, if quotes in a value could break it, through its environment.
    report = BashOperator(
        task_id="report",
        bash_command='echo "$DESCRIPTION, says run {{ run_id }} of {{ dag.dag_id }}"',
        env={"DESCRIPTION": "{{ ti.xcom_pull(task_ids='describe') }}"},
        append_env=True,
    )

    # Exit code 99 skips the task. Any other exit code except 0 fails it.
    maybe = BashOperator(task_id="maybe", bash_command="test -e /no/such/file || exit 99")

    describe(count.output) >> report
