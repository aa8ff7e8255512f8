"""Run the example DAGs of a genuine Airflow, and record the states of their runs and task instances.

Execute this file with the interpreter of an environment in which Airflow 1.10, 2 or 3 is installed, with an empty AIRFLOW_HOME:

    AIRFLOW_HOME=/tmp/home python record.py 2.11.0.json [DAG_ID ...]

Each DAG runs in a fork, once, for the logical date that `logical_date` gives for the release. Airflow 3 needs the package
apache-airflow-providers-standard, whose examples are recorded too. The file imports nothing of Tradewind, and its syntax is that of
Python 3.8, because Airflow 1.10 and 2.2 need it.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
import traceback


def logical_date(release):
    """A date after the start date of every example: a task does not exist in a run before its start date."""
    return (2026, 6, 2) if release >= (3,) else (2024, 1, 2)


LIMIT = 80
"""Seconds for one DAG. A DAG that waits for an outside system or for a person has no outcome."""


def has_task_sdk():
    """Whether the environment holds Airflow 3. Airflow reads its settings when it is imported, so this must be known before."""
    folder = next(iter(importlib.util.find_spec("airflow").submodule_search_locations))
    return os.path.isdir(os.path.join(folder, "sdk"))


if (
    __name__ == "__main__"
):  # Airflow 3 loads the plugins of its examples (a timetable, a weight strategy) only with this setting
    os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", str(has_task_sdk()))
os.environ.setdefault("AIRFLOW__CORE__UNIT_TEST_MODE", "False")
os.environ.setdefault("AIRFLOW__LOGGING__LOGGING_LEVEL", "ERROR")
os.environ.setdefault("AIRFLOW__CORE__LOGGING_LEVEL", "ERROR")


def make_choices_repeatable():
    """Make every random choice take the first element, because examples branch at random."""
    random.choice = lambda options: options[0]
    random.randint = lambda first, last: first
    random.random = lambda: 0.0


def prepare_database(release):
    """Create the tables."""
    from airflow.utils import db

    db.initdb(**({"load_connections": False} if (2, 3) <= release < (3,) else {}))
    if release >= (3,):  # `dag.test()` creates runs only of DAGs that the database has
        command = os.path.join(os.path.dirname(sys.executable), "airflow")
        subprocess.run([command, "dags", "reserialize"], check=True, timeout=600)


def read_examples(release):
    """DAG id -> DAG, without the DAGs inside of others."""
    import airflow.example_dags

    folders = [next(iter(airflow.example_dags.__path__))]
    if release >= (3,):
        import airflow.providers.standard
        from airflow.dag_processing.dagbag import DagBag

        folders.append(os.path.join(next(iter(airflow.providers.standard.__path__)), "example_dags"))
    else:
        from airflow.models import DagBag
    bags = [DagBag(folder, **({} if release >= (3, 2) else {"include_examples": False})) for folder in folders]
    return {dag_id: dag for bag in bags for dag_id, dag in bag.dags.items() if not getattr(dag, "is_subdag", False)}


def run(dag, release):
    """Run a DAG for the date. Returns the state of the run and its task instances."""
    if release < (2, 5):
        return run_as_backfill(dag, release)
    from datetime import datetime, timezone

    date = datetime(*logical_date(release), tzinfo=timezone.utc)  # noqa: UP017 (new in Python 3.11)
    if release >= (3,):
        return run_of(dag.test(logical_date=date))
    return run_of(dag.test(execution_date=date))


def run_of(dag_run):
    """The states of a run that `dag.test()` returned."""
    from airflow.utils.session import create_session

    with create_session() as session:
        from airflow.models.dagrun import DagRun

        row = session.query(DagRun).filter(DagRun.dag_id == dag_run.dag_id, DagRun.run_id == dag_run.run_id).one()
        return text_of(row.state), instances(row.get_task_instances(session=session))


def run_as_backfill(dag, release):
    """Releases before 2.5 have no `dag.test()`: a backfill of one date, with the executor that runs tasks in this process."""
    from airflow.executors.debug_executor import DebugExecutor
    from airflow.models import DagRun
    from airflow.utils import timezone

    date = timezone.datetime(*logical_date(release))
    dag.clear()
    options = {"start_date": date, "end_date": date, "executor": DebugExecutor(), "ignore_first_depends_on_past": True}
    if "run_at_least_once" in inspect.signature(dag.run).parameters:
        options["run_at_least_once"] = True
    try:
        dag.run(**options)
    except Exception:
        traceback.print_exc()  # a backfill raises when a task fails
    found = DagRun.find(dag_id=dag.dag_id)
    if not found:
        raise RuntimeError("the backfill created no run")
    return text_of(found[-1].state), instances(found[-1].get_task_instances())


def text_of(state):
    """A state as text."""
    return None if state is None else str(getattr(state, "value", state))


def instances(rows):
    """Task id, with the map index of a mapped one, -> state."""
    found = {}
    for row in rows:
        index = getattr(row, "map_index", -1)
        found[row.task_id if index < 0 else f"{row.task_id}[{index}]"] = text_of(row.state)
    return dict(sorted(found.items()))


def in_fork(dag, release):
    """Run a DAG in a child process. Returns {"run": …, "tasks": …} or {"none": reason}."""

    def run_in_child():
        from airflow import settings

        settings.dispose_orm()
        settings.configure_orm()
        state, tasks = run(dag, release)
        return {"run": state, "tasks": tasks}

    return answer_of_fork(run_in_child, LIMIT)


def answer_of_fork(function, limit):
    """The JSON value that a function returns in a child process, or {"none": reason} if it fails or takes too long."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        try:
            result = function()
        except BaseException as error:
            traceback.print_exc()
            result = {"none": f"{type(error).__name__}: {str(error)[:300]}"}
        with open(writable, "w") as pipe:
            json.dump(result, pipe)
        os._exit(0)
    os.close(writable)
    data, deadline = b"", time.monotonic() + limit
    with open(readable, "rb", buffering=0) as pipe:
        while select.select([pipe], [], [], max(0, deadline - time.monotonic()))[0]:
            part = pipe.read(65536)
            if not part:
                break
            data += part
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    try:
        return json.loads(data.decode())
    except ValueError:
        return {"none": "the process died" if time.monotonic() < deadline else f"no end within {limit} s"}


def main():
    """Record all examples, or those that are named."""
    target, wanted = sys.argv[1], set(sys.argv[2:])
    import airflow

    release = tuple(int(part) for part in airflow.__version__.split(".")[:2])
    prepare_database(release)
    make_choices_repeatable()
    examples = read_examples(release)
    found = {}
    for dag_id in sorted(examples):
        if not wanted or dag_id in wanted:
            found[dag_id] = in_fork(examples[dag_id], release)
            print(dag_id, json.dumps(found[dag_id]), file=sys.stderr, flush=True)
    with open(target, "w") as file:
        json.dump(
            {"airflow": airflow.__version__, "date": logical_date(release), "dags": found}, file, indent=1, sort_keys=True
        )
        file.write("\n")


if __name__ == "__main__":
    main()
