"""The text that `tradewind doctor --fix` writes."""

from __future__ import annotations

import ast

import pytest

from tradewind.doctor.rewrite import rewritten
from tradewind.sdk.generation import generation_of

OLD = '''\
#!/usr/bin/env python
# coding: utf-8
"""Ünïcode before every position."""
from airflow import DAG
from airflow.operators.bash_operator import BashOperator  # the shell
from airflow.operators.dummy_operator import DummyOperator
from airflow.hooks.base_hook import BaseHook

dag = DAG("é", schedule_interval="@daily", concurrency=4)  # keep me
start = DummyOperator(task_id="ünï", dag=dag); shell = BashOperator(task_id="b", xcom_push=True, dag=dag)
'''

NEW = '''\
#!/usr/bin/env python
# coding: utf-8
# tradewind: airflow1
"""Ünïcode before every position."""
from airflow import DAG
from airflow.providers.standard.operators.bash import BashOperator  # the shell
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import BaseHook

dag = DAG("é", schedule="@daily", max_active_tasks=4)  # keep me
start = EmptyOperator(task_id="ünï", dag=dag); shell = BashOperator(task_id="b", do_xcom_push=True, dag=dag)
'''


def test_names_and_arguments_are_replaced_and_everything_else_stays() -> None:
    assert rewritten(OLD) == NEW
    assert generation_of(NEW) == generation_of(OLD) == 1


def test_a_second_pass_changes_nothing() -> None:
    assert rewritten(NEW) == NEW


def test_line_ends_stay() -> None:
    assert rewritten(OLD.replace("\n", "\r\n")) == NEW.replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "from airflow.operators.dummy_operator import DummyOperator as Nothing\nNothing()",
            "from airflow.providers.standard.operators.empty import EmptyOperator as Nothing\nNothing()",
        ),
        (  # the name is bound twice: the class keeps its name in the file
            "from airflow.operators.dummy import DummyOperator\nDummyOperator = wrap(DummyOperator)",
            "from airflow.providers.standard.operators.empty import EmptyOperator as DummyOperator\n"
            "DummyOperator = wrap(DummyOperator)",
        ),
        (
            "try:\n    from airflow.operators.python_operator import PythonOperator as P\nexcept E: pass",
            "try:\n    from airflow.providers.standard.operators.python import PythonOperator as P\nexcept E: pass",
        ),
        (
            "from airflow.contrib.hooks.ssh_hook import SSHHook",
            "from airflow.providers.ssh.hooks.ssh import SSHHook",
        ),
        (
            "from airflow.hooks import S3Hook, base_hook",
            "from airflow.providers.amazon.aws.hooks.s3 import S3Hook\nfrom airflow.hooks import base_hook",
        ),
    ],
)
def test_imports(before: str, after: str) -> None:
    changed = rewritten(before)
    assert [line for line in changed.split("\n") if not line.startswith("# tradewind:")] == after.split("\n")


@pytest.mark.parametrize(
    "source",
    [
        "from airflow.sdk import DAG\nDAG('d', schedule='@daily')",
        "from airflow.operators.python_operator import (\n    PythonOperator,  # why\n)",
        "from airflow import DAG\nDAG(schedule=None, schedule_interval=None)",
        "def broken(:",
        "pool(concurrency=4)",
        "from airflow.operators.bash_operator import *",
    ],
)
def test_what_cannot_be_replaced_safely_stays(source: str) -> None:
    assert rewritten(source) == source


def test_a_name_in_an_f_string_never_breaks_the_file() -> None:
    source = 'from airflow.operators.dummy_operator import DummyOperator\nprint(f"{DummyOperator} {DummyOperator}")\n'
    ast.parse(rewritten(source))
