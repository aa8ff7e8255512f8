"""Parameters: values for a run that you pass when you trigger it. They are checked before the run starts.

    tradewind dags trigger params_and_conf --conf '{"name": "Ada", "copies": 3}'
    tradewind dags trigger params_and_conf --conf '{"copies": 99}'

The second command is refused: copies is greater than the maximum of 10.
"""

from __future__ import annotations

from datetime import datetime

from tradewind import DAG, Param, task
from tradewind.operators.bash import BashOperator

with DAG(
    "params_and_conf",
    schedule=None,
    start_date=datetime(2026, 1, 1),
    # A plain value is only a default. A Param also defines the allowed values, with the keywords of JSON Schema.
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

    # In Python: an argument with the name params. dag_run.conf also contains the values, as they were passed at the trigger.
    @task
    def in_python(params, dag_run) -> list[str]:
        word = {"en": "Dear", "fr": "Cher", "de": "Liebe"}[params["language"]]
        print(f"given at the trigger: {dag_run.conf or 'nothing'}; note: {params['note']}")
        return [f"{word} {params['name']} ({number + 1})" for number in range(params["copies"])]

    first >> in_python()
