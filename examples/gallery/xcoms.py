"""XComs without TaskFlow: a task pushes values under its own keys, and another task pulls them.

The return value of a function is the XCom `return_value`. Further XComs of a task have other keys.
"""

from __future__ import annotations

from datetime import datetime

from tradewind import DAG, task
from tradewind.operators.bash import BashOperator

with DAG("xcoms", schedule=None, start_date=datetime(2026, 1, 1), tags=["example", "gallery"]):

    @task
    def measure(ti) -> int:
        ti.xcom_push(key="unit", value="mm")
        ti.xcom_push(key="samples", value=[3, 4, 5])
        return 12

    # In a template. (The last line of the output of a command is its XCom.)
    in_bash = BashOperator(
        task_id="in_bash",
        bash_command="echo {{ ti.xcom_pull(task_ids='measure') }} {{ ti.xcom_pull(task_ids='measure', key='unit') }}",
    )

    # In Python: several tasks at once; a missing XCom is None.
    @task
    def in_python(ti) -> dict:
        return {
            "texts": ti.xcom_pull(task_ids=["measure", "in_bash"]),
            "samples": ti.xcom_pull(task_ids="measure", key="samples"),
            "missing": ti.xcom_pull(task_ids="measure", key="no_such_key"),
        }

    measure() >> in_bash >> in_python()
