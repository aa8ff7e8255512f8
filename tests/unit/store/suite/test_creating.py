"""Creating runs and their rows."""

from __future__ import annotations

import pytest

from tests.unit.store.suite.build import NOW, S, commit, definition, due, new_run, parsed, rows, share, with_dag, with_run
from tradewind.model.errors import Conflict, NotFound
from tradewind.model.states import RunState, RunType
from tradewind.store.port import Store

SCHEDULED = RunType.SCHEDULED


@pytest.mark.spec("S8", "S138", "S156")
def test_each_task_has_an_instance_without_a_state_in_each_new_run(store: Store) -> None:
    with_dag(store)
    runs = [with_run(store, name) for name in ("r1", "r2")]
    for run in runs:
        snapshot = store.snapshot(run.id)
        assert snapshot is not None
        assert [(row.task_id, row.map_index, row.state) for row in snapshot.rows] == [
            (f"t{n}", -1, S.NONE.code) for n in range(3)
        ]


@pytest.mark.spec("S117", "S118")
def test_a_new_run_is_queued_and_has_a_row_for_each_task(store: Store) -> None:
    version = with_dag(store)
    new = new_run(store, "r1", day=3, conf=b"{}", triggering_user="ada", note="try it")
    run = store.create_run(new)
    assert run == store.run(run.id) == store.find_run("d", "r1") == store.need_run("d", "r1")
    assert (run.state, run.version, run.task_count, run.rows_created) == (RunState.QUEUED, version, 3, 3)
    assert (run.logical_date, run.run_after, run.queued_at) == (new.logical_date, new.run_after, NOW)
    assert (run.conf, run.triggering_user, run.note, run.triggered_by) == (b"{}", "ada", "try it", "test")
    assert (run.revision, run.journal_seq, run.feed_seq, run.clear_number) == (0, 0, 0, 0)
    assert (run.started_at, run.ended_at, run.reason) == (None, None, None)
    snapshot = store.snapshot(run.id)
    assert snapshot is not None
    assert snapshot.rows == [
        (slot, 0, 0, 0, 1, False, 0, 0, 0, 0, 0, None, None, f"t{slot}", -1, None, None) for slot in range(3)
    ]
    assert isinstance(snapshot.rows[0].resume, bool)


def test_a_second_manual_run_with_the_same_id_is_refused(store: Store) -> None:
    with_dag(store)
    with_run(store)
    with pytest.raises(Conflict, match="d already has a run 'r1'; give another run id"):
        with_run(store)


def test_a_second_manual_run_with_the_same_logical_date_is_refused(store: Store) -> None:
    with_dag(store)
    with_run(store, "r1", day=1)
    with pytest.raises(Conflict, match="already has the run 'r1' for this logical date"):
        with_run(store, "r2", day=1)
    with_dag(store, "other")
    assert with_run(store, "r1", "other", day=1).dag_id == "other"


def test_there_may_be_many_runs_without_a_logical_date(store: Store) -> None:
    with_dag(store)
    assert len({with_run(store, f"r{i}").id for i in range(5)}) == 5


def test_creating_a_scheduled_run_again_gives_the_same_run(store: Store) -> None:
    with_dag(store)
    first = with_run(store, "scheduled__1", day=1, run_type=SCHEDULED)
    assert with_run(store, "scheduled__1", day=1, run_type=SCHEDULED) == first
    answer = commit(store, new_runs=[due(new_run(store, "scheduled__1", day=1, run_type=SCHEDULED))])
    assert answer.created == [first]


def test_a_scheduled_run_is_not_created_beside_a_manual_one(store: Store) -> None:
    """It is found by its date. A run of another date with its id, as Airflow 3 gives it to the interval before, is no reason to
    lose a run.
    """
    with_dag(store)
    by_date = with_run(store, "mine", day=1)
    with_run(store, "scheduled__2", day=77)
    one, two = (new_run(store, f"scheduled__{day}", day=day, run_type=SCHEDULED) for day in (1, 2))
    first = due(one)
    created = commit(store, new_runs=[first, due(two, first.position.last)]).created
    assert created[0] == by_date
    assert (created[1].run_id, created[1].logical_date) == ("scheduled__2__2", two.logical_date)
    assert with_run(store, "scheduled__2", day=2, run_type=SCHEDULED) == created[1]


def test_a_run_of_a_missing_version_gets_the_current_one(store: Store) -> None:
    """The scheduler may not know yet that the file was parsed again."""
    with_dag(store)
    new = new_run(store)
    store.register_file(parsed(definition("d", 5)), paused_at_creation=False)
    assert store.create_run(new).task_count == 5


def test_a_run_needs_its_dag(store: Store) -> None:
    with_dag(store)
    new = new_run(store)
    new.dag_id, new.version = "nobody", 999
    with pytest.raises(NotFound, match="no DAG 'nobody'"):
        store.create_run(new)


def test_rows_of_a_large_run_are_created_in_parts(store: Store) -> None:
    with_dag(store, "big", {f"t{i}": () for i in range(4500)})
    run = with_run(store, dag_id="big")
    assert (run.task_count, run.rows_created) == (4500, 2000)
    assert commit(store, more_rows=[(run.id, 1000)]).rows_created == {run.id: 3000}
    assert commit(store, more_rows=[(run.id, 9000)]).rows_created == {run.id: 4500}
    assert commit(store, more_rows=[(run.id, 1)]).rows_created == {run.id: 4500}
    now = store.run(run.id)
    assert now is not None
    assert (now.rows_created, now.revision) == (4500, 0)
    assert list(rows(store, run.id)) == list(range(4500))


def test_no_rows_are_created_for_a_missing_run(store: Store) -> None:
    assert commit(store, more_rows=[(5, 100)]).rows_created == {5: 0}


def test_a_dag_without_tasks_has_runs_without_rows(store: Store) -> None:
    with_dag(store, tasks={})
    run = with_run(store)
    assert (run.task_count, rows(store, run.id)) == (0, {})


def test_missing_runs_are_none_or_not_found(store: Store) -> None:
    with_dag(store)
    assert (store.run(1), store.find_run("d", "r1"), store.snapshot(1)) == (None, None, None)
    with pytest.raises(NotFound, match=r"no run 'r1'\. It has no runs\."):
        store.need_run("d", "r1")
    for i in range(5):
        with_run(store, f"r{i}", run_after=NOW + i)
    with pytest.raises(NotFound, match=r"Its latest runs: r4, r3, r2\."):
        store.need_run("d", "x")


def test_active_runs_are_those_that_have_not_ended(store: Store) -> None:
    for dag_id in ("b", "a"):
        with_dag(store, dag_id)
        for place, after in enumerate((30, 10, 20)):
            run = with_run(store, f"r{place}", dag_id, run_after=NOW + after)
            if after == 20:
                commit(store, share(store, run.id, {0: S.SCHEDULED}))
        ended = with_run(store, "ended", dag_id)
        commit(store, share(store, ended.id, {}, state=RunState.FAILED, ended_at=NOW))
    assert [(run.dag_id, run.run_id) for run in store.active_runs()] == [
        (dag_id, run_id) for dag_id in ("a", "b") for run_id in ("r1", "r2", "r0")
    ]
    assert [run.run_id for run in store.active_runs("b")] == ["r1", "r2", "r0"]
    assert store.active_runs("c") == []
