"""Values of the home folder in commands that run user code in their own process; and the `xcom` commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run


def test_tasks_test_reads_values_of_the_home_folder(run: Run, stored: Path) -> None:
    done = run("tasks", "test", "beta", "only", "mine")
    output = done.stdout + done.stderr
    assert done.exit_code == 0, output
    assert "top high bucket s3://real host shop.example" in output
    assert "now changed number 42" in output
    assert run("variables", "get", "bucket").stdout.strip() == "s3://real", "what a test sets is not kept"
    assert "made" not in done.stdout, "only the task that ran is told of"
    assert "only" in done.stdout.splitlines()[-1]


def test_no_store_hides_values_of_the_home_folder(run: Run, stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEWIND_VAR_TOP", "of the environment")
    done = run("tasks", "test", "beta", "only", "mine", "--no-store")
    assert done.exit_code == 1
    assert "Variable bucket does not exist" in done.stdout + done.stderr


def test_dags_test_reads_values_of_the_home_folder(run: Run, stored: Path) -> None:
    words = ("dags", "test", "beta", "--mark-success-pattern", "made|shown")
    done = run(*words)
    assert done.exit_code == 0, done.stdout + done.stderr
    assert "bucket s3://real host shop.example" in done.stdout + done.stderr
    assert run(*words, "--no-store").exit_code == 1


def test_rendered_templates_have_the_xcoms_of_the_run(run: Run, stored: Path) -> None:
    assert "echo 42 s3://real" in run("tasks", "render", "beta", "shown", "mine").stdout
    assert "echo None s3://real" in run("tasks", "render", "beta", "shown", "2024-03-01").stdout


def test_xcoms_are_listed(run: Run, stored: Path) -> None:
    rows = json.loads(run("xcom", "list", "beta", "--run-id", "mine", "-o", "json").stdout)
    found = {(row["task_id"], row["map_index"], row["key"]): row["value"] for row in rows}
    assert found == {
        ("made", -1, "extra"): {"a": "b"},
        ("made", -1, "return_value"): 42,
        ("only", 0, "return_value"): "item 0",
        ("only", 1, "return_value"): "item 1",
        ("shown", -1, "big"): None,
    }
    table = run("xcom", "list", "beta", "shown").stdout
    assert "(9000000 bytes)" in table
    assert "has pushed no XComs" in run("xcom", "list", "beta", "made", "--key", "none").stderr
    assert "'made'" in run("xcom", "list", "beta", "maed").stderr


def test_one_xcom_is_shown_whole(run: Run, stored: Path) -> None:
    assert json.loads(run("xcom", "get", "beta", "made", "mine").stdout) == 42
    assert json.loads(run("xcom", "get", "beta", "made", "-k", "extra").stdout) == {"a": "b"}
    assert json.loads(run("xcom", "get", "beta", "only").stdout) == ["item 0", "item 1"]
    assert json.loads(run("xcom", "get", "beta", "only", "--map-index", "1").stdout) == "item 1"
    assert json.loads(run("xcom", "get", "beta", "shown", "-k", "big").stdout) == ["large"]
    ctl = run("xcom", "get", "--dag-id", "beta", "--dag-run-id", "mine", "--task-id", "made", "--key", "extra")
    assert json.loads(ctl.stdout) == {"a": "b"}, "as airflowctl is asked"
    missing = run("xcom", "get", "beta", "made", "-k", "nothing")
    assert "has no XCom 'nothing'. Its keys: extra, return_value." in missing.stderr
    (stored / "xcom" / "abc").unlink()
    assert "the file of a large XCom is missing" in run("xcom", "get", "beta", "shown", "-k", "big").stderr
    assert "Missing argument 'TASK_ID'" in run("xcom", "get", "beta").stderr
    assert "Did you mean 'xcom'?" in run("xcoms", "list").stderr


def test_dags_test_reads_a_file_like_a_deployment_without_values(run: Run, home: Path, tmp_path: Path) -> None:
    """Libraries such as cosmos keep a cache in a variable: they handle the error of a missing one, and set it."""
    file = tmp_path / "cache.py"
    file.write_text("""
from airflow.models import Variable
from airflow.sdk import DAG
from airflow.providers.standard.operators.empty import EmptyOperator

try:
    Variable.get("cache", deserialize_json=True)
except KeyError:
    Variable.set("cache", {"a": 1}, serialize_json=True)
with DAG("cached", schedule=None):
    EmptyOperator(task_id="a%d" % Variable.get("cache", deserialize_json=True)["a"])
""")
    done = run("dags", "test", str(file))
    assert (done.exit_code, "a1" in done.stdout) == (0, True), done.stderr
