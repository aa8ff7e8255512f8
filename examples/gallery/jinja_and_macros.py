"""Templates: dates, params, variables, macros and custom filters in the arguments of an operator.

tradewind tasks render jinja_and_macros dates 2026-03-14
"""

from __future__ import annotations

from datetime import datetime

from tradewind import DAG
from tradewind.operators.bash import BashOperator
from tradewind.operators.python import PythonOperator


def shout(text: str) -> str:
    return text.upper() + "!"


with DAG(
    "jinja_and_macros",
    schedule="@daily",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    params={"city": "Lyon"},
    user_defined_macros={"team": "the weather people"},
    user_defined_filters={"shout": shout},
    tags=["example", "gallery"],
):
    dates = BashOperator(
        task_id="dates",
        bash_command="echo from {{ macros.ds_add(ds, -7) }} to {{ ds }}, that is {{ logical_date.strftime('%A') }}",
    )
    own = BashOperator(task_id="own", bash_command="echo '{{ params.city | shout }} says {{ team }}'")

    # Loops and conditions work too. Lists and mappings are rendered at all levels.
    nested = PythonOperator(
        task_id="nested",
        python_callable=lambda table, days, fallback: [table, days, fallback],
        op_kwargs={
            "table": "weather_{{ params.city | lower }}",
            "days": ["{% for day in range(3) %}{{ macros.ds_add(ds, day) }} {% endfor %}"],
            "fallback": "{{ var.value.get('weather_unit', 'celsius') }}",
        },
    )

    dates >> own >> nested
