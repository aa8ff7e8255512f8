"""Lists: fields, filters, pages, and that old data does not slow them down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tradewind.model.definition import (
    CronSchedule,
    DagDefinition,
    ParamDefinition,
    TaskDefinition,
    encode_definition,
    version_hash,
)
from tradewind.model.errors import NotFound
from tradewind.model.moments import HOUR, MINUTE, SECOND, parse_moment
from tradewind.model.rows import (
    AttemptEnd,
    AttemptStart,
    Batch,
    ImportProblem,
    JournalEntry,
    NewRun,
    ParsedDag,
    ParsedFile,
    PoolRow,
    RunRow,
    RunWrite,
    TaskRow,
    TaskWrite,
)
from tradewind.model.states import RunState, RunType, TaskState
from tradewind.store.factory import open_reader, open_store
from tradewind.store.sql import queries
from tradewind.store.sql.store import SqlStore
from tradewind.store.views import BadQuery, Conditions, TooBroad

T0 = parse_moment("2026-01-01T00:00:00Z")


@pytest.fixture(params=["file", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlStore]:
    if request.param == "postgres":
        store = open_store(request.getfixturevalue("postgres_url"))
    else:
        store = open_store(tmp_path / "tradewind.db", synchronous="NORMAL")
    yield store
    store.close()


def definition(dag_id: str, tasks: int = 3, **more: Any) -> DagDefinition:
    chain = tuple(
        TaskDefinition(
            f"t{i}", operator="BashOperator", upstream=(f"t{i - 1}",) if i else (), retries=1, pool_slots=2 if i else 1
        )
        for i in range(tasks)
    )
    return DagDefinition(dag_id, tasks=chain, **more)


def register(store: SqlStore, *dags: DagDefinition, file: str = "a.py", at: int = T0) -> None:
    parsed = []
    for dag in dags:
        data = encode_definition(dag)
        parsed.append(ParsedDag(dag.dag_id, data, version_hash(data)))
    store.register_file(
        ParsedFile("dags", file, "hash", tuple(parsed), None, 1500, False, at),
        paused_at_creation=True,
    )


def create(store: SqlStore, dag_id: str, number: int, **more: Any) -> RunRow:
    plan = store.need_dag(dag_id)
    moment = T0 + number * HOUR
    values: dict[str, Any] = {
        "dag_id": dag_id,
        "run_id": f"run_{number}",
        "run_type": RunType.MANUAL,
        "version": plan.version,
        "logical_date": moment,
        "interval_start": moment,
        "interval_end": moment + HOUR,
        "run_after": moment + HOUR,
        "at": moment + HOUR,
        "triggered_by": "cli",
    }
    return store.create_run(NewRun(**{**values, **more}))


def step(
    store: SqlStore, run: RunRow, states: dict[int, TaskState], run_state: RunState = RunState.RUNNING, **more: Any
) -> None:
    """Write states (try 1, fence 1) as the scheduler would."""
    now = store.run(run.id)
    assert now is not None
    tasks = []
    for slot, state in states.items():
        before = next(row for row in snapshot_rows(store, run) if row.slot == slot)
        ended = T0 + 2 * HOUR + 90 * SECOND if state.code in (4, 5, 6, 7) else 0
        tasks.append(
            TaskWrite(
                TaskRow(slot, state.code, 1, 1, 1, False, 0, 0, T0 + HOUR, T0 + 2 * HOUR, ended, None, None),
                before.state,
                before.fence,
            )
        )
    ended_at = T0 + 3 * HOUR if run_state.code >= 2 else None
    write = RunWrite(run.id, now.revision, run_state, T0 + 2 * HOUR, ended_at, None, now.journal_seq, tasks=tasks, **more)
    assert store.commit(Batch(0, T0, runs=[write])).stale == {}


def snapshot_rows(store: SqlStore, run: RunRow) -> list[TaskRow]:
    found = store.snapshot(run.id)
    assert found is not None
    return found.rows


# --- DAGs -------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("S116")
def test_a_dag_is_shown_with_airflows_fields(store: SqlStore) -> None:
    dag = definition(
        "sales",
        schedule=CronSchedule(("0 6 * * *",)),
        schedule_summary="0 6 * * *",
        tags=("daily", "money"),
        owners=("ann", "bob"),
        display_name="Sales!",
        max_active_tasks=7,
        description="All of it.",
    )
    register(store, dag)
    shown = msgspec.to_builtins(store.dag_view("sales"))
    assert shown["dag_display_name"] == "Sales!"
    assert shown["tags"] == [
        {"name": "daily", "dag_id": "sales", "dag_display_name": "Sales!"},
        {"name": "money", "dag_id": "sales", "dag_display_name": "Sales!"},
    ]
    assert shown["owners"] == ["ann", "bob"]
    assert (shown["is_paused"], shown["is_stale"], shown["has_import_errors"]) == (True, False, False)
    assert shown["last_parsed_time"] == "2026-01-01T00:00:00Z"
    assert shown["last_parse_duration"] == 0.0015
    assert shown["max_active_tasks"] == 7
    assert shown["timetable_summary"] == "0 6 * * *"
    assert "06:00" in shown["timetable_description"]
    assert shown["timetable_periodic"] is True
    assert shown["relative_fileloc"] == "a.py"


def test_details_have_what_the_author_wrote(store: SqlStore) -> None:
    params = (ParamDefinition("n", default=3, schema={"type": "integer"}), ParamDefinition("must", has_default=False))
    register(
        store, definition("sales", params=params, doc_md="# Sales", dagrun_timeout=90 * MINUTE, catchup=True, start_date=T0)
    )
    create(store, "sales", 1)
    shown = store.dag_details("sales")
    assert shown.params == {
        "n": {"value": 3, "schema": {"type": "integer"}, "description": None, "source": None},
        "must": {"value": None, "schema": {}, "description": None, "source": None},
    }
    assert (shown.doc_md, shown.dag_run_timeout, shown.catchup, shown.start_date) == (
        "# Sales",
        "PT1H30M",
        True,
        "2026-01-01T00:00:00Z",
    )
    assert shown.active_runs_count == 0, "a queued run is not active"
    step(store, store.need_run("sales", "run_1"), {0: TaskState.RUNNING})
    assert store.dag_details("sales").active_runs_count == 1
    assert shown.latest_dag_version is not None
    assert shown.latest_dag_version.version_number == 1


def test_dags_are_filtered_ordered_and_paged(store: SqlStore) -> None:
    for name in ("c_one", "a_two", "b_one"):
        register(store, definition(name, tags=(name[0], "all", 'q"uote')), file=f"{name}.py")
    store.set_paused("b_one", False, "me", T0)

    def ids(**filters: Any) -> list[str]:
        return [dag.dag_id for dag in store.list_dags(**filters).rows]

    assert ids() == ["a_two", "b_one", "c_one"]
    assert ids(order_by=["-dag_id"]) == ["c_one", "b_one", "a_two"]
    assert ids(paused=False) == ["b_one"]
    assert ids(paused=True) == ["a_two", "c_one"]
    assert ids(tags=["a", "c"]) == ["a_two", "c_one"]
    assert ids(tags=["a", "all"], all_tags=True) == ["a_two"]
    assert ids(tags=['uote"']) == []
    assert ids(tags=['q"uote'], dag_id_pattern="B") == ["b_one"]
    assert ids(dag_id_pattern="%_one") == ["b_one", "c_one"]
    assert ids(dag_id_pattern="two|c_") == ["a_two", "c_one"]
    assert ids(dag_id_prefix="b") == ["b_one"]
    page = store.list_dags(limit=1, offset=1)
    assert ([dag.dag_id for dag in page.rows], page.total) == (["b_one"], 3)


def test_a_dag_without_its_file_is_stale_and_listed_only_on_request(store: SqlStore) -> None:
    register(store, definition("gone"))
    store.forget_files("dags", ["a.py"], T0 + MINUTE)
    assert store.list_dags().total == 0
    (dag,) = store.list_dags(active=None).rows
    assert (dag.is_stale, dag.last_expired) == (True, "2026-01-01T00:01:00Z")


def test_errors_for_unknown_names_name_the_nearest(store: SqlStore) -> None:
    register(store, definition("sales"))
    create(store, "sales", 1)
    with pytest.raises(NotFound, match="Did you mean 'sales'"):
        store.dag_view("sale")
    with pytest.raises(NotFound, match="Did you mean 'sales'"):
        store.list_runs("sals")
    with pytest.raises(NotFound, match="run_1"):
        store.run_details("sales", "run_7")
    with pytest.raises(NotFound, match="Did you mean 't1'"):
        store.task_instance("sales", "run_1", "t11")
    with pytest.raises(NotFound, match="map index 4"):
        store.task_instance("sales", "run_1", "t1", 4)
    with pytest.raises(BadQuery, match="Did you mean 'run_after'"):
        store.list_runs(order_by=["run_aftr"])
    with pytest.raises(BadQuery, match="Did you mean 'run_after_gte'"):
        store.list_runs(ranges={"run_after_ge": 1})
    with pytest.raises(BadQuery, match="Did you mean 'running'"):
        store.list_runs(states=["runing"])
    with pytest.raises(BadQuery, match="Did you mean 'up_for_retry'"):
        store.list_task_instances(states=["up_for_retri"])


def test_a_version_that_was_replaced_in_place_is_read_again(store: SqlStore) -> None:
    reader = open_reader(store.engine.path)
    register(store, definition("sales", display_name="Old"))
    assert reader.dag_view("sales").dag_display_name == "Old"
    register(store, definition("sales", display_name="New"))
    assert reader.dag_view("sales").dag_display_name == "New"
    assert reader.dag_details("sales").latest_dag_version == store.dag_versions("sales").rows[0]
    reader.close()


def test_versions_grow_with_runs(store: SqlStore) -> None:
    register(store, definition("sales"))
    create(store, "sales", 1)
    register(store, definition("sales", tasks=4))
    assert [version.version_number for version in store.dag_versions("sales").rows] == [1, 2]
    assert store.version_number("sales", 2).dag_id == "sales"
    with pytest.raises(NotFound, match="no version 3"):
        store.version_number("sales", 3)
    assert store.run_details("sales", "run_1").dag_versions[0].version_number == 1


# --- runs -------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("S117")
def test_a_run_is_shown_with_airflows_fields(store: SqlStore) -> None:
    register(store, definition("sales"))
    run = create(store, "sales", 1, conf=json.dumps({"a": [1]}).encode(), note="why", triggering_user="ann")
    step(store, run, {}, RunState.SUCCESS)
    shown = msgspec.to_builtins(store.run_details("sales", "run_1"))
    assert shown["dag_run_id"] == "run_1"
    assert (shown["state"], shown["run_type"], shown["triggered_by"]) == ("success", "manual", "cli")
    assert (shown["conf"], shown["note"], shown["triggering_user_name"]) == ({"a": [1]}, "why", "ann")
    assert shown["logical_date"] == "2026-01-01T01:00:00Z"
    assert (shown["start_date"], shown["end_date"], shown["duration"]) == (
        "2026-01-01T02:00:00Z",
        "2026-01-01T03:00:00Z",
        3600.0,
    )


def test_runs_are_filtered_ordered_and_paged(store: SqlStore) -> None:
    register(store, definition("sales"), definition("other"))
    runs = [create(store, "sales", n) for n in range(6)] + [create(store, "other", 9, logical_date=None)]
    step(store, runs[0], {}, RunState.FAILED)
    step(store, runs[1], {}, RunState.SUCCESS)
    step(store, runs[2], {})

    def ids(dag_id: str = "~", **filters: Any) -> list[str]:
        listing = store.list_runs(dag_id, **filters)
        if "limit" not in filters:
            assert listing.total == len(listing.rows)
        return [run.dag_run_id for run in listing.rows]

    assert ids() == ["run_0", "run_1", "run_2", "run_3", "run_4", "run_5", "run_9"]
    assert ids("other") == ["run_9"]
    assert ids("sales", order_by=["-run_after"], limit=2, offset=1) == ["run_4", "run_3"]
    assert ids(states=["failed"]) == ["run_0"]
    assert ids(states=["running"]) == ["run_2"]
    assert ids(states=["failed", "success"]) == ["run_0", "run_1"]
    assert ids("sales", states=["queued"], ranges={"logical_date_gte": T0 + 4 * HOUR}) == ["run_4", "run_5"]
    assert ids("sales", ranges={"run_after_gt": T0 + HOUR, "run_after_lte": T0 + 3 * HOUR}) == ["run_1", "run_2"]
    assert ids(conditions=Conditions(patterns={"run_id": "_1|_2"})) == ["run_1", "run_2"]
    assert ids(run_types=["scheduled"]) == []


def test_stats_count_every_state(store: SqlStore) -> None:
    register(store, definition("sales"), definition("other"))
    runs = [create(store, "sales", n) for n in range(7)]
    for n, state in enumerate((RunState.FAILED, RunState.SUCCESS, RunState.SUCCESS, RunState.SUCCESS, RunState.RUNNING)):
        step(store, runs[n], {}, state)
    other, sales = store.dag_stats()
    assert {count.state.value: count.count for count in sales.stats} == {"queued": 2, "running": 1, "success": 3, "failed": 1}
    assert {count.count for count in other.stats} == {0}


# --- task instances -----------------------------------------------------------------------------------------------------


@pytest.mark.spec("S118")
def test_a_task_instance_is_shown_with_airflows_fields(store: SqlStore) -> None:
    register(store, definition("sales"))
    run = create(store, "sales", 1)
    started = AttemptStart(0, 1, 1, "LocalExecutor", "host-1", "laptop", 4711, "nonce", T0 + HOUR, T0 + 2 * HOUR)
    step(store, run, {0: TaskState.SUCCESS}, starts=[started])
    shown = msgspec.to_builtins(store.task_instance("sales", "run_1", "t0"))
    assert (shown["state"], shown["try_number"], shown["max_tries"], shown["map_index"]) == ("success", 1, 1, -1)
    assert (shown["hostname"], shown["pid"], shown["executor"]) == ("laptop", 4711, None), "the task names no executor"
    assert (shown["operator"], shown["pool"], shown["queue"]) == ("BashOperator", "default_pool", "default")
    assert (shown["start_date"], shown["duration"]) == ("2026-01-01T02:00:00Z", 90.0)
    assert shown["priority_weight"] == 3, "its own weight and those of the two below it"
    assert store.task_instance("sales", "run_1", "t1").state is None, "not examined yet is null"


def test_equal_task_instances_have_equal_ids_and_others_differ(store: SqlStore) -> None:
    register(store, definition("sales"))
    for n in range(3):
        create(store, "sales", n)
    ids = [ti.id for ti in store.list_task_instances().rows]
    assert ids == [ti.id for ti in store.list_task_instances().rows]
    assert len(set(ids)) == 9


def test_task_instances_are_filtered_and_paged_within_a_run_and_across(store: SqlStore) -> None:
    register(store, definition("sales"), definition("other"))
    runs = [create(store, "sales", n) for n in range(3)] + [create(store, "other", 5)]
    step(store, runs[0], {0: TaskState.SUCCESS, 1: TaskState.FAILED, 2: TaskState.UPSTREAM_FAILED}, RunState.FAILED)
    step(store, runs[1], {0: TaskState.RUNNING})
    step(store, runs[3], {0: TaskState.SUCCESS, 1: TaskState.QUEUED})

    def found(*where: str, **filters: Any) -> list[str]:
        listing = store.list_task_instances(*where, **filters)
        if "limit" not in filters:
            assert listing.total == len(listing.rows)
        return [f"{ti.dag_id[0]}{ti.dag_run_id[-1]}{ti.task_id}" for ti in listing.rows]

    assert found("sales", "run_0") == ["s0t0", "s0t1", "s0t2"]
    assert found("sales", "run_0", order_by=["-task_id"]) == ["s0t2", "s0t1", "s0t0"]
    assert found("sales", "run_0", order_by=["-id"]) == ["s0t2", "s0t1", "s0t0"]
    assert found("sales", "run_0", states=["success"]) == ["s0t0"]
    assert found("sales", "~", states=["failed"]) == ["s0t1"]
    assert found("~", "~", states=["failed", "upstream_failed"]) == ["s0t1", "s0t2"]
    assert found("~", "~", states=["running", "queued"]) == ["s1t0", "o5t1"]
    assert found("other", "~", states=["queued"]) == ["o5t1"]
    assert found("~", "~", states=["success"]) == ["s0t0", "o5t0"]
    assert found("sales", "~", states=[None], task_id="t1") == ["s1t1", "s2t1"]
    assert found("~", "run_5") == ["o5t0", "o5t1", "o5t2"]
    assert len(found("~", "~")) == 12
    assert found("sales", "~", limit=2, offset=2) == ["s0t2", "s1t0"]
    assert store.list_task_instances("sales", "~", limit=1).total == 9
    assert found("sales", "~", ranges={"run_after_gt": T0 + 2 * HOUR}) == ["s2t0", "s2t1", "s2t2"]
    assert found("sales", "~", states=["success"], order_by=["-start_date"]) == ["s0t0"]


def test_attempts_of_one_try_are_one_try(store: SqlStore) -> None:
    register(store, definition("sales"))
    run = create(store, "sales", 1)
    at = [T0 + n * MINUTE for n in range(10)]
    starts = [
        AttemptStart(0, 1, 1, "LocalExecutor", "h", "box", 11, "a", at[0], at[1]),
        AttemptStart(0, 2, 1, "LocalExecutor", "h", "box", 12, "b", at[2], at[3]),
        AttemptStart(0, 3, 2, "LocalExecutor", "h", "box", 13, "c", at[5], at[6]),
    ]
    ends = [
        AttemptEnd(0, 1, 1, "LocalExecutor", at[0], at[2], "reschedule", None, 0, None),
        AttemptEnd(0, 2, 1, "LocalExecutor", at[2], at[4], "failed", "ValueError: no", 1, None),
    ]
    now = store.run(run.id)
    assert now is not None
    row = TaskRow(0, TaskState.RUNNING.code, 3, 2, 1, False, 0, 0, at[5], at[6], 0, None, None)
    write = RunWrite(run.id, now.revision, RunState.RUNNING, at[0], None, None, 0, [TaskWrite(row, 0, 0)], [], starts, ends)
    assert store.commit(Batch(0, T0, runs=[write])).stale == {}
    first, second = store.task_tries("sales", "run_1", "t0")
    assert (first.try_number, first.state, first.pid, first.duration) == (1, "failed", 12, 180.0)
    assert (second.try_number, second.state, second.pid, second.end_date) == (2, "running", 13, None)
    assert [(one.reason, one.lost_attempts) for one in (first, second)] == [("ValueError: no", 0), (None, 0)]
    assert [(a.fence, a.outcome, a.reason) for a in store.attempts("sales", "run_1", "t0")] == [
        (1, "reschedule", None),
        (2, "failed", "ValueError: no"),
        (3, None, None),
    ]
    files = store.log_files("sales", "run_1", "t0", -1, 1)
    assert [(file.path, file.ended_at) for file in files] == [
        ("sales/run_1/t0~attempt=1.1.log", at[2]),
        ("sales/run_1/t0~attempt=1.2.log", at[4]),
    ]
    assert [file.ended_at for file in store.log_files("sales", "run_1", "t0", -1, 2)] == [None]
    with pytest.raises(NotFound, match="its tries: 1, 2"):
        store.log_files("sales", "run_1", "t0", -1, 3)


def test_a_task_instance_shows_what_its_attempt_rendered(store: SqlStore) -> None:
    register(store, definition("sales"))
    run = create(store, "sales", 1)
    assert store.task_instance("sales", "run_1", "t0").rendered_fields == {}
    end = AttemptEnd(0, 1, 1, "LocalExecutor", T0, T0, "success", None, 0, None, b'{"bash_command": "echo 1"}')
    now = store.run(run.id)
    assert now is not None
    row = TaskRow(0, TaskState.SUCCESS.code, 1, 1, 1, False, 0, 0, T0, T0, T0, None, None)
    write = RunWrite(run.id, now.revision, RunState.RUNNING, T0, None, None, 0, [TaskWrite(row, 0, 0)], [], [], [end])
    assert store.commit(Batch(0, T0, runs=[write])).stale == {}
    assert store.task_instance("sales", "run_1", "t0").rendered_fields == {"bash_command": "echo 1"}
    (listed,) = [one for one in store.list_task_instances("sales", "run_1").rows if one.task_id == "t0"]
    assert listed.rendered_fields == {"bash_command": "echo 1"}


def test_a_queued_task_instance_has_the_path_of_its_future_log(store: SqlStore) -> None:
    register(store, definition("sales"))
    run = create(store, "sales", 1)
    step(store, run, {0: TaskState.QUEUED})
    assert [file.path for file in store.log_files("sales", "run_1", "t0", -1, 1)] == ["sales/run_1/t0~attempt=1.1.log"]
    with pytest.raises(NotFound, match="not started yet"):
        store.log_files("sales", "run_1", "t1", -1, 1)


# --- services ----------------------------------------------------------------------------------------------------------


def test_pools_show_the_slots_of_unfinished_runs(store: SqlStore) -> None:
    register(store, definition("sales"))
    store.set_pool(PoolRow("small", 2, None, False), "me", T0)
    runs = [create(store, "sales", n) for n in range(3)]
    step(store, runs[0], {0: TaskState.RUNNING, 1: TaskState.QUEUED, 2: TaskState.SCHEDULED})
    step(store, runs[1], {1: TaskState.RUNNING, 2: TaskState.DEFERRED})
    step(store, runs[2], {0: TaskState.SUCCESS}, RunState.SUCCESS)
    default, small = store.list_pools().rows
    assert (default.name, default.running_slots, default.queued_slots, default.scheduled_slots, default.deferred_slots) == (
        "default_pool",
        3,
        2,
        2,
        2,
    )
    assert (default.occupied_slots, default.open_slots) == (5, 123)
    assert (small.open_slots, small.occupied_slots) == (2, 0)
    store.set_pool(PoolRow("default_pool", -1, None, True), "me", T0)
    again = store.pool_details("default_pool")
    assert (again.occupied_slots, again.open_slots) == (7, -1)
    with pytest.raises(NotFound, match="Did you mean 'small'"):
        store.pool_details("smal")


@pytest.mark.spec("S71")
def test_a_chosen_pool_is_shown_and_counted(store: SqlStore) -> None:
    register(store, definition("sales"))
    store.set_pool(PoolRow("small", 2, None, False), "me", T0)
    number = create(store, "sales", 1).id
    create(store, "sales", 2)
    run = store.run(number)
    assert run is not None
    scheduled = TaskRow(0, TaskState.SCHEDULED.code, 0, 1, 1, False, 0, 0, 0, 0, 0, None, None)
    write = RunWrite(number, run.revision, RunState.RUNNING, T0, None, None, 0, [TaskWrite(scheduled, 0, 0)])
    write.pools = [(0, "small")]
    assert store.commit(Batch(1, T0, runs=[write])).stale == {}
    assert store.pool_details("small").scheduled_slots == 1
    assert store.pool_details("default_pool").scheduled_slots == 0
    assert store.task_instance("sales", "run_1", "t0").pool == "small"
    listed = store.list_task_instances("sales", "~", task_id="t0").rows
    assert [(one.dag_run_id, one.pool) for one in listed] == [("run_1", "small"), ("run_2", "default_pool")]


def test_import_errors_name_file_and_line(store: SqlStore) -> None:
    problem = ImportProblem("SyntaxError: invalid syntax", "Traceback …", 7)
    for name in ("b.py", "a.py"):
        store.register_file(ParsedFile("dags", name, "h", (), problem, 0, False, T0), paused_at_creation=True)
    listing = store.import_errors(order_by=["filename"])
    assert [(e.filename, e.line, e.stack_trace) for e in listing.rows] == [
        ("a.py", 7, "Traceback …"),
        ("b.py", 7, "Traceback …"),
    ]
    assert store.import_errors(filename_pattern="B.p").total == 1
    assert store.import_error(listing.rows[0].import_error_id) == listing.rows[0]
    with pytest.raises(NotFound):
        store.import_error(99)


@pytest.mark.spec("S126")
def test_the_audit_log_says_who_did_what(store: SqlStore) -> None:
    register(store, definition("sales"), definition("other"))
    store.set_paused("sales", False, "ann", T0)
    store.set_paused("other", False, "bob", T0 + HOUR)
    assert [(e.event, e.owner, e.dag_id) for e in store.event_logs(order_by=["-when"]).rows] == [
        ("unpause", "bob", "other"),
        ("unpause", "ann", "sales"),
    ]
    assert store.event_logs(dag_id="sales").total == 1
    assert store.event_logs(owner="bob", ranges={"when_gte": T0 + HOUR}).total == 1
    first = store.event_logs().rows[0]
    assert store.event_log(first.event_log_id) == first


def test_health_facts_name_the_newest_scheduler(store: SqlStore) -> None:
    assert store.health_facts().scheduler_epoch is None
    for n in range(2):
        store.begin_epoch("box", 100 + n, "boot", T0 + n)
    facts = store.health_facts()
    assert (facts.scheduler_epoch, facts.scheduler_pid, facts.scheduler_started_at) == (2, 101, T0 + 1)


# --- cost ---------------------------------------------------------------------------------------------------------------

WALKS = [
    ("runs of a dag, newest", lambda s: s.list_runs("sales", order_by=["-run_after"])),
    ("runs on their way", lambda s: s.list_runs("sales", states=["running"], order_by=["run_after"])),
    ("failed runs", lambda s: s.list_runs("sales", states=["failed"], order_by=["-run_after"])),
    ("task instances of a run", lambda s: s.list_task_instances("sales", "run_1")),
    ("task instances of a dag", lambda s: s.list_task_instances("sales", "~")),
    ("all task instances", lambda s: s.list_task_instances("~", "~")),
    ("all failed task instances", lambda s: s.list_task_instances("~", "~", states=["failed"])),
    ("all running task instances of a dag", lambda s: s.list_task_instances("sales", "~", states=["running"])),
    ("one task instance", lambda s: s.task_instance("sales", "run_1", "t1")),
    ("tries", lambda s: s.task_tries("sales", "run_1", "t1")),
    ("slots taken", lambda s: s.list_pools()),
    ("stats", lambda s: s.dag_stats(["sales"])),
]


@pytest.mark.parametrize("store", ["file"], indirect=True)
@pytest.mark.parametrize(("what", "ask"), WALKS, ids=[name for name, _ in WALKS])
def test_lists_use_an_index_and_do_not_sort_growing_tables(store: SqlStore, what: str, ask: Any) -> None:
    register(store, definition("sales"))
    create(store, "sales", 1)
    asked: list[tuple[str, Any]] = []
    rows, row = store.engine.rows, store.engine.row
    store.engine.rows = lambda sql, parameters=(): asked.append((sql, parameters)) or rows(sql, parameters)  # type: ignore[method-assign,func-returns-value]
    store.engine.row = lambda sql, parameters=(): asked.append((sql, parameters)) or row(sql, parameters)  # type: ignore[method-assign,func-returns-value]
    ask(store)
    assert asked
    for sql, parameters in asked:
        if "task_instance" not in sql and "dag_run" not in sql:
            continue
        plan = [step[3] for step in rows(f"EXPLAIN QUERY PLAN {sql}", parameters)]
        for line in plan:
            assert not line.startswith("SCAN t") or "task_instance_failed" in line, (sql, plan)
            assert not (line.startswith("SCAN r") and "sales" in parameters and "INDEX" not in line), (sql, plan)
        if "GROUP BY" not in sql:
            assert not any("TEMP B-TREE" in line for line in plan), (sql, plan)


def test_a_list_that_takes_too_long_is_cancelled_with_a_message(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    register(store, definition("sales", tasks=2000))
    for n in range(3):
        create(store, "sales", n)
    monkeypatch.setattr(queries, "COUNT_SECONDS", -1.0)
    listing = store.list_task_instances("sales", "~", task_id="t1")
    assert (len(listing.rows), listing.total) == (3, None), "the page is there, its total is left out"
    monkeypatch.setattr(queries, "PAGE_SECONDS", -1.0)
    with pytest.raises(TooBroad, match="Name a DAG and a run"):
        store.list_task_instances("sales", "~", order_by=["-start_date"])
    assert store.dag_ids() == ["sales"], "the bound ends with the question"


def test_the_history_of_a_task_has_each_change_and_its_duration(store: SqlStore) -> None:
    register(store, definition("sales"))
    run = create(store, "sales", 1)
    assert store.task_history("sales", "run_1", "t0") == []
    now = store.run(run.id)
    assert now is not None
    codes = [TaskState.NONE.code, TaskState.SCHEDULED.code, TaskState.QUEUED.code]
    journal = [
        JournalEntry(0, 0, codes[0], codes[1], T0, "its dependencies are met"),
        JournalEntry(1, 1, codes[0], codes[1], T0, "another task"),
        JournalEntry(0, 1, codes[1], codes[2], T0 + 2_500_000, "a slot was free"),
    ]
    row = TaskRow(0, TaskState.QUEUED.code, 1, 1, 1, False, 0, 0, T0, 0, 0, None, None)
    write = RunWrite(run.id, now.revision, RunState.RUNNING, T0, None, None, 0, [TaskWrite(row, 0, 0)], journal)
    assert store.commit(Batch(0, T0, runs=[write])).stale == {}
    steps = store.task_history("sales", "run_1", "t0")
    assert [(one.before, one.state, one.attempt, one.lasted, one.cause) for one in steps] == [
        (None, "scheduled", 0, 2.5, "its dependencies are met"),
        ("scheduled", "queued", 1, None, "a slot was free"),
    ]
    with pytest.raises(NotFound):
        store.task_history("sales", "run_1", "t9")
