"""An installation with at least one object of each kind, so that no answer of the API is an empty list."""

from __future__ import annotations

from typing import Any

from tests.unit.api.conftest import World
from tests.unit.api.page_world import register, set_states
from tradewind.kernel.run_summary import RunSummary, encode_summary
from tradewind.model.accounts import TeamDags
from tradewind.model.assets import AllOf, AssetKey, AssetSchedule, AssetUse
from tradewind.model.definition import (
    CronSchedule,
    DagDefinition,
    GroupDefinition,
    MapLiteral,
    ParamDefinition,
    TaskDefinition,
)
from tradewind.model.moments import MINUTE, SECOND
from tradewind.model.rows import ImportProblem, NewAssetEvent, NewJob, ParsedFile, RunRow
from tradewind.model.states import RunState, TaskState
from tradewind.wire.messages import Call, Workload, encode

S = TaskState


def asset_of(suffix: str) -> AssetKey:
    return AssetKey(f"orders{suffix}", f"s3://lake/orders{suffix}", "asset", b'{"team": "ops"}')


def sales(suffix: str) -> DagDefinition:
    return DagDefinition(
        f"sales{suffix}",
        tasks=(
            TaskDefinition("t0", retries=2, operator="BashOperator", doc="Reads *orders*."),
            TaskDefinition("g.t1", upstream=("t0",), group="g"),
            TaskDefinition("many", upstream=("g.t1",), mapped=True, expand=(MapLiteral(2),)),
            TaskDefinition("ask", upstream=("t0",)),
        ),
        groups=(GroupDefinition("g", tooltip="the first part"),),
        tags=(f"money{suffix}",),
        doc_md="# Sales",
        params=(ParamDefinition("day", default="monday", schema={"type": "string"}),),
        schedule=CronSchedule(("0 6 * * *",)),
        asset_uses=(AssetUse("t0", "outlet", asset_of(suffix)),),
    )


def fill(world: World, suffix: str = "") -> dict[str, Any]:
    """Add one object of each kind. Returns a value for each path parameter that names an object.

    Args:
        suffix: suffix of the names, to add the same objects again.
    """
    sales_id, orders = f"sales{suffix}", asset_of(suffix)
    register(world, sales(suffix))
    register(world, DagDefinition(f"report{suffix}", (TaskDefinition("t0"),), assets=AssetSchedule(AllOf((orders,)))))
    run = _add_runs(world, sales_id)
    item = _add_the_rest(world, suffix, run)
    return _values(world, suffix, item, _post(world, suffix))


def _add_runs(world: World, sales_id: str) -> RunRow:
    """Add a run that has ended, and a run that has not ended. Returns the second."""
    now = world.clock.wall()
    before = world.run(sales_id, "r0", run_after=now - MINUTE)
    run = world.run(sales_id, "r1", user="ada", run_after=now, conf={"day": "friday"}, note="by hand")
    engine = world.store.engine
    both = (before.id, run.id)
    with engine.transaction():
        engine.run("UPDATE task_instance SET map_index = 0 WHERE task_id = 'many' AND slot = 2 AND run IN (?, ?)", both)
        for one in both:
            engine.run("INSERT INTO task_instance (run, slot, task_id, map_index) VALUES (?, 4, 'many', 1)", (one,))
        engine.run("UPDATE dag_run SET rows_created = 5, task_count = 5, logical_date = run_after WHERE id IN (?, ?)", both)
    set_states(world, before, (S.SUCCESS, S.SUCCESS, S.SUCCESS, S.SUCCESS, S.SUCCESS), RunState.SUCCESS)
    set_states(world, run, (S.FAILED, S.UPSTREAM_FAILED, S.SUCCESS, S.AWAITING_INPUT, S.RUNNING))
    code = S.SUCCESS.code
    with engine.transaction():
        engine.run(
            """UPDATE task_instance SET try_number = 1, max_tries = 2, fence = 2, queued_at = ?, started_at = ?
               WHERE run IN (?, ?)""",
            (now, now + SECOND, *both),
        )
        engine.run(
            "UPDATE task_instance SET ended_at = ?, reason = 'KeyError: sku' WHERE state = ? AND run IN (?, ?)",
            (now + MINUTE, S.FAILED.code, *both),
        )
        engine.run(
            """INSERT INTO attempt (run, slot, fence, try_number, executor, host, hostname, pid, queued_at, started_at, ended_at,
               outcome, reason) SELECT run, slot, 1, 1, 'local', 'host', 'box', 4000, queued_at, started_at, ?, 'failed', 'x'
               FROM task_instance WHERE run IN (?, ?)""",
            (now + MINUTE, *both),
        )
        engine.run(
            """INSERT INTO hitl_detail (run, slot, try_number, fence, created_at, subject, body, options, defaults, multiple,
               params, assigned_users) VALUES (?, 3, 1, 1, ?, 'Ship it?', 'Look.', '["Approve", "Reject"]', NULL, 0, '{}', '[]')""",
            (run.id, now),
        )
        summary = RunSummary(run.version, (4, code), ((code, 5),), {2: ((code, 2),)})
        engine.run("DELETE FROM run_summary WHERE run IN (?, ?)", both)
        engine.run(
            "INSERT INTO run_summary SELECT id, journal_seq, ? FROM dag_run WHERE id = ?", (encode_summary(summary), before.id)
        )
    return run


def _add_the_rest(world: World, suffix: str, run: RunRow) -> int:
    """Add all other objects. Returns the number of a callback."""
    now, sales_id, orders = world.clock.wall(), f"sales{suffix}", asset_of(suffix)
    event = NewAssetEvent(
        orders.name, orders.uri, orders.group, b'{"rows": 3}', now, None, (f"x{suffix}",), sales_id, "r0", "t0"
    )
    world.store.record_asset_events([event])
    work = Workload(run.id, 0, 1, sales_id, "t0", "r1", call=Call("on_failure_callback", 1))
    world.store.add_outbox_item("callback", f"one{suffix}", encode(work), now, run=run.id, slot=0)
    (item,) = (one for one in world.store.outbox_items() if one.identity == f"one{suffix}")
    world.store.postpone_outbox_item(item.id, now, "parked", "ValueError: away")
    problem = ImportProblem("SyntaxError: invalid syntax", 'File "bad.py", line 7', 7)
    world.store.register_file(ParsedFile("dags", f"bad{suffix}.py", "h", (), problem, 0, False, 1), paused_at_creation=True)
    world.store.begin_job(NewJob(f"a{suffix}", "SchedulerJob", "box", "ada", 7, "LocalExecutor"), now)
    world.store.set_plugins('[{"name": "ours", "source": "$PLUGINS_FOLDER/ours.py", "macros": ["ours.double"]}]')
    world.accounts.create_role(f"guests{suffix}", "", at=now, actor="test")
    world.accounts.set_grants(f"guests{suffix}", [(sales_id, "read")], at=now, actor="test")
    world.accounts.create_team(f"finance{suffix}", "", at=now, actor="test")
    world.accounts.assign_dags(TeamDags(f"finance{suffix}", "dag", f"report{suffix}"), at=now, actor="test")

    return item.id


def _post(world: World, suffix: str) -> dict[str, Any]:
    """Add objects by requests to the API that cannot be added with one operation of the store. Returns the ids of a backfill
    and of a token.
    """
    sales_id = f"sales{suffix}"

    def post(path: str, body: Any) -> Any:
        answer = world.request("POST", f"/api/v2/{path}", json=body)
        assert answer.status_code in (200, 201, 204), answer.text
        return answer.json() if answer.content else None

    post("variables", {"key": f"region{suffix}", "value": {"a": 1, "password": "hunter2"}, "description": "d"})
    post(
        "connections",
        {"connection_id": f"warehouse{suffix}", "conn_type": "postgres", "host": "db", "port": 5432, "extra": '{"a": 1}'},
    )
    post("pools", {"name": f"small{suffix}", "slots": 2, "description": "d"})
    post(f"dags/{sales_id}/dagRuns/r1/taskInstances/t0/xcomEntries", {"key": "k", "value": {"a": [1]}})
    post(f"dags/{sales_id}/favorite", None)
    asset = world.json(f"/api/v2/assets?name_pattern=orders{suffix}")["assets"][0]["id"]
    for path in (f"dags/{sales_id}/dagRuns/r1/taskInstances/t0", f"assets/{asset}"):
        answer = world.request("PUT", f"/api/v2/{path}/state-store/k", json={"value": {"a": [1], "password": "hunter2"}})
        assert answer.status_code == 204, answer.text
    backfill = post("backfills", {"dag_id": sales_id, "from_date": "2025-01-01T00:00:00Z", "to_date": "2025-01-02T00:00:00Z"})
    made = world.request("POST", "/api/tradewind/v1/me/tokens", json={"label": "cli"}).json()
    return {"backfill_id": backfill["id"], "token_id": made["info"]["id"]}


def _values(world: World, suffix: str, callback: int, posted: dict[str, Any]) -> dict[str, Any]:
    asset = world.json(f"/api/v2/assets?name_pattern=orders{suffix}")["assets"][0]
    return {
        "dag_id": "sales",
        "dag_run_id": "r1",
        "run_id": "r1",
        "task_id": "t0",
        "task_instance_id": "t0",
        "group_id": "g",
        "task_group_id": "g",
        "map_index": -1,
        "try_number": 1,
        "task_try_number": 1,
        "version_number": 1,
        "xcom_key": "k",
        "key": "k",
        "variable_key": "region",
        "connection_id": "warehouse",
        "pool_name": "small",
        "asset_id": asset["id"],
        "asset_alias_id": 1,
        "callback_id": callback,
        "import_error_id": world.json("/api/v2/importErrors")["import_errors"][0]["import_error_id"],
        "event_log_id": world.json("/api/v2/eventLogs?limit=1")["event_logs"][0]["event_log_id"],
        "file_token": world.json("/api/v2/dags/sales")["file_token"],
        "section": "core",
        "option": "parallelism",
        **posted,
        "session_id": "none",
        "username": "viewer",
        "role": "guests",
        "team": "finance",
    }
