"""Run example DAGs of Airflow on Tradewind, for the date of the recording, and print the states as JSON.

    python -m tests.conformance.example_dags.run_here RELEASE FOLDER ...

Each DAG runs in a fork with `dag.test()`, with the choices of the recording (see `record.py`).
"""

from __future__ import annotations

import json
import os
import sys
import types
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.conformance.example_dags.record import answer_of_fork, logical_date, make_choices_repeatable
from tradewind.sdk.dag import DAG
from tradewind.sdk.import_paths import serve_airflow_names
from tradewind.sdk.load import load_file
from tradewind.testing.dag_test import run_dag_test

LIMIT_S = 60


def serve_example_modules(folder: str) -> None:
    """Make the folder importable as `airflow.example_dags`: some examples import plugins and helpers that are beside them."""
    serve_airflow_names()
    package = types.ModuleType("airflow.example_dags")
    package.__path__ = [folder]
    sys.modules[package.__name__] = package


def read_examples(folder: Path) -> tuple[dict[str, DAG], dict[str, str]]:
    """DAG id → DAG, and file → error."""
    dags: dict[str, DAG] = {}
    errors: dict[str, str] = {}
    for path in sorted(folder.rglob("*.py")):
        name = str(path.relative_to(folder))
        if path.name == "__init__.py":
            continue
        try:
            dags.update(load_file(str(folder), name, analyse=False).dags)
        except BaseException as error:
            errors[name] = f"{type(error).__name__}: {error}"
    return dags, errors


def run(dag: DAG, release: str) -> dict[str, Any]:
    """The states of a run."""
    date = datetime(*logical_date(tuple(int(part) for part in release.split("."))), tzinfo=UTC)
    found = run_dag_test(dag, logical_date=date, say=lambda line: None)
    tasks = {name: task.state.value for name, task in sorted(found.tasks.items())}
    return {"run": found.state.value, "tasks": tasks, "reasons": {name: task.reason for name, task in found.tasks.items()}}


def in_fork(dag: DAG, release: str) -> dict[str, Any]:
    """Run a DAG in a child process, whose output is dropped."""

    def quietly() -> dict[str, Any]:
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        return run(dag, release)

    return dict(answer_of_fork(quietly, LIMIT_S))


def main() -> None:
    """Print the states of all examples."""
    make_choices_repeatable()
    release, *folders = sys.argv[1:]
    dags: dict[str, DAG] = {}
    errors: dict[str, str] = {}
    serve_example_modules(folders[0])
    for folder in folders:
        loaded, broken = read_examples(Path(folder))
        dags.update(loaded)
        errors.update(broken)
    print(json.dumps({"dags": {dag_id: in_fork(dags[dag_id], release) for dag_id in sorted(dags)}, "errors": errors}))


if __name__ == "__main__":
    main()
