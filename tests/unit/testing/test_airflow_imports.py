"""Test files that import `airflow` run under the pytest plugin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CONFTEST = """
import pytest
from airflow.models import DAG

@pytest.fixture
def empty():
    return DAG("empty", schedule=None)
"""
TEST_FILE = """
import os
import pytest
from airflow.models import DagBag, Variable

def test_the_fixture(empty):
    assert empty.tasks == []

def test_the_folder():
    bag = DagBag(os.path.join(os.path.dirname(__file__), "dags"), include_examples=False)
    assert bag.import_errors == {}
    assert bag.get_dag("d").task_ids == ["a"]

def test_a_run(fake_variables):
    fake_variables["name"] = "x"
    bag = DagBag(os.path.join(os.path.dirname(__file__), "dags"))
    assert bag.get_dag("d").test().state == "success"
"""
DAG_FILE = """
from datetime import datetime
from airflow import DAG
from airflow.models import Variable
from airflow.operators.python_operator import PythonOperator

def read():
    assert Variable.get("name") == "x"

dag = DAG("d", start_date=datetime(2024, 1, 1), schedule_interval=None)
PythonOperator(task_id="a", python_callable=read, dag=dag)
"""


def test_a_test_file_imports_airflow(tmp_path: Path) -> None:
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "d.py").write_text(DAG_FILE)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_dags.py").write_text(TEST_FILE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
