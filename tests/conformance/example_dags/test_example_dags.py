"""Airflow's own example DAGs load, and end in the states that Airflow gave them.

The files come from the wheels of Airflow, which pip downloads into a cache; without a network the tests are skipped. The states
were recorded once with each genuine release (`record.py`).
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

RECORDED = Path(__file__).parent / "recorded"
RELEASES = sorted(path.stem for path in RECORDED.glob("*.json"))
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tradewind-tests"

NETWORK = "asks a service on the internet"
OTHER_DAG = "the recording had no other DAG in its database"
BACKFILL = "recorded as a backfill, for which LatestOnlyOperator looks at the date; a manual run always goes on"
DEBUG_EXECUTOR = "the recording's backfill runs tasks that the scheduler skips, as the description of the example says"
DAG_TEST = "dag.test() of Airflow 2 makes a run that counts as scheduled for LatestOnlyOperator; ours is a manual run"
COMPAT = "its file imports the provider package common-compat, which is not among the packages of the tests"
DILL = "needs the package dill, which is not among the packages of the tests"
RANDOM = "branches at random in another Python process, where the recording could not fix the choice"
INACTIVE = "the recording had no active DAG that gives its asset out, and Airflow refuses inactive assets"
ASYNC_STATE = "dag.test() of Airflow 3.3.2 has no asynchronous state store (AttributeError: aget)"
CLOCK = "branches by the time of day or the day of the week at which it runs"
VIRTUALENV = "has two tasks more where the package virtualenv is installed"
SUB_DAG = "the tasks of a sub-DAG belong to the outer DAG here (docs/how-to/bring-airflow-dags.md)"

EXCEPTIONS: dict[str, dict[str, str]] = {
    "1.10.15": {
        "example_trigger_controller_dag": OTHER_DAG,
        "example_pig_operator": "needs Pig and its provider package",
        "example_kubernetes_executor_config": "imports a helper of airflow.contrib.example_dags, which is not on the path",
        "latest_only": BACKFILL,
        "latest_only_with_trigger": BACKFILL,
        "example_nested_branch_dag": DEBUG_EXECUTOR,
    },
    "2.2.5": {
        "example_branch_datetime_operator_2": CLOCK,
        "example_weekday_branch_operator": CLOCK,
        "example_trigger_controller_dag": OTHER_DAG,
        "example_external_task_marker_child": OTHER_DAG,
        "example_dag_decorator": NETWORK,
        "example_subdag_operator": SUB_DAG,
        "latest_only": BACKFILL,
        "latest_only_with_trigger": BACKFILL,
        "example_nested_branch_dag": DEBUG_EXECUTOR,
    },
    "2.11.0": {
        "example_branch_datetime_operator_2": CLOCK,
        "example_weekday_branch_operator": CLOCK,
        "example_python_decorator": VIRTUALENV,
        "example_python_operator": VIRTUALENV,
        "example_trigger_controller_dag": OTHER_DAG,
        "example_dag_decorator": NETWORK,
        "tutorial_objectstorage": NETWORK,
        "latest_only": DAG_TEST,
        "latest_only_with_trigger": DAG_TEST,
    },
    "3.3.2": {
        "example_branch_datetime_operator_2": CLOCK,
        "example_weekday_branch_operator": CLOCK,
        "example_bash_decorator": COMPAT,
        "example_branch_operator": COMPAT,
        "example_branch_python_operator_decorator": RANDOM,
        "example_external_task": OTHER_DAG,
        "example_short_circuit_decorator": COMPAT,
        "example_short_circuit_operator": COMPAT,
        "example_task_state_store_async": ASYNC_STATE,
        "read_asset_event": INACTIVE,
        "example_dag_decorator": NETWORK,
        "tutorial_objectstorage": NETWORK,
        "tutorial_taskflow_api_virtualenv": DILL,
    },
}
"""Release → DAG → the reason why its states are not compared."""


PACKAGES = {
    "1.10.15": (("apache-airflow==1.10.15", "airflow/example_dags"),),
    "2.2.5": (("apache-airflow==2.2.5", "airflow/example_dags"),),
    "2.11.0": (("apache-airflow==2.11.0", "airflow/example_dags"),),
    "3.3.2": (
        ("apache-airflow-core==3.3.2", "airflow/example_dags"),
        ("apache-airflow-providers-standard==1.21.0", "airflow/providers/standard/example_dags"),
    ),
}
"""Release → the packages that were recorded, with the folder of their examples."""


@functools.cache
def examples(release: str) -> tuple[Path, ...]:
    """The folders with the examples of a release."""
    return tuple(_folder(package, folder, release) for package, folder in PACKAGES[release])


def _folder(package: str, folder: str, release: str) -> Path:
    name, _, version = package.partition("==")
    target = CACHE / f"{name}-{version}"
    found = target / folder
    if not found.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(CACHE)]
        python = "3.8" if release.startswith(("1.", "2.2")) else "3.11"
        done = subprocess.run(
            [*command, "--python-version", python, package], check=False, capture_output=True, text=True, timeout=300
        )
        if done.returncode != 0:
            pytest.skip(f"pip cannot download {package}: {done.stderr.strip()[-300:]}")
        (wheel,) = CACHE.glob(f"{name.replace('-', '_')}-{version}-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(target, [one for one in archive.namelist() if one.startswith(f"{folder}/")])
    return found


@functools.cache
def states_here(release: str) -> dict[str, Any]:
    """The states that Tradewind gives, by DAG, and the files that cannot be loaded."""
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "tests.conformance.example_dags.run_here",
            release,
            *map(str, examples(release)),
        ],
        check=True,
        capture_output=True,
        text=True,
        timeout=1200,
        stdin=subprocess.DEVNULL,
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("release", RELEASES)
def test_every_example_loads(release: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path))
    missing = {name: text for name, text in states_here(release)["errors"].items() if "tradewind providers install" not in text}
    known = ("airflow.contrib.example_dags.libs", "No module named 'requests'", "pip install universal-pathlib")
    assert {name: text for name, text in missing.items() if not any(one in text for one in known)} == {}


@pytest.mark.parametrize("release", RELEASES)
def test_examples_end_in_the_states_that_airflow_gave_them(
    release: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path))
    recorded = json.loads((RECORDED / f"{release}.json").read_text())["dags"]
    here = states_here(release)["dags"]
    different = {}
    for dag_id, theirs in recorded.items():
        if dag_id in EXCEPTIONS.get(release, {}) or "none" in theirs:
            continue
        ours = here.get(dag_id, {})
        if (ours.get("run"), ours.get("tasks")) != (theirs["run"], theirs["tasks"]):
            different[dag_id] = (theirs, ours)
    assert different == {}
