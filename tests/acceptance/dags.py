"""DAG files that the acceptance tests put into their DAG folders."""

from __future__ import annotations

CHAIN = """
import datetime
from tradewind import DAG, task
from tradewind.operators.bash import BashOperator

with DAG("chain", start_date=datetime.datetime(2024, 1, 1), schedule=None):
    say = BashOperator(task_id="say", bash_command="echo hello from {{ dag_run.conf.get('who', 'nobody') }}")

    @task
    def add():
        return 1 + 1

    last = BashOperator(task_id="last", bash_command="echo sum {{ ti.xcom_pull(task_ids='add') }}")
    say >> add() >> last
"""

HELD = """
import datetime
from tradewind import DAG
from tradewind.operators.bash import BashOperator

with DAG("held", start_date=datetime.datetime(2024, 1, 1), schedule=None):
    wait = BashOperator(
        task_id="wait",
        bash_command="echo waiting; until [ -e '{{ dag_run.conf['gate'] }}' ]; do read -t 0.05 <> <(:) || true; done; echo done",
    )
    after = BashOperator(task_id="after", bash_command="echo after")
    wait >> after
"""
"""`wait` continues when the file that the run's conf names exists."""

FAILING = """
import datetime
from tradewind import DAG
from tradewind.operators.bash import BashOperator

with DAG("failing", start_date=datetime.datetime(2024, 1, 1), schedule=None):
    bad = BashOperator(task_id="bad", bash_command="echo about to fail; exit 3")
    after = BashOperator(task_id="after", bash_command="echo never")
    bad >> after
"""

BROKEN = "import no_such_module_anywhere\nfrom tradewind import DAG\n"
