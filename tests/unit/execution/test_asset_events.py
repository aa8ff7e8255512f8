"""Asset events in a running task: of its outlets, of its inlets, and those that started its run."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest

from tests.unit.execution.world import World, carry_out, pushed
from tests.unit.store.suite.build import NOW, with_dag, with_run
from tradewind import DAG, Asset, AssetAlias, Metadata, asset, task
from tradewind.model.assets import AllOf, AssetKey, AssetSchedule
from tradewind.model.moments import SECOND
from tradewind.model.rows import NewAssetEvent, NewRun
from tradewind.model.states import Outcome, RunType
from tradewind.operators.empty import EmptyOperator
from tradewind.operators.python import PythonOperator
from tradewind.platform.clock import ManualClock
from tradewind.store.memory import MemoryStore
from tradewind.testing.inline_runtime import InlineRuntime
from tradewind.wire.messages import AssetUpdate
from tradewind.wire.runtime import installed

A, B = Asset("a", "s3://b/a"), Asset("b", "s3://b/b")
X = AssetAlias("x")


def result_of(function: Callable[..., Any], outlets: Any = (), inlets: Any = (), **changes: Any) -> Any:
    """Run an attempt of a task with this function; return its result."""
    with DAG("d", schedule="@daily"):
        made = PythonOperator(task_id="t", python_callable=function, outlets=outlets, inlets=inlets)
    return carry_out(made, **changes)


def plain(name: str, extra: bytes = b"", **more: Any) -> AssetUpdate:
    return AssetUpdate(name, f"s3://b/{name}", extra=extra, **more)


def test_a_success_emits_each_outlet_once() -> None:
    assert result_of(lambda: None, outlets=[A, "text", B, A, X]).assets == (plain("a"), plain("b"))


def test_a_task_without_outlets_emits_nothing() -> None:
    assert result_of(lambda: None).assets == ()


def test_an_empty_task_with_outlets_emits_too() -> None:
    with DAG("d"):
        made = EmptyOperator(task_id="t", outlets=[A])
    assert carry_out(made).assets == (plain("a"),)


def test_outlets_that_execute_adds_are_emitted() -> None:
    """astronomer-cosmos knows the tables of dbt only after it has run dbt."""

    def work(task: Any, outlet_events: Any) -> None:
        outlet_events[A].extra = {"rows": 3}
        task.outlets.append(B)

    assert result_of(work, outlets=[A]).assets == (plain("a", b'{"rows": 3}'), plain("b"))


def test_an_outlet_whose_class_has_no_hash_is_emitted_once() -> None:
    class Table(Asset):
        def __eq__(self, other: object) -> bool:
            return self is other

        __hash__ = None  # type: ignore[assignment]

    assert result_of(lambda: None, outlets=[Table("a", "s3://b/a"), Table("a", "s3://b/a")]).assets == (plain("a"),)


def test_failures_and_skips_emit_nothing() -> None:
    def fails() -> None:
        raise ValueError

    assert result_of(fails, outlets=[A]).assets == ()


@pytest.mark.parametrize("key", [A, "a", "s3://b/a", Asset.ref(name="a"), Asset.ref(uri="s3://b/a")])
def test_extra_is_said_by_asset_name_or_uri(key: Any) -> None:
    def work(outlet_events: Any) -> None:
        outlet_events[key].extra = {"rows": 3}

    assert result_of(work, outlets=[A, B]).assets == (plain("a", b'{"rows": 3}'), plain("b"))


def test_an_outlet_is_the_same_by_object_and_by_reference() -> None:
    def work(outlet_events: Any) -> list[Any]:
        outlet_events[A].extra = {"rows": 3}
        return [outlet_events[Asset.ref(uri="s3://b/a")].extra, outlet_events.for_asset(name="a").extra]

    found = result_of(work, outlets=[A])
    assert pushed(found) == {"return_value": [{"rows": 3}, {"rows": 3}]}
    assert found.assets == (plain("a", b'{"rows": 3}'),)


def test_extra_that_is_no_json_fails_the_task() -> None:
    def work(outlet_events: Any) -> None:
        outlet_events[A].extra["f"] = object()

    found = result_of(work, outlets=[A])
    assert found.outcome is Outcome.FAILED
    assert "must be a JSON object" in found.reason
    assert found.assets == ()


def test_a_function_may_yield_metadata_and_return_a_value(caplog: pytest.LogCaptureFixture) -> None:
    def work() -> Generator[Any, None, str]:
        yield Metadata(A, extra={"rows": 3})
        yield Metadata(B, {"part": 1}, alias="x")
        yield 5
        return "done"

    found = result_of(work, outlets=[A, X])
    assert found.assets == (plain("a", b'{"rows": 3}'), plain("b", b'{"part": 1}', aliases=("x",)))
    assert pushed(found) == {"return_value": "done"}
    assert "may yield only Metadata" in caplog.text


def test_an_alias_emits_what_is_added_to_it() -> None:
    y = AssetAlias("y")

    def work(outlet_events: Any) -> None:
        outlet_events[X].add(A, extra={"k": 1})
        outlet_events["y"].add(A, extra={"k": 1})
        outlet_events[y].add(Asset("new", "s3://b/new", extra={"team": "ops"}))

    assert result_of(work, outlets=[X, y]).assets == (
        plain("a", b'{"k": 1}', aliases=("x", "y")),
        plain("new", about=b'{"team": "ops"}', aliases=("y",)),
    )


def test_an_alias_to_which_nothing_is_added_emits_nothing() -> None:
    assert result_of(lambda: None, outlets=[X]).assets == ()


def test_an_unknown_outlet_is_said_with_the_nearest() -> None:
    def work(outlet_events: Any) -> None:
        outlet_events["s3://b/aa"].extra = {}

    assert "has no outlet 's3://b/aa'. Did you mean 's3://b/a'?" in result_of(work, outlets=[A]).reason


# --- what others emitted --------------------------------------------------------------------------------------------------


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    """Two events of `a`, the second by a task, one of `b`; a run of `c` that consumed the first of each."""
    store = MemoryStore()
    with_dag(store, "p")
    with_dag(store, "c", assets=AssetSchedule(AllOf((AssetKey("a", "s3://b/a"), AssetKey("b", "s3://b/b")))))
    with_run(store, "source", "p", 3)
    first = NewAssetEvent("a", "s3://b/a", "asset", b'{"rows":1}', NOW, source_dag="p", source_run="source", source_task="t0")
    numbers, _ = store.record_asset_events([first, NewAssetEvent("b", "s3://b/b", "asset", None, NOW, aliases=("x",))])
    new = NewRun("c", "r1", RunType.ASSET_TRIGGERED, store.need_dag("c").version, None, None, None, NOW, NOW, "asset")
    row = store.create_asset_run(new, numbers[-1])
    store.record_asset_events([NewAssetEvent("a", "s3://b/a", "asset", b'{"rows":2}', NOW + 9 * SECOND)])
    with installed(InlineRuntime(store, ManualClock(NOW), (row.id, 0, 1))):
        yield store


def test_inlet_events_are_those_of_an_asset_in_order(store: MemoryStore) -> None:
    def work(inlet_events: Any) -> list[Any]:
        events = inlet_events[A]
        assert len(events) == 2
        assert [one.extra["rows"] for one in inlet_events["a"]] == [1, 2]
        assert [one.extra["rows"] for one in inlet_events[0].ascending(False).limit(1)] == [2]
        assert [one.extra["rows"] for one in inlet_events[A].after("2023-11-14T22:13:25Z")] == [2]
        assert list(inlet_events.for_asset(name="none")) == []
        assert [one.name for one in inlet_events[X]] == ["b"]
        last, first = events[-1], events[0]
        assert last.source_dag_run is None
        assert (first.uri, first.source_task_id, first.source_dag_run.run_id) == ("s3://b/a", "t0", "source")
        return [first.timestamp.isoformat(), first.source_dag_run.data_interval_start.isoformat()]

    found = result_of(work, inlets=[A])
    assert found.reason is None
    assert pushed(found)["return_value"] == ["2023-11-14T22:13:20+00:00", "2023-11-17T22:13:20+00:00"]


def test_triggering_events_are_those_that_began_the_run(store: MemoryStore) -> None:
    def work(triggering_asset_events: Any, triggering_dataset_events: Any, dag_run: Any) -> list[Any]:
        assert list(triggering_asset_events) == [A, B, X]
        assert len(triggering_asset_events) == 3
        assert [one.extra for one in triggering_asset_events[A]] == [{"rows": 1}]
        assert len(triggering_asset_events["s3://b/a"]) == len(triggering_asset_events[Asset.ref(name="a")]) == 1
        assert [one.name for one in triggering_asset_events[X]] == ["b"]
        assert len(triggering_asset_events.for_asset(name="a")) == 1
        assert len(triggering_asset_events.for_asset(name="a", uri="s3://b/a")) == 1
        assert [one.name for one in triggering_asset_events.for_asset_alias(name="x")] == ["b"]
        assert Asset("z") not in triggering_asset_events
        assert list(triggering_asset_events[Asset("z")]) == list(triggering_asset_events[AssetAlias("z")]) == []
        with pytest.raises(KeyError, match="'z' is not among the assets"):
            triggering_asset_events["z"]
        assert len(dag_run.consumed_asset_events) == 2
        return sorted(triggering_dataset_events)

    found = result_of(work, run_type=RunType.ASSET_TRIGGERED, at=None)
    assert found.reason is None
    assert pushed(found)["return_value"] == ["s3://b/a", "s3://b/b"]


def test_templates_read_them_as_airflows_documentation_writes_it(store: MemoryStore) -> None:
    template = "{{ (triggering_asset_events.values() | first | first).source_dag_run.data_interval_start | ds }}"
    with DAG("c"):
        made = PythonOperator(task_id="t", python_callable=lambda day: day, op_kwargs={"day": template})
    found = carry_out(made, run_type=RunType.ASSET_TRIGGERED, at=None)
    assert pushed(found) == {"return_value": "2023-11-17"}


def test_a_run_that_nothing_triggered_asks_nobody() -> None:
    def work(triggering_asset_events: Any) -> int:
        return len(triggering_asset_events)

    found = result_of(work)
    assert pushed(found) == {"return_value": 0}


def test_the_function_of_an_asset_is_given_assets(store: MemoryStore) -> None:
    @asset(schedule=None)
    def made(self: Asset, context: Any, a: Asset, outlet_events: Any, limit: int = 2) -> list[Any]:
        outlet_events[self].extra = {"from": a.uri}
        return [self.name, context["run_id"], a.uri, limit]

    found = carry_out(made.dag.task_dict["made"])
    assert found.reason is None
    assert pushed(found) == {"return_value": ["made", "r1", "s3://b/a", 2]}
    assert found.assets == (AssetUpdate("made", "made", extra=b'{"from": "s3://b/a"}'),)


def test_an_asset_that_nobody_knows_fails_the_function_of_an_asset(world: World) -> None:
    @asset(schedule=None)
    def made(nowhere: Asset) -> None: ...

    assert "there is no asset 'nowhere'" in (carry_out(made.dag.task_dict["made"]).reason or "")


def test_a_dag_that_is_tried_alone_knows_the_assets_of_others_by_name(store: MemoryStore) -> None:
    @asset(schedule=None)
    def made(elsewhere: Asset) -> str:
        return elsewhere.uri

    assert pushed(carry_out(made.dag.task_dict["made"])) == {"return_value": "elsewhere"}


def test_a_decorated_task_has_outlets_too() -> None:
    with DAG("d") as dag:

        @task(outlets=[A])
        def work() -> Iterator[Metadata]:
            yield Metadata(A, {"n": 1})

        work()
    assert carry_out(dag.task_dict["work"]).assets == (plain("a", b'{"n": 1}'),)
