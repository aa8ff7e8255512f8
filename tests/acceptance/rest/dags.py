"""DAG files of an installation on which clients of the REST API try every operation."""

from __future__ import annotations

SHOP = """
import datetime
from airflow.sdk import DAG, Asset, TaskGroup, task

with DAG(
    "shop",
    start_date=datetime.datetime(2024, 1, 1),
    schedule=None,
    tags=["money", "daily"],
    description="Orders of the day",
    doc_md="# Shop",
    default_args={"owner": "ann"},
    params={"day": "monday"},
):

    @task
    def extract():
        return [1, 2, 3]

    @task
    def double(number):
        return number * 2

    @task(outlets=[Asset("orders", uri="file:///orders")])
    def load(numbers):
        return {"sum": sum(numbers)}

    with TaskGroup("reports"):

        @task
        def daily():
            return "daily"

        @task
        def weekly():
            return "weekly"

        first, second = daily(), weekly()

    load(double.expand(number=extract())) >> [first, second]
"""

REPORT = """
import datetime
from airflow.sdk import DAG, Asset, task

with DAG("report", start_date=datetime.datetime(2024, 1, 1), schedule=[Asset("orders", uri="file:///orders"), Asset("prices")]):

    @task
    def write():
        return "written"

    write()
"""
"""It also waits for an asset that is never updated, so events of `orders` stay queued."""

NIGHTLY = """
import datetime
from airflow.sdk import DAG, task

with DAG("nightly", start_date=datetime.datetime(2024, 1, 1), schedule="@daily", catchup=False):

    @task
    def nothing():
        return None

    nothing()
"""

HELD = """
import datetime
from airflow.sdk import DAG
from airflow.sdk import task

with DAG("held", start_date=datetime.datetime(2024, 1, 1), schedule=None):

    @task
    def before(ti):
        return 1

    @task(retries=0)
    def wait(dag_run):
        with open(dag_run.conf["gate"]):
            pass

    @task
    def after():
        return 2

    before() >> wait() >> after()
"""
"""`wait` continues when the test opens the named pipe in the run's conf for writing."""

ASKS = """
import datetime
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG

with DAG("asks", start_date=datetime.datetime(2024, 1, 1), schedule=None):
    ApprovalOperator(task_id="ship", subject="Ship it?", params={"to": "Berlin"})
"""
"""Its task waits for a person."""

BROKEN = "import no_such_module_anywhere\nfrom airflow.sdk import DAG\n"

TAKEN_DOWN = """
import datetime
from airflow.sdk import DAG, task

with DAG("old_shop", start_date=datetime.datetime(2024, 1, 1), schedule=None):

    @task
    def nothing():
        return None

    nothing()
"""
"""A DAG to delete."""

FILES = {
    "shop.py": SHOP,
    "report.py": REPORT,
    "nightly.py": NIGHTLY,
    "held.py": HELD,
    "asks.py": ASKS,
    "broken.py": BROKEN,
    "old_shop.py": TAKEN_DOWN,
}
DAG_IDS = ("shop", "report", "nightly", "held", "asks", "old_shop")
