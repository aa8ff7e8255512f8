"""Assets in the simulation."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import pytest

from tradewind.model.assets import AliasKey, AllOf, AssetKey, AssetSchedule, AssetUse
from tradewind.model.definition import DagDefinition, TaskDefinition
from tradewind.model.moments import HOUR, MINUTE, SECOND
from tradewind.simulation.faults import CALM
from tradewind.simulation.timeline import START
from tradewind.simulation.workload import Habit, Plan
from tradewind.simulation.world import World

A, B = AssetKey("a", "x://a"), AssetKey("b", "x://b")


def plan(dag_id: str, *uses: AssetUse, assets: AssetSchedule | None = None) -> Plan:
    definition = DagDefinition(
        dag_id,
        tasks=(TaskDefinition("t"),),
        is_paused_upon_creation=False,
        fileloc=f"{dag_id}.py",
        asset_uses=uses,
        assets=assets,
        max_active_runs=1,
    )
    return Plan(definition, {"t": Habit("plain", SECOND, 0, 0, 0)}, 0)


def test_a_run_takes_all_events_since_the_last_run_when_all_assets_are_updated() -> None:
    plans = [
        plan("makes_a", AssetUse("t", "outlet", A)),
        plan("makes_b", AssetUse("t", "outlet", B)),
        plan("takes", assets=AssetSchedule(AllOf((A, B)))),
    ]
    history = World(1, plans=plans, profile=CALM, hours=1)
    for minutes, dag_id in (
        (5, "makes_a"),
        (10, "makes_a"),
        (15, "makes_b"),
        (20, "makes_b"),
        (25, "makes_a"),
        (30, "makes_a"),
    ):
        at = minutes * MINUTE
        args: dict[str, Any] = {"dag_id": dag_id, "run_id": f"r{minutes}", "logical_date": history.clock.wall() + at}
        history.timeline.at(at, None, partial(history.operator.send, "trigger", **args))
    history.run()
    assert history.violations == []
    runs = [row.started_at for row in history.checks.shadow.runs.values() if row.kind == "asset_triggered"]
    began = [((at or 0) - history.clock.wall() + history.timeline.now) // MINUTE for at in runs]
    assert began == [15, 25]
    assert history.timeline.now >= HOUR


def test_events_of_users_count_once_and_discarded_events_do_not_count() -> None:
    """A has two events and B has one; the first event of A is discarded before the second one."""
    plans = [plan("makes_a", AssetUse("t", "outlet", A)), plan("takes", assets=AssetSchedule(AllOf((A, B))))]
    history = World(1, plans=plans, profile=CALM, hours=1)

    def send(minutes: int, command: str, **args: Any) -> None:
        history.timeline.at(minutes * MINUTE, None, lambda: history.operator.send(command, **args))

    send(5, "create_asset_event", name="a", extra={"said": 1})
    send(10, "drop_queued_events", dag_id="takes")
    send(15, "create_asset_event", uri="x://b", extra={"said": 2})
    send(20, "create_asset_event", name="a", extra={"said": 3})
    history.run()
    assert history.violations == []
    runs = [row for row in history.checks.shadow.runs.values() if row.kind == "asset_triggered"]
    assert [(run.run_after - START) // MINUTE for run in runs] == [20]
    assert history.timeline.sometimes["a person dismissed what waited"] == 1


def test_events_under_an_alias_reach_the_dags_that_wait_for_it_from_then_on() -> None:
    """No DAG waits for the asset by its name. A user creates the last event, without an alias."""
    asset, alias = AssetKey("a0", "x://a0"), AliasKey("found")
    plans = [plan("makes", AssetUse("t", "outlet", alias)), plan("takes", assets=AssetSchedule(alias))]
    history = World(1, plans=plans, profile=CALM, hours=1)
    history.asset_workload.under = {"found": (asset,)}
    for number in range(6):
        args: dict[str, Any] = {"dag_id": "makes", "run_id": f"r{number}"}
        at = (5 + number) * MINUTE
        history.timeline.at(at, None, partial(history.operator.send, "trigger", **args))
    history.timeline.at(30 * MINUTE, None, lambda: history.operator.send("create_asset_event", name="a0", extra={"said": 1}))
    history.run()
    assert history.violations == []
    seen = history.timeline.sometimes
    assert seen["an asset was updated under an alias"] > 2
    assert seen["a DAG that waits for an alias is told of an asset that came under it before"] == 1
    assert seen["a run was made for what came under an alias"] == seen["an asset was updated under an alias"] + 1


def test_an_event_that_differs_from_its_command_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event has another `extra` than the command."""
    monkeypatch.setattr(msgspec.json, "encode", lambda value: b'{"said":9}')
    history = World(1, plans=[plan("makes_a", AssetUse("t", "outlet", A))], profile=CALM, hours=1)
    history.timeline.at(5 * MINUTE, None, lambda: history.operator.send("create_asset_event", name="a", extra={"said": 1}))
    assert [found.rule for found in history.run().violations] == ["45 assets"]
