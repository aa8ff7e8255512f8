"""Assets in DAG files: names, URIs, conditions, schedules, outlets, `@asset`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

import tradewind
from tests.unit.sdk.test_definition import define
from tradewind import (
    DAG,
    Asset,
    AssetAlias,
    AssetAll,
    AssetAny,
    AssetOrTimeSchedule,
    AssetWatcher,
    Dataset,
    Model,
    Param,
    asset,
    task,
)
from tradewind.model.assets import AliasKey, AllOf, AnyOf, AssetKey, AssetUse, AssetWatch, Update, progress, watcher_number
from tradewind.model.definition import CronSchedule, NoSchedule, decode_definition, encode_definition
from tradewind.model.errors import DefinitionError, UnknownArgument
from tradewind.model.waits import TriggerWait
from tradewind.sdk.exceptions import ParamValidationError
from tradewind.sdk.operator import BaseOperator
from tradewind.triggers.base import BaseEventTrigger
from tradewind.triggers.file import FileDeleteTrigger, FileTrigger

A, B, C = Asset("a"), Asset("b"), Asset("c")
KA, KB, KC = AssetKey("a", "a"), AssetKey("b", "b"), AssetKey("c", "c")


def test_an_asset_has_a_name_and_a_uri() -> None:
    assert (Asset("x").name, Asset("x").uri) == ("x", "x")
    assert (Asset(uri="s3://b/k/").name, Asset(uri="s3://b/k/").uri) == ("s3://b/k", "s3://b/k")
    both = Asset("x", "s3://b/k", group="g", extra={"team": "ops"})
    assert both.condition() == AssetKey("x", "s3://b/k", "g", b'{"team": "ops"}')
    assert both == Asset("x", "s3://b/k") != Asset("x")
    assert {both: 1}[Asset("x", "s3://b/k")] == 1
    assert Model("m").group == "model"


def test_a_dataset_is_airflow_2s_asset() -> None:
    old = Dataset("s3://b/k/", extra={"a": 1})
    assert (old.name, old.uri, old.group, old.extra) == ("s3://b/k", "s3://b/k", "dataset", {"a": 1})
    assert Dataset("s3://b/k", {"a": 1}).extra == {"a": 1}
    assert old == Asset(uri="s3://b/k")
    assert tradewind.DatasetAlias is AssetAlias


@pytest.mark.parametrize(
    ("written", "uri"),
    [
        ("s3://bucket/key/", "s3://bucket/key"),
        ("S3://bucket/key#part", "s3://bucket/key"),
        ("gcs://bucket/key", "gs://bucket/key"),
        ("postgresql://host/db/table", "postgres://host:5432/db/default/table"),
        ("mysql://host/db/table", "mysql://host:3306/db/table"),
        ("http://h/p?b=2&a=1", "http://h/p?a=1&b=2"),
        ("x-mine://ANY thing", "x-mine://ANY thing"),
        ("plain name", "plain name"),
        ("file:///data/x/", "file:///data/x"),
    ],
)
def test_uris_are_normalized(written: str, uri: str) -> None:
    assert Asset("n", written).uri == uri


def test_a_password_in_a_uri_is_removed_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="of host contains a user or password"):
        assert Asset("n", "trino://me:secret@host/a/b/c").uri == "trino://host:8080/a/b/c"


def test_a_uri_that_is_invalid_for_its_scheme_is_kept_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="the path must have 2 names"):
        assert Asset("n", "bigquery://p/only").uri == "bigquery://p/only"


def test_names_may_have_letters_of_every_language() -> None:
    """Airflow refuses them only if its database is MySQL."""
    assert Asset("Größe").name == "Größe"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "needs a name or a uri"),
        ({"name": " "}, "Asset name is empty"),
        ({"name": "n", "uri": ""}, "Asset URI is empty"),
        ({"name": "n" * 1501}, "it has 1501"),
        ({"uri": "airflow://x"}, "reserved"),
        ({"name": 7}, "must be a string"),
        ({"name": "n", "extra": {"a": object()}}, "must be a JSON object"),
    ],
)
def test_invalid_assets_are_errors(arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(DefinitionError, match=why):
        Asset(**arguments)


@pytest.mark.parametrize(
    ("schedule", "condition", "summary"),
    [
        (A, KA, "Asset"),
        ([A], AllOf((KA,)), "Asset"),
        ([A, B], AllOf((KA, KB)), "Asset"),
        ((A, B), AllOf((KA, KB)), "Asset"),
        (A & B, AllOf((KA, KB)), "Asset"),
        (A | B | C, AnyOf((KA, KB, KC)), "Asset"),
        (A & (B | C), AllOf((KA, AnyOf((KB, KC)))), "Asset"),
        (AssetAny(A, AssetAll(B, C)), AnyOf((KA, AllOf((KB, KC)))), "Asset"),
        (AssetAlias("x"), AliasKey("x"), "Asset"),
        (Asset.ref(name="a") | Asset.ref(uri="s3://b/k/"), AnyOf((AssetKey("a"), AssetKey(uri="s3://b/k"))), "Asset"),
        (AssetOrTimeSchedule(timetable="@daily", assets=[A, B]), AllOf((KA, KB)), "Asset or @daily"),
    ],
)
def test_a_schedule_of_assets(schedule: Any, condition: Any, summary: str) -> None:
    with DAG("d", schedule=schedule) as dag:
        BaseOperator("t")
    definition = define(dag)
    assert definition.assets is not None
    assert definition.assets.condition == condition
    assert definition.schedule_summary == summary
    by_time = isinstance(schedule, AssetOrTimeSchedule)
    assert isinstance(definition.schedule, CronSchedule if by_time else NoSchedule)
    assert decode_definition(encode_definition(definition)) == definition


@pytest.mark.parametrize(
    ("schedule", "why"),
    [
        ([A, "b"], "may contain only assets"),
        (["@daily"], "may contain only assets"),
        (7, "schedule=7 is a int"),
    ],
)
def test_invalid_schedules_of_assets_are_errors(schedule: Any, why: str) -> None:
    def write() -> None:
        with DAG("d", schedule=schedule) as dag:
            BaseOperator("t")
        define(dag)

    with pytest.raises(DefinitionError, match=why):
        write()


def test_conditions_combine_only_assets() -> None:
    with pytest.raises(TypeError):
        A & "b"
    with pytest.raises(DefinitionError, match="accepts only assets and aliases"):
        AssetAll(A, "b")  # type: ignore[arg-type]


def test_asset_expressions_have_airflows_format() -> None:
    assert (A & (B | AssetAlias("x"))).as_expression() == {
        "all": [
            {"asset": {"uri": "a", "name": "a", "group": "asset"}},
            {"any": [{"asset": {"uri": "b", "name": "b", "group": "asset"}}, {"alias": {"name": "x", "group": "asset"}}]},
        ]
    }
    assert (Asset.ref(name="a") | Asset.ref(uri="s3://b/c")).as_expression() == {
        "any": [{"asset_ref": {"name": "a"}}, {"asset_ref": {"uri": "s3://b/c"}}]
    }
    assert [key for key, _ in (A & (B | C)).iter_assets()] == [("a", "a"), ("b", "b"), ("c", "c")]


def test_outlets_and_inlets_are_in_the_definition() -> None:
    with DAG("d") as dag:

        @task(outlets=[A, AssetAlias("x")], inlets=[B, "text"])
        def work() -> None: ...

        work()
        BaseOperator("plain")
    assert define(dag).asset_uses == (
        AssetUse("work", "outlet", KA),
        AssetUse("work", "outlet", AliasKey("x")),
        AssetUse("work", "inlet", KB),
    )


def test_one_name_has_one_uri_in_a_dag() -> None:
    with DAG("d", schedule=Asset("x", "s3://b/1")) as dag:
        BaseOperator("t", outlets=[Asset("x", "s3://b/2")])
    with pytest.raises(DefinitionError, match=r"DAG 'd' .*the asset name 'x' is used for 's3://b/1' and for 's3://b/2'"):
        define(dag)
    with DAG("e", schedule=Asset("x", "s3://b/1")) as dag:
        BaseOperator("t", outlets=[Asset("y", "s3://b/1")])
    with pytest.raises(DefinitionError, match="the asset URI 's3://b/1' is used with the names 'x' and 'y'"):
        define(dag)


def test_a_dag_that_assets_start_needs_defaults_for_its_params() -> None:
    with DAG("d", schedule=A, params={"p": Param(type="string")}) as dag:
        BaseOperator("t")
    with pytest.raises(ParamValidationError, match="the DAG has a schedule, so its parameters need defaults"):
        define(dag)


def test_asset_or_time_schedule_accepts_any_time_schedule() -> None:
    with DAG("d", schedule=AssetOrTimeSchedule(timetable=timedelta(hours=1), datasets=A)) as dag:
        BaseOperator("t")
    assert define(dag).schedule.__class__.__name__ == "DeltaSchedule"
    with pytest.raises(DefinitionError, match="must not contain assets"):
        DAG("e", schedule=AssetOrTimeSchedule(timetable=A, assets=B))
    with pytest.raises(DefinitionError, match="needs a timetable and assets"):
        AssetOrTimeSchedule(timetable="@daily")


def test_the_asset_decorator_creates_a_dag_with_one_task() -> None:
    @asset(schedule="@daily", uri="s3://b/orders", group="sales", tags=["x"])
    def orders(self: Asset, context: Any, prices: Asset, limit: int = 3) -> None:
        """All orders."""

    assert (orders.name, orders.uri, orders.group) == ("orders", "s3://b/orders", "sales")
    definition = define(orders.dag)
    assert (definition.dag_id, definition.doc_md, definition.tags) == ("orders", "All orders.", ("x",))
    key = AssetKey("orders", "s3://b/orders", "sales")
    assert definition.asset_uses == (AssetUse("orders", "outlet", key), AssetUse("orders", "inlet", AssetKey("prices")))
    assert [one.task_id for one in definition.tasks] == ["orders"]

    @asset(schedule=orders | A)
    def report(ti: Any) -> None: ...

    assert define(report.dag).assets is not None


def test_one_function_can_produce_several_assets() -> None:
    @asset.multi(schedule=None, outlets=[A, B], dag_id="pair")
    def both() -> None: ...

    assert define(both.dag).asset_uses == (AssetUse("both", "outlet", KA), AssetUse("both", "outlet", KB))
    assert both.dag.dag_id == "pair"
    assert both.condition() == AllOf((KA, KB))


def test_the_asset_decorator_rejects_unknown_arguments() -> None:
    with pytest.raises(UnknownArgument, match=r"@asset takes no argument 'shedule'. Did you mean 'schedule'\?"):
        asset(shedule="@daily")
    with pytest.raises(DefinitionError, match="can decorate only a function"):
        asset(schedule=None)(7)
    with pytest.raises(DefinitionError, match=r"write @asset\(schedule=...\)"):
        asset(lambda: None)


def test_progress_of_a_condition_is_described() -> None:
    condition = (A & (B | (C & AssetAlias("x")))).condition()
    assert progress(condition, []) == "0 of 4 assets updated; missing: a and (b or (c and alias x))"
    assert progress(condition, [Update("a", "a", frozenset())]) == "1 of 4 assets updated; missing: b or (c and alias x)"
    assert progress(condition, [Update("a", "a", frozenset()), Update("b", "b", frozenset())]) == "2 of 4 assets updated"


def test_access_control_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="there are no teams"):
        Asset("x", access_control=object())


def test_watchers_of_scheduled_assets_are_part_of_the_definition() -> None:
    watcher = AssetWatcher(name="w", trigger=FileDeleteTrigger("/in/x", poke_interval=2.0))
    watched = Asset("x", watchers=[watcher])
    definition = define(DAG("d", schedule=(watched & Asset("y")) | watched))
    kwargs = b'{"filepath":"/in/x","poke_interval":2.0}'
    trigger = TriggerWait("tradewind.triggers.file.FileDeleteTrigger", kwargs)
    assert definition.assets is not None
    assert definition.assets.watchers == (AssetWatch("w", "x", "x", trigger),)
    assert watcher_number("dags", trigger) == watcher_number("dags", trigger) != watcher_number("other", trigger)


def test_a_watcher_needs_an_event_trigger_that_can_be_stored() -> None:
    class Local(BaseEventTrigger):
        def serialize(self) -> tuple[str, dict[str, Any]]:
            return "m.Local", {"lock": object()}

    with pytest.raises(DefinitionError, match="it must be a BaseEventTrigger"):
        AssetWatcher(name="w", trigger=FileTrigger("/x"))
    with pytest.raises(DefinitionError, match="watchers contains 'w'; it must be an AssetWatcher"):
        define(DAG("d", schedule=Asset("x", watchers=["w"])))
    with pytest.raises(DefinitionError, match="the watcher 'w' cannot run in the triggerer"):
        define(DAG("d", schedule=Asset("x", watchers=[AssetWatcher(name="w", trigger=Local())])))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (Asset, TypeError),
        (Asset.ref, TypeError),
        (lambda: Asset.ref(name="a", uri="b"), TypeError),
        (lambda: AssetAll(A, "x"), TypeError),  # type: ignore[arg-type]
        (lambda: Asset("a", "airflow://x"), ValueError),
        (lambda: Asset(" "), ValueError),
    ],
)
def test_errors_have_airflows_classes_too(make: Callable[[], object], kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        make()
    assert isinstance(caught.value, DefinitionError)


def test_a_subclass_with_fields_of_its_own_gives_its_uri_without_init() -> None:
    """Table of astro-sdk-python is an attrs class that sets the fields of Airflow's Dataset itself."""
    uri = "astro://db@?table=x"

    class Table(Dataset):
        def __init__(self, table: str) -> None:  # does not call super().__init__
            self.uri, self.extra = f"astro://db@?table={table}", {}

    with DAG("d", schedule=None) as dag:

        @task(outlets=[Table("x")])
        def load() -> None: ...

        load()
    assert define(dag).asset_uses == (AssetUse("load", "outlet", AssetKey(uri, uri, "dataset")),)
