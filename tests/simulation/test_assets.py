"""Assets in the simulated world."""

from __future__ import annotations

from tradewind.model.assets import AllOf, AssetKey, AssetSchedule, AssetUse
from tradewind.model.definition import DagDefinition, TaskDefinition
from tradewind.model.moments import HOUR, MINUTE, SECOND
from tradewind.testing.world.faults import CALM
from tradewind.testing.world.life import World
from tradewind.testing.world.workload import Habit, Plan

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


def test_a_run_takes_what_came_since_the_last_one_when_all_its_assets_were_updated() -> None:
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
        args = {"dag_id": dag_id, "run_id": f"r{minutes}", "logical_date": history.clock.wall() + at}
        history.timeline.at(at, None, lambda args=args: history.operator.say("trigger", **args))  # type: ignore[misc]
    history.run()
    assert history.violations == []
    runs = [row.started_at for row in history.checks.shadow.runs.values() if row.kind == "asset_triggered"]
    began = [((at or 0) - history.clock.wall() + history.timeline.now) // MINUTE for at in runs]
    assert began == [15, 25]
    assert history.timeline.now >= HOUR
