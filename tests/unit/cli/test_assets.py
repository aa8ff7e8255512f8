"""`tradewind assets …` without a scheduler."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run, carry_out
from tradewind.cli.common import command_client
from tradewind.cli.compose.bundles import DAGS_BUNDLE
from tradewind.cli.compose.commands_without_scheduler import open_commands
from tradewind.model.assets import AliasKey, AllOf, AssetKey, AssetSchedule, AssetUse
from tradewind.model.definition import DagDefinition, TaskDefinition, encode_definition, version_hash
from tradewind.model.rows import NewRun
from tradewind.model.states import RunType
from tradewind.settings import load
from tradewind.wire.commands import CreateAssetEvent, CreateAssetEventResult

A, B = AssetKey("orders", "s3://shop/orders"), AssetKey("prices", "s3://shop/prices")


@pytest.fixture
def assets(home: Path) -> Path:
    """`load` produces orders; `report` is scheduled on orders and prices, `audit` on an alias; prices has two URIs."""
    tasks = (TaskDefinition("t"),)
    odd = AssetUse("t", "inlet", AssetKey("prices", "s3://old/prices"))
    dags = (
        DagDefinition("load", tasks, asset_uses=(AssetUse("t", "outlet", A), odd), is_paused_upon_creation=False),
        DagDefinition("report", tasks, assets=AssetSchedule(AllOf((A, B))), is_paused_upon_creation=False),
        DagDefinition("audit", tasks, assets=AssetSchedule(AliasKey("files")), is_paused_upon_creation=False),
    )
    settings = load()
    settings.paths.prepare()
    store, commands = open_commands(settings)
    try:
        for made in dags:
            data = encode_definition(made)
            file = {"bundle": DAGS_BUNDLE, "file": f"{made.dag_id}.py", "file_hash": "x", "duration": 1, "at": 1}
            carry_out(commands, "register_file", {**file, "dags": [[made.dag_id, data, version_hash(data)]]})
    finally:
        store.close()
    return home


def test_assets_are_listed_with_their_conflicts(run: Run, assets: Path) -> None:
    done = run("assets", "list", "-o", "json")
    rows = {(row["name"], row["uri"]): row for row in json.loads(done.stdout)}
    assert rows["orders", "s3://shop/orders"]["produced_by"] == ["load.t"]
    assert rows["orders", "s3://shop/orders"]["schedules"] == ["report"]
    assert rows["prices", "s3://old/prices"]["read_by"] == ["load.t"]
    assert "DAG load names 'prices' with the URI 's3://old/prices'" in done.stderr
    assert [row["name"] for row in json.loads(run("assets", "list", "--alias", "-o", "json").stdout)] == ["files"]


def test_an_asset_name_can_be_an_argument(run: Run, assets: Path) -> None:
    assert run("assets", "create-event", "orders").stdout.startswith("Event 1: asset orders was updated.")
    assert "DAG load was triggered" in run("assets", "materialize", "orders").stdout
    assert json.loads(run("assets", "details", "orders", "-o", "json").stdout)["uri"] == "s3://shop/orders"
    assert (
        "two different names are given: orders and --name prices"
        in run("assets", "create-event", "orders", "--name", "prices").stderr
    )
    assert "no asset is given; give its name or --uri" in run("assets", "materialize").stderr


def test_create_event_prints_the_run_that_it_has_started(run: Run, assets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler consumes the last missing event at once."""

    class Client:
        offline = False

        def call(self, command: CreateAssetEvent) -> CreateAssetEventResult:
            event = command_client().call(command)
            store, _ = open_commands(load())
            version = store.need_dag("report").version
            new = NewRun("report", "began", RunType.ASSET_TRIGGERED, version, None, None, None, 6, 6, "asset")
            store.create_asset_run(new, event.id)
            store.close()
            return event

    monkeypatch.setattr("tradewind.cli.commands.assets.command_client", Client)
    done = run("assets", "create-event", "orders")
    assert done.stdout == "Event 1: asset orders was updated.\n  DAG report: its run began was created\n", done.stderr


def test_create_event_prints_the_missing_updates(run: Run, assets: Path) -> None:
    done = run("assets", "create-event", "--name", "orders", "--extra", '{"rows": 3}')
    assert done.exit_code == 0, done.stderr
    assert done.stdout == ("Event 1: asset orders was updated.\n  DAG report: 1 of 2 assets updated; missing: prices\n")
    assert "No scheduler is running" in done.stderr
    (event,) = json.loads(run("assets", "events", "-o", "json").stdout)
    assert (event["name"], event["extra"], event["began"]) == ("orders", {"rows": 3}, [])
    found = json.loads(run("assets", "details", "--uri", "s3://shop/orders", "-o", "json").stdout)
    assert found["waiting"] == ["report: 1 of 2 assets updated; missing: prices"]
    queued = {row["dag_id"]: row for row in json.loads(run("assets", "queued", "-o", "json").stdout)}
    assert queued["report"]["updated"] == ["orders"]
    assert queued["audit"]["waits_for"] == "0 of 1 asset updated; missing: alias files"
    details = json.loads(run("dags", "details", "report", "-o", "json").stdout)
    assert details["waits_for"] == "1 of 2 assets updated; missing: prices"
    assert "runs when assets are updated: 1 of 2" in run("dags", "next-execution", "report").stderr
    assert "missing: prices" in run("why", "report", "t").stdout


def test_clear_queued_deletes_queued_events(run: Run, assets: Path) -> None:
    run("assets", "create-event", "--name", "orders")
    assert run("assets", "clear-queued", "report", input="n\n").exit_code == 1
    done = run("assets", "clear-queued", "report", "--name", "orders", "-y")
    assert done.stdout == "The queued asset events of DAG report for asset orders are deleted.\n"
    assert "no event waits for DAG report" in run("assets", "clear-queued", "report", "-y").stderr


def test_materialize_triggers_the_producer(run: Run, assets: Path) -> None:
    done = run("assets", "materialize", "--name", "orders", "-o", "json")
    assert done.exit_code == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["dag_id"] == "load"
    assert made["run_id"].startswith("asset_materialization__")
    assert "no DAG produces the asset 'prices'" in run("assets", "materialize", "--uri", "s3://shop/prices").stderr


def test_wrong_arguments_give_an_error(run: Run, assets: Path) -> None:
    assert run("assets", "materialize").exit_code == 2
    assert "Did you mean 'orders'" in run("assets", "details", "--name", "ordres").stderr
    assert run("assets", "create-event", "--name", "orders", "--extra", "{").exit_code == 2
    assert (
        "there is no asset alias 'fils'. Did you mean 'files'?" in run("assets", "details", "--name", "fils", "--alias").stderr
    )
    shown = json.loads(run("dags", "show-dependencies", "-o", "json").stdout)
    assert [(row["source"], row["target"], row["dependency_type"]) for row in shown] == [("load", "report", "asset")]
