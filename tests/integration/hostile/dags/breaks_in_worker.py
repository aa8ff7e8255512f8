"""A file that can be imported in the parser, and raises an error in workers."""

from __future__ import annotations

import os

from tradewind import DAG
from tradewind.operators.empty import EmptyOperator
from tradewind.operators.python import PythonOperator

if "TRADEWIND_TASKS_OF" in os.environ:
    raise RuntimeError("the warehouse driver is not installed here")

with DAG("breaks_in_worker", schedule=None, is_paused_upon_creation=False):
    PythonOperator(task_id="t", python_callable=print) >> EmptyOperator(task_id="after")
