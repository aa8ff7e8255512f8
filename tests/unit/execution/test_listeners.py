"""Listeners of plugins: which events are called in the process of a task, with which arguments, and what an error does."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.execution.world import World, workload
from tradewind.execution import listener_calls
from tradewind.execution.listener_calls import ListenedTaskInstance, find_listeners, prepare_listeners, without_listeners
from tradewind.execution.run_task import TaskResult, execute_task
from tradewind.execution.task_instance import TaskInstance
from tradewind.model.states import Outcome, TaskState
from tradewind.sdk import listeners
from tradewind.sdk.assets import Asset, AssetAlias
from tradewind.sdk.dag import DAG
from tradewind.sdk.load import source_file
from tradewind.sdk.operator import BaseOperator
from tradewind.sdk.plugins import describe_plugin, load_plugins

LISTENER = """
import builtins
from airflow.listeners import hookimpl

@hookimpl
def on_starting(component):
    builtins.calls.append(("on_starting", type(component).__name__))

@hookimpl
def on_task_instance_running(previous_state, task_instance, session):
    builtins.calls.append(("running", str(previous_state), task_instance.task_id, task_instance.task.command))

@hookimpl
def on_task_instance_success(previous_state, task_instance):
    builtins.calls.append(("success", str(previous_state), task_instance.state, task_instance.xcom_pull("t") is None))

@hookimpl
def on_task_instance_failed(task_instance, error):
    builtins.calls.append(("failed", task_instance.state, str(error)))

@hookimpl
def on_task_instance_skipped(task_instance):
    builtins.calls.append(("skipped", task_instance.state))

@hookimpl
def on_asset_changed(asset):
    builtins.calls.append(("asset", asset.uri))

@hookimpl
def on_asset_event_emitted(asset_event):
    uri, aliases = asset_event.asset.uri, asset_event.source_aliases
    builtins.calls.append(("event", uri, asset_event.extra, asset_event.source_task_id, aliases))

@hookimpl
def before_stopping(component):
    builtins.calls.append("before_stopping")
"""
PLUGIN = """
from airflow.plugins_manager import AirflowPlugin
import our_listener

class Broken:
    from airflow.listeners import hookimpl
    @hookimpl
    def on_task_instance_running(self):
        raise SystemExit("broken")

class OurPlugin(AirflowPlugin):
    name = "ours"
    listeners = [our_listener, Broken()]
"""


class Command(BaseOperator):
    """Does what its templated argument says."""

    template_fields = ("command",)

    def __init__(self, command: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.command = command

    def execute(self, context: Any) -> Any:
        from tradewind.sdk.exceptions import AirflowSkipException

        if self.command == "fail t":
            raise ValueError("it failed")
        if self.command == "skip t":
            raise AirflowSkipException("nothing to do")


@pytest.fixture
def calls(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The calls of the listeners of the plugins folder."""
    found: list[Any] = []
    monkeypatch.setattr(builtins, "calls", found, raising=False)
    (folder / "our_listener.py").write_text(LISTENER)
    (folder / "our_plugin.py").write_text(PLUGIN)
    listeners.get_listener_manager.cache_clear()
    yield found
    listeners.get_listener_manager.cache_clear()


def run(command: str, **arguments: Any) -> TaskResult:
    with DAG("d", schedule=None):
        task = Command(task_id="t", command=command + " {{ ti.task_id }}", **arguments)
    return execute_task(task, workload("t"), write_error=lambda text: None)


def test_the_listeners_hear_of_a_success_after_the_report(
    world: World, calls: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    result = run("work", outlets=[Asset("s3://bucket/day")])
    assert result.outcome is Outcome.SUCCESS, "a listener that raises does not fail the task"
    assert calls == [("on_starting", "TaskRunnerMarker"), ("running", "queued", "t", "work t")]
    assert "The listener on_task_instance_running of our_plugin.Broken failed" in caplog.text
    calls.clear()
    assert result.listeners is not None
    result.listeners()
    changed: list[tuple[Any, ...]] = [("asset", "s3://bucket/day"), ("event", "s3://bucket/day", {}, "t", [])]
    assert calls == [("success", "running", "success", True), *changed, "before_stopping"]


class Updater(BaseOperator):
    """Says more about its event, and adds an asset under an alias."""

    def execute(self, context: Any) -> None:
        context["outlet_events"][Asset("s3://bucket/day")].extra = {"rows": 3}
        context["outlet_events"][AssetAlias("late")].add(Asset("s3://bucket/late"), extra={"rows": 1})


def test_the_listeners_hear_of_each_asset_event(world: World, calls: list[Any]) -> None:
    with DAG("d", schedule=None):
        task = Updater(task_id="t", outlets=[Asset("s3://bucket/day"), AssetAlias("late")])
    result = execute_task(task, workload("t"), write_error=lambda text: None)
    assert result.listeners is not None
    result.listeners()
    assert [one for one in calls if one[0] == "event"] == [
        ("event", "s3://bucket/day", {"rows": 3}, "t", []),
        ("event", "s3://bucket/late", {"rows": 1}, "t", [AssetAlias("late")]),
    ]


def test_the_listeners_hear_of_failures_retries_and_skips(calls: list[Any]) -> None:
    for command, retries, said in (
        ("fail", 0, ("failed", "failed", "it failed")),
        ("fail", 1, ("failed", "up_for_retry", "it failed")),
        ("skip", 0, ("skipped", "skipped")),
    ):
        calls.clear()
        with DAG("d", schedule=None):
            task = Command(task_id="t", command=command + " {{ ti.task_id }}", retries=retries)
        result = execute_task(task, workload("t", max_tries=retries), write_error=lambda text: None)
        assert result.listeners is not None
        result.listeners()
        assert calls[2:] == [said, "before_stopping"]


def test_tasks_that_warm_a_process_up_are_no_news(calls: list[Any]) -> None:
    with without_listeners():
        result = run("work")
    assert result.listeners is None
    assert calls == []
    assert run("work").listeners is not None


def test_a_listener_tells_a_running_task_from_a_state_that_a_person_set() -> None:
    """The listener of OpenLineage does that by `isinstance`, as in Airflow 3."""

    class Row:
        def __init__(self) -> None:
            self.task_id, self.state = "t", "running"

    row = Row()
    ti: Any = ListenedTaskInstance(row)  # type: ignore[arg-type]
    assert not isinstance(ti, Row)
    ti.state = "success"
    assert (ti.task_id, row.state, ti == row, {row: 1}[ti]) == ("t", "success", True, 1)
    with pytest.raises(AttributeError, match="nothing"):
        _ = ti.nothing


def test_no_plugin_is_loaded_where_none_mentions_listeners(folder: Path) -> None:
    (folder / "ours.py").write_text("raise AssertionError('it is not imported')")
    listeners.get_listener_manager.cache_clear()
    assert find_listeners() is None
    assert run("work").listeners is None


@pytest.fixture
def searching(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a template finds is known in its process only."""
    monkeypatch.setattr(listener_calls, "_there_are_none", False)


def test_a_process_forked_from_one_without_listeners_does_not_search(
    folder: Path, searching: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    listeners.get_listener_manager.cache_clear()
    prepare_listeners()
    monkeypatch.setattr(listener_calls, "find_listeners", lambda: pytest.fail("it searches"))
    assert run("work").listeners is None


def test_without_listeners_a_template_is_stale_after_every_change_of_the_plugins_folder(folder: Path, searching: None) -> None:
    listeners.get_listener_manager.cache_clear()
    (folder / "deep").mkdir()
    for path in (file := folder / "ours.py", folder / "deep" / "more.py", folder / "notes.txt"):
        path.write_text("")
    seen = {source.path: source for source in prepare_listeners()}
    assert set(seen) == {str(folder), str(file), str(folder / "deep"), str(folder / "deep" / "more.py")}
    file.write_text("listeners = []")
    assert source_file(str(file)) != seen[str(file)]


def test_a_plugins_folder_that_appears_later_makes_a_template_stale(
    folder: Path, searching: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    listeners.get_listener_manager.cache_clear()
    later = folder / "later"
    monkeypatch.setenv("TRADEWIND__CORE__PLUGINS_FOLDER", str(later))
    (source,) = prepare_listeners()
    assert tuple(source) == (str(later), 0, 0)
    later.mkdir()
    assert source_file(str(later)) != source


def test_a_template_is_stale_after_a_change_of_a_listener(calls: list[Any], folder: Path) -> None:
    """Or after another file was added to the folder."""
    assert {source.path for source in prepare_listeners()} >= {str(folder), str(folder / "our_plugin.py")}


def test_the_list_of_plugins_names_the_events(calls: list[Any], folder: Path) -> None:
    (plugin,) = load_plugins(str(folder)).plugins
    described = describe_plugin(plugin)
    assert "on_task_instance_failed" in described["listener_events"]
    assert "on_dag_run_failed" not in described["listener_events"]
    assert described["recorded_only"] == []


def test_a_listener_with_an_unknown_argument_is_an_error_of_its_plugin(folder: Path) -> None:
    (folder / "wrong.py").write_text(
        PLUGIN.replace("import our_listener", "").replace("our_listener, ", "").replace("(self)", "(self, tsk)")
    )
    (plugin,) = load_plugins(str(folder)).plugins
    with pytest.raises(Exception, match="tsk"):
        describe_plugin(plugin)


@pytest.fixture
def lineage() -> Iterator[Any]:
    from tradewind.airflow.compat import lineage as found

    found.get_hook_lineage_collector.cache_clear()
    yield found
    found.get_hook_lineage_collector.cache_clear()


def test_what_hooks_read_and_write_is_kept_where_a_plugin_may_read_it(folder: Path, lineage: Any) -> None:
    (folder / "reader.py").write_text("hook_lineage_readers = []")
    collector = lineage.get_hook_lineage_collector()
    hook = object()
    collector.add_input_asset(hook, uri="s3://bucket/in.csv")
    collector.add_input_asset(hook, uri="s3://bucket/in.csv")
    collector.add_output_asset(hook, uri="s3://bucket/out.csv")
    collector.add_extra(hook, "query", "select 1")
    collected = lineage.HookLineageReader().retrieve_hook_lineage()
    assert [(one.asset.uri, one.count, one.context) for one in collected.inputs] == [("s3://bucket/in.csv", 2, hook)]
    assert [one.asset.uri for one in collected.outputs] == ["s3://bucket/out.csv"]
    assert [(one.key, one.value) for one in collected.extra] == [("query", "select 1")]


def test_the_collector_keeps_a_limited_number_of_assets(folder: Path, lineage: Any) -> None:
    (folder / "reader.py").write_text("listeners = []")
    collector = lineage.get_hook_lineage_collector()
    for number in range(lineage.MAX_COLLECTED_ASSETS + 5):
        collector.add_output_asset(collector, uri=f"s3://bucket/{number}")
    assert len(collector.collected_assets.outputs) == lineage.MAX_COLLECTED_ASSETS


def test_where_no_plugin_reads_it_nothing_is_kept(folder: Path, lineage: Any) -> None:
    (folder / "ours.py").write_text("macros = []")
    collector = lineage.get_hook_lineage_collector()
    collector.add_input_asset(collector, uri="s3://bucket/in.csv")
    assert not collector.has_collected


def test_a_state_that_a_person_has_set_has_no_previous_state() -> None:
    """As in Airflow: the object is a `TaskInstance`, by which listeners tell it from a running task."""
    heard: list[Any] = []

    class Hears:
        @listeners.hookimpl
        def on_task_instance_success(self, previous_state: Any, task_instance: Any) -> None:
            heard.append((previous_state, type(task_instance)))

    manager = listeners.get_listener_manager()
    manager.add_listener(Hears())
    ti = TaskInstance(BaseOperator(task_id="t"), workload())
    try:
        listener_calls.call_for_task("on_task_instance_success", ti, None, by_hand=True)
        listener_calls.call_for_task("on_task_instance_success", ti, None)
    finally:
        manager.clear()
    assert heard == [(None, TaskInstance), (TaskState.RUNNING, ListenedTaskInstance)]
