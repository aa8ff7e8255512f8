"""Variables and connections at the top level of DAG files: parser and tasks look them up."""

from __future__ import annotations

from tests.acceptance.harness import Standalone

DAG_FILE = """
from datetime import datetime

from tradewind import DAG, BaseHook
from tradewind import Variable as Stored
from tradewind.operators.python import PythonOperator

REGION = Stored.get("region")
DATABASE = BaseHook.get_connection("warehouse")
TEAM = Stored.get("team", default_var="nobody")


def tell(number):
    print(f"task {number} of {TEAM} in {REGION} asks {DATABASE.host}:{DATABASE.port} as {DATABASE.password}")
    assert DATABASE.password == "hunter-22"


with DAG("asking", schedule=None, start_date=datetime(2026, 1, 1), is_paused_upon_creation=False, tags=[REGION]):
    for number in range(4):
        PythonOperator(task_id=f"tell_{number}", python_callable=tell, op_args=[number])
"""


def broken(standalone: Standalone) -> str:
    return standalone.cli("dags", "list-import-errors", "-o", "json", check=False)


def test_a_file_with_lookups_is_parsed_and_its_tasks_see_the_values(fresh: Standalone) -> None:
    fresh.write_dag("asking.py", DAG_FILE)
    fresh.start()
    fresh.wait(lambda: "Variable region does not exist." in broken(fresh), "the missing variable")
    fresh.cli("variables", "set", "region", "north")
    fresh.wait(lambda: "there is no connection 'warehouse'" in broken(fresh), "the missing connection, at once")
    fresh.cli("connections", "add", "warehouse", "--conn-uri", "postgres://me:hunter-22@db.example:5432/x")
    fresh.wait_dag("asking")
    fresh.wait(lambda: broken(fresh).strip() in ("[]", ""), "no import error any more")

    assert fresh.wait_run("asking", fresh.trigger("asking")) == "success"
    logs = "".join(path.read_text() for path in (fresh.home / "logs").rglob("*tell_*.log"))
    for number in range(4):
        assert f"task {number} of nobody in north asks db.example:5432 as ***" in logs
    assert "hunter-22" not in logs + fresh.output

    host_log = "".join(path.read_text() for path in (fresh.home / "logs").rglob("*.log") if "tell_" not in str(path))
    assert "importing it reads variables or connections" in host_log + fresh.output

    fresh.cli("variables", "set", "region", "south")

    def moved() -> bool:
        with fresh.store() as store:
            return "south" in store.current_definition("asking").tags

    fresh.wait(moved, "the new value in the DAG")
    assert fresh.wait_run("asking", fresh.trigger("asking")) == "success"
    assert fresh.cli("dags", "reserialize").count("0 files with errors") == 1
