"""The plugins that a talk on Airflow 1.8 shows, as `airflow_plugins`: DAG files of that time import them.

They are served only if no package `airflow_plugins` is installed or is in the plugins folder.
"""

from __future__ import annotations

from tradewind.operators.cross_dag import CrossDagDepPythonOperator
from tradewind.operators.datax import HiveToMysqlByDataxOperator
from tradewind.operators.python import PythonOperator

STATE_WAITING = "deferred"
"""The state of a task that waits for tasks of other DAGs. The talk's plugin kept a state of its own in a table of its own."""


class CCPythonOperator(PythonOperator):
    """Calls a function. When the task is stopped, all processes that the function has started are ended, as by `PythonOperator`."""


MODULES = {
    "airflow_plugins": (),
    "airflow_plugins.python_operator": ("CCPythonOperator", "PythonOperator"),
    "airflow_plugins.cross_dag_dep_python_operatior": ("CrossDagDepPythonOperator", "STATE_WAITING"),
    "airflow_plugins.cross_dag_dep_python_operator": ("CrossDagDepPythonOperator", "STATE_WAITING"),
    "airflow_plugins.hive_to_mysql_by_datax_operator": ("HiveToMysqlByDataxOperator",),
}
"""Module → names. The name with `operatior` is the talk's."""

__all__ = [
    "MODULES",
    "STATE_WAITING",
    "CCPythonOperator",
    "CrossDagDepPythonOperator",
    "HiveToMysqlByDataxOperator",
    "PythonOperator",
]
