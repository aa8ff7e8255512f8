"""DAG files for the browser tests: quick ones, a failing one, one that waits, and one whose texts try to run as scripts."""

from __future__ import annotations

HELLO = """
import datetime
from tradewind import DAG, Param, TaskGroup, task
from tradewind.operators.bash import BashOperator

with DAG(
    "hello_page", start_date=datetime.datetime(2024, 1, 1), schedule=None, tags=["page"],
    params={"name": Param("world", type="string", minLength=2), "copies": Param(1, type="integer", minimum=1, maximum=5)},
):
    greet = BashOperator(task_id="greet", bash_command="echo hello {{ params.name }}")

    @task
    def numbers():
        return [1, 2, 3]

    @task
    def double(number):
        print("doubling", number)
        return 2 * number

    greet >> double.expand(number=numbers())
"""

BROKEN_LOAD = """
import datetime
from tradewind import DAG, task
from tradewind.operators.bash import BashOperator
from tradewind.operators.empty import EmptyOperator

with DAG("broken_load", start_date=datetime.datetime(2024, 1, 1), schedule=None):
    extract = BashOperator(task_id="extract", bash_command="for i in $(seq 200); do echo row $i; done")

    @task
    def load():
        import pathlib
        print("reading the table")
        if not pathlib.Path(__file__).with_name("fixed.marker").exists():
            raise KeyError("sku")

    extract >> load() >> EmptyOperator(task_id="report")
"""
"""`load` fails until the file `fixed.marker` exists beside this file."""

WAITING = """
import datetime
from tradewind import DAG
from tradewind.operators.bash import BashOperator

with DAG("waiting_for_a_pool", start_date=datetime.datetime(2024, 1, 1), schedule=None):
    BashOperator(
        task_id="first", pool="narrow", priority_weight=9,
        bash_command="echo holding; until [ -e '{{ dag_run.conf['gate'] }}' ]; do read -t 0.05 <> <(:) || true; done",
    )
    BashOperator(task_id="second", bash_command="echo done", pool="narrow")
"""
"""Two tasks for one slot; the first one ends when the file that the run's conf names appears."""

HOSTILE = """
import datetime
from tradewind import DAG
from tradewind.operators.bash import BashOperator

TEXT = "<img src=x onerror='window.attacked=1'><script>window.attacked=1</script>"
with DAG(
    "hostile_texts", start_date=datetime.datetime(2024, 1, 1), schedule=None, description=TEXT, doc_md=TEXT, tags=[TEXT[:90]],
    dag_display_name=TEXT,
):
    BashOperator(
        task_id="shout", doc_md=TEXT, task_display_name=TEXT,
        bash_command='echo "<script>window.attacked=1</script><img src=x onerror=window.attacked=1>"',
    )
"""
"""All texts that an author may give try to run a script."""

DAILY = """
import datetime
from tradewind import DAG
from tradewind.operators.empty import EmptyOperator

with DAG("daily_sums", start_date=datetime.datetime(2024, 1, 1), schedule="@daily", catchup=False):
    EmptyOperator(task_id="sum")
"""
"""A DAG that can be backfilled at once."""

NEVER_RAN = """
import datetime
from tradewind import DAG
from tradewind.operators.empty import EmptyOperator

with DAG("never_ran", start_date=datetime.datetime(2024, 1, 1), schedule=None):
    EmptyOperator(task_id="only")
"""
"""No test triggers it."""

FILES = {
    "hello_page.py": HELLO,
    "broken_load.py": BROKEN_LOAD,
    "waiting.py": WAITING,
    "hostile.py": HOSTILE,
    "daily.py": DAILY,
    "never_ran.py": NEVER_RAN,
}
IDS = ("hello_page", "broken_load", "waiting_for_a_pool", "hostile_texts", "daily_sums", "never_ran")
