"""Reading earlier runs."""

from __future__ import annotations

from tests.unit.store.suite.build import NOW, S, definition, finish, parsed, step, with_dag, with_run
from tradewind.model.moments import DAY
from tradewind.model.rows import AttemptStart, RunRow
from tradewind.model.states import RunState, RunType
from tradewind.store.port import Store


def name(run: RunRow | None) -> str | None:
    return None if run is None else run.run_id


def test_the_run_before_a_date(store: Store) -> None:
    for dag_id in ("d", "other"):
        with_dag(store, dag_id)
        with_run(store, "b", dag_id, day=3, run_type=RunType.SCHEDULED)
        with_run(store, "a", dag_id, day=1, run_type=RunType.BACKFILL)
        with_run(store, "manual", dag_id, day=4)
        with_run(store, "dateless", dag_id)

    def before(day: int, *, scheduled_only: bool = False) -> str | None:
        return name(store.previous_run("d", NOW + day * DAY, scheduled_only=scheduled_only))

    assert [before(day) for day in range(6)] == [None, None, "a", "a", "b", "manual"]
    assert [before(day, scheduled_only=True) for day in range(6)] == [None, None, "a", "a", "b", "b"]
    assert store.previous_run("nobody", NOW, scheduled_only=False) is None


def test_the_run_before_a_date_in_some_state(store: Store) -> None:
    with_dag(store)
    for day, state in enumerate((RunState.SUCCESS, RunState.FAILED, RunState.SUCCESS, RunState.FAILED)):
        finish(store, with_run(store, f"r{day}", day=day).id, state)
    until = NOW + 9 * DAY
    assert name(store.previous_run("d", until, scheduled_only=False, state=RunState.SUCCESS)) == "r2"
    assert name(store.previous_run("d", until, scheduled_only=False, state=RunState.FAILED)) == "r3"
    assert store.previous_run("d", until, scheduled_only=False, state=RunState.RUNNING) is None
    assert store.previous_run("d", until, scheduled_only=True, state=RunState.SUCCESS) is None


def test_the_runs_between_two_dates(store: Store) -> None:
    with_dag(store)
    for day in (3, 1, 2):
        with_run(store, f"r{day}", day=day)
    with_run(store, "dateless", run_after=NOW + 2 * DAY + 1)

    def between(start: int | None, end: int | None) -> list[str]:
        moments = [None if day is None else NOW + day * DAY for day in (start, end)]
        return [run.run_id for run in store.runs_between("d", *moments)]

    assert between(None, None) == ["r1", "r2", "dateless", "r3"]
    assert between(2, 3) == ["r2", "dateless", "r3"]
    assert between(None, 1) == ["r1"]
    assert between(3, 2) == []
    assert store.runs_between("nobody", None, None) == []


def test_states_of_chosen_tasks(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    step(store, run.id, S.SCHEDULED, S.QUEUED)
    step(store, run.id, S.SKIPPED, slot=2)
    assert store.states_of(run.id, ["t2", "t0", "nobody"]) == {"t0": [S.QUEUED.code], "t2": [S.SKIPPED.code]}
    assert store.states_of(run.id, iter(["t1"])) == {"t1": [0]}
    assert store.states_of(run.id, []) == {}
    assert store.states_of(99, ["t0"]) == {}


def test_whether_a_task_ever_ran(store: Store) -> None:
    with_dag(store, tasks={"old": ()})
    with_run(store, day=1)
    store.register_file(parsed(definition(tasks={"old": (), "new": ()})), paused_at_creation=False)
    with_run(store, "r2", day=2)
    with_run(store, "dateless")
    ever = {(task, day): store.task_ever_ran("d", task, NOW + day * DAY) for task in ("old", "new") for day in (1, 2, 3)}
    assert ever == {
        ("old", 1): False,
        ("old", 2): True,
        ("old", 3): True,
        ("new", 1): False,
        ("new", 2): False,
        ("new", 3): True,
    }
    assert not store.task_ever_ran("nobody", "old", NOW + 9 * DAY)


def test_task_instances_with_their_last_attempts(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    step(store, run.id, S.SCHEDULED, S.QUEUED)
    start = AttemptStart(0, 1, 1, "LocalExecutor", "w1", "vm-1", 4711, "nonce", NOW, NOW + 5)
    step(store, run.id, S.RUNNING, starts=[start])
    first, *others = store.instance_facts(run.id, (), 10)
    assert (first.slot, first.task_id, first.map_index, first.state, first.try_number) == (0, "t0", -1, S.RUNNING, 1)
    assert (first.hostname, first.pid, first.executor, first.ended_at) == ("vm-1", 4711, "LocalExecutor", None)
    assert [(one.task_id, one.state, one.hostname) for one in others] == [("t1", S.NONE, None), ("t2", S.NONE, None)]
    assert [one.task_id for one in store.instance_facts(run.id, ["t2", "nobody"], 10)] == ["t2"]
    assert len(store.instance_facts(run.id, (), 2)) == 2
    assert store.instance_facts(99, (), 10) == []


def test_dags_with_what_their_lists_show(store: Store) -> None:
    with_dag(store, "b")
    with_dag(store, "a")
    found = store.dag_facts(10)
    assert [(one.dag_id, one.is_active, one.has_import_errors) for one in found] == [("a", True, False), ("b", True, False)]
    assert isinstance(found[0].tags, tuple)
    assert [one.dag_id for one in store.dag_facts(1)] == ["a"]
