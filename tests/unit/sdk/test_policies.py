"""Policies of a deployment: `airflow_local_settings`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tradewind.sdk import policies
from tradewind.sdk.load import load_file

FILE = """
from tradewind import DAG
from tradewind.operators.empty import EmptyOperator

for name in ("first", "second"):
    with DAG(name, schedule=None):
        EmptyOperator(task_id="a")
"""

Settings = Callable[[str], None]


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """Writes the module of policies."""
    (tmp_path / "config").mkdir()
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path))
    (tmp_path / "file.py").write_text(FILE)
    path = sys.path[:]

    def write(text: str) -> None:
        (tmp_path / "config" / "airflow_local_settings.py").write_text(text)
        policies._functions.cache_clear()

    yield write
    sys.path[:] = path
    sys.modules.pop(policies.MODULE, None)
    policies._functions.cache_clear()


def test_policies_change_tasks_and_dags(settings: Settings, tmp_path: Path) -> None:
    settings("def task_policy(task):\n    task.queue = 'checked'\n\ndef dag_policy(dag):\n    dag.tags.add('seen')\n")
    dags = load_file(str(tmp_path), "file.py", analyse=False).dags
    assert {dag.task_dict["a"].queue for dag in dags.values()} == {"checked"}
    assert all(dag.tags == {"seen"} for dag in dags.values())


def test_the_policy_of_airflow_1_looks_at_tasks(settings: Settings, tmp_path: Path) -> None:
    settings("def policy(task):\n    task.owner = 'somebody'\n")
    dags = load_file(str(tmp_path), "file.py", analyse=False).dags
    assert dags["first"].task_dict["a"].owner == "somebody"


def test_a_policy_refuses_a_file_or_leaves_out_a_dag(settings: Settings, tmp_path: Path) -> None:
    settings(
        "class AirflowClusterPolicySkipDag(Exception):\n    pass\n\n"
        "def dag_policy(dag):\n    if dag.dag_id == 'second':\n        raise AirflowClusterPolicySkipDag\n"
    )
    assert list(load_file(str(tmp_path), "file.py", analyse=False).dags) == ["first"]
    sys.modules.pop(policies.MODULE)
    settings("def dag_policy(dag):\n    raise ValueError(f'{dag.dag_id} has no tags')\n")
    with pytest.raises(ValueError, match="has no tags"):
        load_file(str(tmp_path), "file.py", analyse=False)


def test_without_policies_nothing_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path))
    policies._functions.cache_clear()
    (tmp_path / "file.py").write_text(FILE)
    assert sorted(load_file(str(tmp_path), "file.py", analyse=False).dags) == ["first", "second"]
