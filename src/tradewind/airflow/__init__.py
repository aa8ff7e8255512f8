"""The `airflow` namespace: DAG files that say `from airflow import DAG` run unchanged.

    import tradewind.airflow          # from here on `import airflow` finds Tradewind's names

`names.py` is the table of Airflow's names with their places in Tradewind; `finder.py` serves the table to Python's import
system; `compat/` has the classes and functions that only Airflow has. Tradewind activates the namespace wherever a DAG file is
parsed or a task runs.
"""

from __future__ import annotations

from tradewind.airflow.finder import activate

activate()
