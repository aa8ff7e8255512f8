"""Tasks that succeed, fail or skip, for the DAG files of this folder."""

from datetime import timedelta

import pendulum
from airflow.exceptions import AirflowFailException, AirflowSkipException
from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG


def D(dag_id, **arguments):
    """A DAG that is only triggered, whose tasks are retried at once."""
    return DAG(
        dag_id,
        schedule=None,
        start_date=pendulum.datetime(2024, 1, 1),
        default_args={"retry_delay": timedelta(seconds=0)},
        **arguments,
    )


def ok(**context):
    return None


def bad(**context):
    raise ValueError("bad")


def skip(**context):
    raise AirflowSkipException("skip")


def failhard(**context):
    raise AirflowFailException("hard")


def P(task_id, function=ok, **arguments):
    """A task that calls a function."""
    return PythonOperator(task_id=task_id, python_callable=function, **arguments)
