"""Parameters: what a run can be told when it is triggered, checked before anything starts.

    tradewind dags trigger params_and_conf --conf '{"name": "Ada", "copies": 3}'
    tradewind dags trigger params_and_conf --conf '{"copies": 99}'

The second one is refused: copies is greater than the maximum of 10.
"""

from __future__ import annotations

from datetime import datetime

from tradewind import DAG, Param, task
from tradewind.operators.bash import BashOperator

with DAG(
    "params_and_conf",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    # A plain value is a default of any kind. A Param says what is allowed, in the words of JSON schema.
    params={
        "name": Param("world", type="string", minLength=1),
        "copies": Param(1, type="integer", minimum=1, maximum=10),
        "language": Param("en", enum=["en", "fr", "de"]),
        "note": None,
    },
    tags=["example"],
):
    # In templates: {{ params.name }}.
    first = BashOperator(task_id="in_a_template", bash_command="echo 'letters for {{ params.name }} in {{ params.language }}'")

    # In Python: an argument called params. What was handed over at the trigger is in dag_run.conf, too, as it was given.
    @task
    def in_python(params, dag_run) -> list[str]:
        word = {"en": "Dear", "fr": "Cher", "de": "Liebe"}[params["language"]]
        print(f"given at the trigger: {dag_run.conf or 'nothing'}; note: {params['note']}")
        return [f"{word} {params['name']} ({number + 1})" for number in range(params["copies"])]

    first >> in_python()
