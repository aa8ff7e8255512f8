"""Policies of a deployment: `airflow_local_settings`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tradewind.model.definition import DefinitionDefaults
from tradewind.parser import problems
from tradewind.sdk import policies
from tradewind.sdk.definition import to_definition
from tradewind.sdk.entry_points import read_entry_points
from tradewind.sdk.load import load_file
from tradewind.worker.warm_up import _import

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
        policies.policies_of_process.cache_clear()

    yield write
    sys.path[:] = path
    sys.modules.pop(policies.MODULE, None)
    policies.policies_of_process.cache_clear()


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


def test_modules_of_the_folder_config_can_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings name classes there: core.xcom_backend, secrets.backend. Airflow has the folder on Python's path."""
    (tmp_path / "airflow" / "config").mkdir(parents=True)
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path))
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    monkeypatch.setattr(sys, "path", sys.path[:])
    (tmp_path / "airflow" / "config" / "backend_of_the_team.py").write_text("TAG = 'team'\n")
    (tmp_path / "file.py").write_text(
        FILE.replace("schedule=None", "schedule=None, tags=[TAG]").replace(
            "from tradewind import DAG", "from tradewind import DAG\nfrom backend_of_the_team import TAG"
        )
    )
    assert load_file(str(tmp_path), "file.py", analyse=False).dags["first"].tags == {"team"}


def test_without_policies_nothing_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEWIND_HOME", str(tmp_path))
    policies.policies_of_process.cache_clear()
    (tmp_path / "file.py").write_text(FILE)
    assert sorted(load_file(str(tmp_path), "file.py", analyse=False).dags) == ["first", "second"]


MUTATION = """
def task_instance_mutation_hook(task_instance):
    if task_instance.dag_id == "first":
        task_instance.queue = "gpu"
        task_instance.pool = "night"
        task_instance.priority_weight = 7
        task_instance.max_tries = 3
"""


def test_the_mutation_hook_changes_the_instances_of_a_task(settings: Settings, tmp_path: Path) -> None:
    settings(MUTATION)
    dags = load_file(str(tmp_path), "file.py", analyse=False).dags
    changed, other = dags["first"].task_dict["a"], dags["second"].task_dict["a"]
    assert (changed.queue, changed.pool, changed.priority_weight, changed.retries) == ("gpu", "night", 7, 3)
    defined = to_definition(dags["first"], "file.py", DefinitionDefaults()).tasks[0]
    assert (defined.queue, defined.pool, defined.priority_weight) == ("gpu", "night", 7)
    assert (other.queue, other.pool) == ("default", "default_pool")


def test_a_mutation_hook_that_treats_retries_differently_gives_a_warning(settings: Settings, tmp_path: Path) -> None:
    settings("def task_instance_mutation_hook(ti):\n    if ti.try_number >= 1:\n        ti.queue = 'retries'\n")
    with pytest.warns(UserWarning, match=r"gives retries of .*first\.a.* another queue \('retries'\); they keep"):
        dags = load_file(str(tmp_path), "file.py", analyse=False).dags
    assert dags["first"].task_dict["a"].queue == "default"


def test_a_mutation_hook_that_depends_on_the_run_is_an_error(settings: Settings, tmp_path: Path) -> None:
    settings("def task_instance_mutation_hook(ti):\n    ti.queue = ti.dag_run.conf['queue']\n")
    with pytest.raises(
        AttributeError, match=r"reads task_instance\.dag_run: here the hook is called when the DAG file is read"
    ):
        load_file(str(tmp_path), "file.py", analyse=False)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("\ndef dag_policy(dag):\n    raise ValueError('no tags')\n", "Raised by the policy dag_policy for <DAG: first>"),
        ("\n\nimport nothing_of_that_name\n", "The module airflow_local_settings of the policies cannot be imported"),
        ("\n\ndef (\n", "The module airflow_local_settings of the policies cannot be imported"),
    ],
)
def test_an_error_names_the_policy_its_file_and_its_line(settings: Settings, tmp_path: Path, text: str, says: str) -> None:
    settings(text)
    with pytest.raises((ValueError, ImportError, SyntaxError)) as caught:
        load_file(str(tmp_path), "file.py", analyse=False)
    problem = problems.from_exception(caught.value, str(tmp_path / "file.py"))
    assert f"{says} ({tmp_path}/config/airflow_local_settings.py, line 3)" in problem.message


def test_a_file_is_read_again_after_a_change_of_the_policies(settings: Settings, tmp_path: Path) -> None:
    settings(MUTATION)
    sources = [source.path for source in load_file(str(tmp_path), "file.py").sources]
    assert sources == [str(tmp_path / "file.py"), str(tmp_path / "config" / "airflow_local_settings.py")]


def test_the_warm_up_of_a_worker_ignores_policies(settings: Settings) -> None:
    """A policy that refuses every DAG must not stop the base image from starting."""
    settings("def dag_policy(dag):\n    raise ValueError('no tags')\n")
    assert list(_import()) == ["warm_up"]


def test_a_package_offers_policies(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "policy_package.py").write_text(
        "from airflow.policies import hookimpl\n\n@hookimpl\ndef task_policy(task):\n    task.queue = 'packed'\n"
    )
    metadata = tmp_path / "policy_package-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: policy-package\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[airflow.policy]\nours = policy_package\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    read_entry_points.cache_clear()
    policies.policies_of_process.cache_clear()
    try:
        dags = load_file(str(tmp_path), "file.py", analyse=False).dags
        assert dags["first"].task_dict["a"].queue == "packed"
    finally:
        read_entry_points.cache_clear()
        policies.policies_of_process.cache_clear()
        sys.modules.pop("policy_package", None)


def test_variables_of_the_environment(settings: Settings) -> None:
    settings(
        "from datetime import datetime\n\n"
        "def get_airflow_context_vars(context):\n"
        "    return {'TEAM': context['team'], 'MAILS': ['a', 'b'], 'DAY': datetime(2026, 3, 1)}\n"
    )
    assert policies.context_variables({"team": "data"}) == {"TEAM": "data", "MAILS": "a,b", "DAY": "2026-03-01T00:00:00"}
    with pytest.raises(TypeError, match="returned TEAM=5; values must be strings"):
        policies.context_variables({"team": 5})
