"""A file that can be imported in the parser, and ends the process in workers."""

from __future__ import annotations

import os

from tradewind import DAG
from tradewind.operators.python import PythonOperator

if "TRADEWIND_TASKS_OF" in os.environ:
    os._exit(7)

with DAG("dies_in_worker", schedule=None, is_paused_upon_creation=False):
    PythonOperator(task_id="t", python_callable=print)
