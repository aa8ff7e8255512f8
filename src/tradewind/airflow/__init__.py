"""The `airflow` namespace: DAG files that say `from airflow import DAG` run unchanged.

    import tradewind.airflow          # from here on `import airflow` finds Tradewind's names

`names.py` is the one table of Airflow's names and where each of them is here; `finder.py` serves the table to Python's import
system; `compat/` holds what only Airflow has. Tradewind activates the namespace wherever a DAG file is parsed or a task runs.
"""

from __future__ import annotations

from tradewind.airflow.finder import activate

activate()
