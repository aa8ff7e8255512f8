"""Shell commands and Python functions side by side, and values that go from one to the other.

count ─▶ describe ─▶ report
maybe
"""

from __future__ import annotations

import json
from datetime import datetime

from tradewind import DAG, task
from tradewind.operators.bash import BashOperator

with DAG("bash_and_python", schedule=None, start_date=datetime(2026, 1, 1), tags=["example"]):
    # The last line that a command prints is its result. output_processor makes a value from the text.
    count = BashOperator(
        task_id="count",
        bash_command="""
        set -e
        echo "counting in $(pwd), an empty folder that is removed afterwards"
        echo '{"files": '"$(ls / | wc -l)"', "host": "'"$(uname -n)"'"}'
        """,
        output_processor=json.loads,
    )

    # `count.output` is the promise of that value. A function gets it as an argument.
    @task
    def describe(found: dict) -> str:
        return f"{found['host']} has {found['files']} entries in /"

    # A command gets values through its template or, where quotes could break it, through its environment.
    report = BashOperator(
        task_id="report",
        bash_command='echo "$DESCRIPTION, says run {{ run_id }} of {{ dag.dag_id }}"',
        env={"DESCRIPTION": "{{ ti.xcom_pull(task_ids='describe') }}"},
        append_env=True,
    )

    # Exit code 99 means: skip this task. Any other code but 0 fails it.
    maybe = BashOperator(task_id="maybe", bash_command="test -e /no/such/file || exit 99")

    describe(count.output) >> report
