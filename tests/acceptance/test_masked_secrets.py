"""Secrets from the environment and from stored values are masked in logs and rendered fields, in all their forms."""

from __future__ import annotations

import json

from tests.acceptance.harness import Standalone

URI = "p%40ss-from-uri"
ENVIRONMENT = {
    "AIRFLOW_CONN_PLACE": f"postgres://me:{URI}@host:5432/db",
    "AIRFLOW_VAR_DB_PASSWORD": "pass-from-variable",
    "AIRFLOW__CORE__SENSITIVE_VAR_CONN_NAMES": "iban",
    "AIRFLOW_VAR_CUSTOMER_IBAN": "iban-of-environment",
    "AIRFLOW_VAR_CONFIG": '{"region": "eu-west", "api_token": "token-in-json"}',
}
CANARIES = (
    *(URI, "p@ss-from-uri", "pass-from-variable", "token-in-json", "stored-in-json", "found-by-itself", "line-one-of-key"),
    *("iban-of-environment", "iban-that-is-stored", "iban-in-a-field"),
)

DAG = """
import json
from datetime import datetime
from tradewind import DAG, BaseHook, Variable, mask_secret, task
from tradewind.operators.bash import BashOperator
with DAG("hiding", schedule=None, start_date=datetime(2026, 1, 1)):
    shell = BashOperator(
        task_id="shell",
        bash_command="echo {{ var.value.db_password }} {{ conn.place.get_uri() }} "
        "{{ var.json.config.api_token }} {{ var.json.config.region }} {{ var.json.stored.password }} {{ var.value.stored_iban }}",
        env={"CUSTOMER_IBAN": "iban-in-a-field"},
        append_env=True,
    )

    @task
    def show():
        connection = BaseHook.get_connection("place")
        print(connection.get_uri(), connection.password, json.dumps(Variable.get("config", deserialize_json=True)))
        print(Variable.get("stored", deserialize_json=True), Variable.get("customer_iban"))
        mask_secret("found-by-itself")
        mask_secret({"private_key": "-----BEGIN KEY-----\\nline-one-of-key\\n-----END KEY-----", "user": "not-a-secret"})
        print("found-by-itself", "line-one-of-key", "not-a-secret")
        raise ValueError("it failed with pass-from-variable")

    shell >> show()
"""


def test_no_secret_is_shown(fresh: Standalone) -> None:
    fresh.environment.update(ENVIRONMENT)
    fresh.write_dag("hiding.py", DAG)
    with fresh.started():
        fresh.wait_dag("hiding")
        fresh.cli("variables", "set", "stored", '{"password": "stored-in-json"}')
        fresh.cli("variables", "set", "stored_iban", "iban-that-is-stored")
        fresh.cli("dags", "unpause", "hiding")
        run_id = fresh.trigger("hiding")
        assert fresh.wait_run("hiding", run_id) == "failed"
        logs = "".join(path.read_text() for path in (fresh.home / "logs").rglob("*.log"))
        with fresh.store() as store:
            details = store.list_task_instances("hiding", run_id).rows
        shown = {
            "logs": logs,
            "task instances": str(details),
            "why": fresh.run("why", "hiding", "show").stdout,
            "tries": fresh.cli("tasks", "tries", "hiding", "show", "-o", "json"),
            "render": fresh.cli("tasks", "render", "hiding", "shell", "-o", "json"),
        }
    assert "eu-west" in logs
    assert "not-a-secret" in logs
    assert "eu-west" in shown["render"]
    assert "***" in json.dumps(shown["task instances"])
    assert {(place, canary) for place, text in shown.items() for canary in CANARIES if canary in text} == set()
