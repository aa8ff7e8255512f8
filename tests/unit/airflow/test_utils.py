"""`airflow.utils`: what DAG files and provider packages call there."""

from __future__ import annotations

import importlib
import json
import logging
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import tradewind.airflow  # noqa: F401  serves the namespace
from tradewind.model.errors import DefinitionError, NotYetSupported, TradewindError
from tradewind.sdk.definition import to_definition
from tradewind.sdk.exceptions import AirflowTaskTimeout
from tradewind.testing.dag_test import configured_defaults

from airflow.utils import dates, operator_helpers, process_utils  # isort: skip


def day(number: int, hour: int = 0) -> datetime:
    return datetime(2026, 1, number, hour, tzinfo=UTC)


def test_round_time_takes_the_last_moment_of_a_cron_expression() -> None:
    assert dates.round_time(day(2, 7), "@daily") == day(2)
    assert dates.round_time(day(2, 7), "0 */3 * * *") == day(2, 6)
    assert dates.round_time(day(2, 7).replace(tzinfo=None), "0 6 * * *") == day(2, 6).replace(tzinfo=None)
    with pytest.raises(DefinitionError, match="round_time"):
        dates.round_time(day(1), 5)


def test_date_range_steps_by_cron_and_goes_back() -> None:
    assert dates.date_range(day(1), day(3), delta="0 0 * * *") == [day(1), day(2), day(3)]
    assert dates.date_range(day(3), num=-3, delta=timedelta(days=1)) == [day(1), day(2), day(3)]
    with pytest.raises(DefinitionError, match="before"):
        dates.date_range(day(3), day(1))


@pytest.mark.parametrize(("seconds", "unit"), [(100, "seconds"), (130, "minutes"), (5400, "minutes"), (36000, "hours")])
def test_infer_time_unit(seconds: int, unit: str) -> None:
    assert dates.infer_time_unit([1, seconds]) == unit
    assert dates.scale_time_units([7200], "hours") == [2]


def test_infer_time_unit_of_days_and_of_nothing() -> None:
    assert dates.infer_time_unit([200_000]) == "days"
    assert dates.infer_time_unit([]) == "hours"


def test_patch_environ_puts_back_what_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TW_A", "before")
    monkeypatch.delenv("TW_B", raising=False)
    with process_utils.patch_environ({"TW_A": None, "TW_B": "new"}):
        assert "TW_A" not in os.environ
        assert os.environ["TW_B"] == "new"
    assert os.environ["TW_A"] == "before"
    assert "TW_B" not in os.environ


def test_a_command_is_logged_and_its_failure_raised(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        process_utils.execute_in_subprocess([sys.executable, "-c", "print('hello')"])
    assert "hello" in caplog.text
    with pytest.raises(subprocess.CalledProcessError):
        process_utils.execute_in_subprocess([sys.executable, "-c", "raise SystemExit(3)"])


def test_a_process_group_is_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    found = process_utils.reap_process_group(process.pid, logging.getLogger(), timeout=10)
    assert process.pid in found
    assert process.poll() is not None
    assert process_utils.reap_process_group(process.pid, logging.getLogger()) == {}


def test_the_context_is_told_as_variables() -> None:
    context = {
        "task": SimpleNamespace(owner="ann", email=["a@b.c", "d@e.f"]),
        "ti": SimpleNamespace(dag_id="d", task_id="t", try_number=2),
        "dag_run": SimpleNamespace(run_id="r", logical_date=day(1)),
    }
    found = operator_helpers.context_to_airflow_vars(context, in_env_var_format=True)
    assert found["AIRFLOW_CTX_DAG_ID"] == "d"
    assert found["AIRFLOW_CTX_DAG_EMAIL"] == "a@b.c,d@e.f"
    assert found["AIRFLOW_CTX_LOGICAL_DATE"] == "2026-01-01T00:00:00+00:00"
    assert operator_helpers.context_to_airflow_vars(context)["airflow.ctx.task_id"] == "t"
    context["task"] = SimpleNamespace(owner="ann", email=["a", 5])
    with pytest.raises(TypeError, match="dag_email"):
        operator_helpers.context_to_airflow_vars(context)
    context["task"] = SimpleNamespace(owner=5, email=None)
    assert operator_helpers.context_to_airflow_vars(context)["airflow.ctx.dag_owner"] == "5"


def test_a_function_is_called_with_what_it_takes() -> None:
    def named(ds: str) -> str:
        return ds

    assert operator_helpers.determine_kwargs(named, [], {"ds": "x", "ti": 1}) == {"ds": "x"}
    assert operator_helpers.make_kwargs_callable(named)(ds="x", ti=1) == "x"


def test_a_timeout_raises_when_time_is_over() -> None:
    from airflow.utils.timeout import timeout

    with pytest.raises(AirflowTaskTimeout, match="too long"), timeout(0.05, "too long"):
        subprocess.run([sys.executable, "-c", "import signal; signal.pause()"], check=False, timeout=30)


def test_moved_classes_of_a_package_warn() -> None:
    from airflow.utils.deprecation_tools import DeprecatedImportWarning, add_deprecated_classes

    add_deprecated_classes({"old": {"Decoder": "json.JSONDecoder"}}, "tw_moved")
    module = importlib.import_module("tw_moved.old") if "tw_moved" in sys.modules else sys.modules["tw_moved.old"]
    with pytest.warns(DeprecatedImportWarning, match=r"tw_moved\.old\.Decoder"):
        assert module.Decoder is json.JSONDecoder
    with pytest.raises(AttributeError):
        _ = module.Nothing
    del sys.modules["tw_moved.old"]


def test_decorators_are_taken_out_of_a_source() -> None:
    from airflow.utils.python_virtualenv import remove_task_decorator

    source = "@setup\n@task.docker(\n    image='x',\n    y=(1, 2),\n)\ndef f():\n    pass\n"
    assert remove_task_decorator(source, "@task.docker") == "def f():\n    pass\n"


def test_json_of_dates_and_numbers() -> None:
    from airflow.utils.json import WebEncoder, XComDecoder, XComEncoder

    assert json.dumps({"d": day(1), "s": {1}}, cls=WebEncoder) == '{"d": "2026-01-01T00:00:00+00:00", "s": [1]}'
    value = {"when": day(1), "n": [1, 2]}
    assert json.loads(json.dumps(value, cls=XComEncoder), cls=XComDecoder) == value


def test_parts_of_airflow_itself_can_be_imported_and_refuse_to_work() -> None:
    from airflow.api.common.delete_dag import delete_dag
    from airflow.jobs import SchedulerJob
    from airflow.models import DagPickle, DagRun, TaskInstance
    from airflow.utils.db import downgrade

    class Ours(SchedulerJob):
        pass

    for refused in (Ours, delete_dag, downgrade):
        with pytest.raises(NotYetSupported, match="Airflow's own services"):
            refused()
    assert repr(DagPickle.pickle_hash) == "DagPickle.pickle_hash"
    assert hasattr(DagRun, "state")
    assert hasattr(TaskInstance, "dag_id")
    with pytest.raises(ImportError):
        exec("from airflow.jobs import NoSuchJob")


def test_everything_of_a_module_can_be_imported_at_once() -> None:
    """Names of provider packages that are not installed are left out."""
    found: dict[str, object] = {}
    exec("from airflow.operators.sensors import *\nfrom airflow.models import *\nfrom airflow.operators import *", found)
    assert {"ExternalTaskSensor", "DAG", "BashOperator"} <= found.keys()
    assert "HdfsSensor" not in found


def test_everything_of_the_task_sdk_can_be_imported_without_the_package_of_object_stores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "upath", None)
    monkeypatch.delitem(sys.modules, "tradewind.airflow.compat.object_storage", raising=False)
    found: dict[str, object] = {}
    exec("from airflow.sdk import *", found)
    assert {"DAG", "task", "Asset", "Param"} <= found.keys()


def test_trigger_rules_and_groups_of_states_have_their_old_names() -> None:
    from airflow.utils.state import State
    from airflow.utils.trigger_rule import TriggerRule

    assert TriggerRule.DUMMY is TriggerRule.ALWAYS
    assert TriggerRule.NONE_FAILED_OR_SKIPPED is TriggerRule.NONE_FAILED_MIN_ONE_SUCCESS
    assert TriggerRule.is_valid("dummy")
    assert not TriggerRule.is_valid("sometimes")
    assert "all_done" in TriggerRule.all_triggers()
    assert State.SUCCESS in State.finished()
    assert State.RUNNING in State.unfinished


def test_hooks_of_the_core(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from airflow.contrib.hooks.fs_hook import FSHook
    from airflow.hooks.package_index import PackageIndexHook
    from airflow.hooks.subprocess import SubprocessHook

    monkeypatch.setenv("AIRFLOW_CONN_FS_DEFAULT", json.dumps({"conn_type": "fs", "extra": {"path": str(tmp_path)}}))
    hook = FSHook()
    assert (hook.get_path(), hook.test_connection()[0]) == (str(tmp_path), True)
    index = {"conn_type": "package_index", "host": "https://pypi.example.com/simple", "login": "me", "password": "a b"}
    monkeypatch.setenv("AIRFLOW_CONN_PACKAGE_INDEX_DEFAULT", json.dumps(index))
    assert PackageIndexHook().get_connection_url() == "https://me:a%20b@pypi.example.com/simple"
    assert SubprocessHook().run_command(["echo", "hello"]) == (0, "hello")


def test_a_task_says_which_resources_it_needs() -> None:
    from airflow.utils.operator_resources import Resources

    assert Resources(cpus=2).to_dict()["cpus"] == {"name": "CPU", "qty": 2, "units_str": "core(s)"}


def test_lineage_keeps_the_facts_of_an_entity() -> None:
    from airflow.lineage.entities import File, Table

    assert File("s3://a").url == "s3://a"
    assert Table(database="d", cluster="c", name="n").name == "n"
    with pytest.raises(TypeError, match="nothing"):
        File(nothing=1)


def test_entry_points_have_their_distributions() -> None:
    from airflow.utils.entry_points import entry_points_with_dist

    found = {point.name: distribution.name for point, distribution in entry_points_with_dist("pytest11")}
    assert found["timeout"] == "pytest-timeout"
    assert list(entry_points_with_dist("no such group")) == []


def test_object_storage_paths_name_the_package_that_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "tradewind.airflow.compat.object_storage"
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "upath", None)
    with pytest.raises(ModuleNotFoundError, match=r"ObjectStoragePath needs the package universal-pathlib.*pip install"):
        importlib.import_module(module)


def test_object_storage_paths_name_a_release_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "tradewind.airflow.compat.object_storage"
    monkeypatch.delitem(sys.modules, module, raising=False)
    for name, content in (("upath", {"UPath": object}), ("upath.extensions", {})):
        made = ModuleType(name)
        made.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, made)
    with pytest.raises(ModuleNotFoundError, match=r"a newer release .*'ProxyUPath'.*pip install --upgrade"):
        importlib.import_module(module)


def test_settings_have_the_defaults_of_airflow() -> None:
    """Also those that only the services of Airflow read: plugins read them while they are imported."""
    from airflow.configuration import conf

    assert conf.get("logging", "fab_logging_level") == "WARNING"
    assert conf.getint("celery", "worker_concurrency") == 16
    assert conf.get("webserver", "secret_key") == ""


def test_groups_of_run_states() -> None:
    from airflow.utils.state import State

    assert State.finished_dr_states == {"success", "failed"}
    assert State.unfinished_dr_states == {"queued", "running"}


def test_the_type_of_a_run_from_its_id() -> None:
    from airflow.utils.types import DagRunType

    ids = ("scheduled__2024-01-01T00:00:00+00:00", "asset_triggered__x", "backfill__x", "my own id")
    assert [DagRunType.from_run_id(run_id).value for run_id in ids] == ["scheduled", "asset_triggered", "backfill", "manual"]


def test_the_key_of_a_task_instance() -> None:
    from airflow.models.taskinstancekey import TaskInstanceKey

    key = TaskInstanceKey("d", "t", "r", 2, 3)
    assert key.primary == ("d", "t", "r", 3)
    assert key.with_try_number(5) == ("d", "t", "r", 5, 3)
    assert key.key is key


def test_get_connections_is_a_list_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.hooks.base import BaseHook

    monkeypatch.setenv("AIRFLOW_CONN_SHOP", "http://shop")
    assert [one.host for one in BaseHook.get_connections("shop")] == ["shop"]


def test_operators_derived_from_bash_operator_run_commands_themselves() -> None:
    from airflow.operators.bash import BashOperator

    class Twice(BashOperator):
        def execute(self, context: object) -> object:
            return [self.subprocess_hook.run_command(command=["bash", "-c", self.bash_command]).output for _ in range(2)]

    task = Twice(task_id="t", bash_command="echo hello")
    assert task.prepare_for_execution().execute({}) == ["hello", "hello"]
    task.on_kill()


def test_the_metaclass_of_operators_can_be_subclassed() -> None:
    from airflow.models.baseoperator import BaseOperator, BaseOperatorMeta

    class Meta(BaseOperatorMeta):
        pass

    class Own(BaseOperator, metaclass=Meta):
        pass

    assert isinstance(Own, BaseOperatorMeta)
    assert Own(task_id="t").task_id == "t"


def test_older_attributes_of_dags_and_groups() -> None:
    from airflow import DAG
    from airflow.operators.empty import EmptyOperator
    from airflow.utils.task_group import TaskGroup

    with DAG("d", fail_stop=True) as dag, TaskGroup("g") as group:
        EmptyOperator(task_id="a") >> EmptyOperator(task_id="b")
    assert dag.fail_stop is True
    assert group.used_group_ids == {"g", "g.a", "g.b"}
    assert dag.get_tree_view() == "<Task(EmptyOperator): g.a>\n    <Task(EmptyOperator): g.b>\n"


def test_classes_of_users_may_assign_names_that_airflow_leaves_free() -> None:
    import logging

    from airflow import DAG
    from airflow.models import BaseOperator
    from airflow.notifications.basenotifier import BaseNotifier

    class Loader(BaseOperator):
        def __init__(self, schedule_interval: str, **kwargs: object) -> None:
            super().__init__(**kwargs)
            self.schedule_interval = schedule_interval

    class Chat(BaseNotifier):
        def __init__(self) -> None:
            self.log = logging.getLogger("chat")

    with DAG("d", schedule="@daily"):
        assert BaseOperator(task_id="plain").schedule_interval == "@daily"
        assert Loader(task_id="t", schedule_interval="weekly").schedule_interval == "weekly"
    assert Chat().log.name == "chat"
    assert BaseNotifier().log.name == "tradewind.task.notifiers.BaseNotifier"


def test_the_version_consists_of_numbers() -> None:
    """Files decide by `airflow.__version__.split(".")`, often with `int`."""
    import airflow
    from airflow.version import version

    assert airflow.__version__ == version
    assert [int(part) for part in version.split(".")] >= [3, 3, 2]


def test_a_task_can_be_replaced_by_another_one_in_a_finished_dag() -> None:
    """Packages that migrate DAGs do this (dagster-airlift)."""
    from airflow import DAG
    from airflow.models.operator import BaseOperator
    from airflow.operators.empty import EmptyOperator
    from airflow.utils.task_group import TaskGroup

    class Replacement(BaseOperator):
        def execute(self, context: object) -> None:
            """Do nothing."""

    with DAG("d") as dag:
        first, last = EmptyOperator(task_id="first"), EmptyOperator(task_id="last")
        with TaskGroup("g") as group:
            old = EmptyOperator(task_id="old")
        first >> old >> last
    del dag.task_dict["g.old"]
    del group.children["g.old"]
    new = Replacement(task_id="old", task_group=group, dag=dag)
    new.upstream_task_ids, new.downstream_task_ids = old.upstream_task_ids, old.downstream_task_ids
    new.dag, old.dag = old.dag, None
    tasks = {
        task.task_id: (task.operator, set(task.upstream)) for task in to_definition(dag, __file__, configured_defaults()).tasks
    }
    assert tasks["g.old"] == ("Replacement", {"first"})
    assert tasks["last"] == ("EmptyOperator", {"g.old"})


def test_the_graph_of_a_dag_in_dot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow import DAG
    from airflow.operators.empty import EmptyOperator
    from airflow.utils.dot_renderer import render_dag
    from airflow.utils.edgemodifier import Label
    from airflow.utils.task_group import TaskGroup

    with DAG("d") as dag:
        with TaskGroup("g"):
            first = EmptyOperator(task_id="a")
        first >> EmptyOperator(task_id="b") >> Label('the "end"') >> EmptyOperator(task_id="c")
    graph = render_dag(dag)
    assert str(graph).splitlines() == [
        'digraph "d" {',
        '\tgraph [label="d" labelloc=t rankdir=LR]',
        '\tsubgraph "cluster_g" {',
        '\t\tlabel="g"',
        '\t\t"g.a" [label="a" shape=rectangle style=rounded]',
        "\t}",
        '\t"b" [label="b" shape=rectangle style=rounded]',
        '\t"c" [label="c" shape=rectangle style=rounded]',
        '\t"g.a" -> "b"',
        '\t"b" -> "c" [label="the \\"end\\""]',
        "}",
    ]
    assert Path(graph.save(str(tmp_path / "d.dot"))).read_text() == graph.source
    dot = tmp_path / "dot"
    dot.write_text("#!/bin/sh\n[ $1 = -Tpng ] && exec wc -l\necho no such format >&2; exit 1\n")
    dot.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert Path(graph.render(str(tmp_path / "d"), format="png")).read_text().strip() == "11"
    with pytest.raises(TradewindError, match="in the format 'xyz': no such format"):
        graph.pipe("xyz")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(TradewindError, match="install Graphviz"):
        graph.pipe("png")


def test_assigned_ids_replace_the_dependencies_on_both_sides() -> None:
    from airflow import DAG
    from airflow.operators.empty import EmptyOperator

    with DAG("d"):
        first, second, last = (EmptyOperator(task_id=name) for name in ("first", "second", "last"))
        first >> last
    last.upstream_task_ids = {"no such task"}
    assert last.upstream_task_ids == {"no such task"}
    last.upstream_task_ids = {"second"}
    assert last.upstream_task_ids == {"second"}
    assert (first.downstream_task_ids, second.downstream_task_ids) == (set(), {"last"})
    last.upstream_task_ids = set()
    assert (last.upstream_list, second.downstream_list) == ([], [])
