"""Run the DAG files of this folder on Tradewind and print what Airflow's outcomes are compared with, as JSON.

    python -m tests.conformance.dag_files.run_here

Each DAG runs once with `dag.test()`, for the date of the recording, in one process.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from datetime import datetime
from pathlib import Path
from typing import Any

from tradewind.execution.xcom_codec import decode_xcom
from tradewind.sdk.dag import DAG
from tradewind.sdk.import_paths import serve_airflow_names
from tradewind.sdk.load import load_file
from tradewind.testing.dag_test import run_dag_test

HERE = Path(__file__).parent
DECISION = "skipmixin_key"


def outcome_of(dag: DAG, date: str) -> dict[str, Any]:
    """The outcome of a run, in the form of `recorded.json`.

    A task is [state, number of tries, label of a mapped instance if it has one].
    """
    result = run_dag_test(dag, logical_date=datetime.fromisoformat(date), say=lambda line: None)
    tasks: dict[str, list[Any]] = {}
    for name, task in result.tasks.items():
        row = result.store.task_instance(result.dag_id, result.run_id, task.task_id, task.map_index)
        label = row.rendered_map_index if row is not None else None
        tasks[name] = [task.state.shown, task.try_number, *([label] if label not in (None, str(task.map_index)) else [])]
    found: dict[str, Any] = {"date": date, "run": result.state.value, "tasks": tasks, "xcoms": {}, "decisions": {}}
    for task_id, index, key, data in result.every_xcom():
        name = task_id if index < 0 else f"{task_id}[{index}]"
        if key == DECISION:
            found["decisions"][name] = decode_xcom(data)
        else:
            value = decode_xcom(data)
            found["xcoms"][name if key == "return_value" else f"{name}.{key}"] = (
                list(value) if isinstance(value, set) else value
            )
    return found


def main() -> None:
    """Print the outcomes of all DAGs. What tasks write goes to /dev/null."""
    warnings.simplefilter("ignore")
    serve_airflow_names()
    recorded = json.loads((HERE / "recorded.json").read_text())["dags"]
    folder = str(HERE / "dags")
    dags: dict[str, DAG] = {}
    for path in sorted((HERE / "dags").glob("*.py")):
        dags.update(load_file(folder, path.name, analyse=False).dags)
    output = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    outcomes = {dag_id: outcome_of(dags[dag_id], recorded[dag_id]["date"]) for dag_id in recorded if dag_id in dags}
    with open(output, "w", encoding="utf-8") as pipe:
        json.dump(outcomes, pipe)


if __name__ == "__main__":
    sys.exit(main())
