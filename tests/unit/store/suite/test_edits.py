"""What people change: choosing tasks and clearing them."""

from __future__ import annotations

import pytest

from tests.unit.store.suite.build import NOW, S, commit, finish, rows, share, step, with_dag, with_run
from tradewind.model.errors import NotFound
from tradewind.model.states import RunState, TaskState
from tradewind.store.port import Store

DIAMOND = {"top": (), "left": ("top",), "right": ("top",), "low": ("left", "right"), "alone": ()}


@pytest.mark.spec("S439")
def test_tasks_are_chosen_with_what_is_above_and_below(store: Store) -> None:
    with_dag(store, tasks=DIAMOND)
    assert store.select_tasks("d", []) == set(DIAMOND)
    assert store.select_tasks("d", ["left"]) == {"left"}
    assert store.select_tasks("d", ["left"], upstream=True) == {"left", "top"}
    assert store.select_tasks("d", ["left"], downstream=True) == {"left", "low"}
    assert store.select_tasks("d", ["left"], upstream=True, downstream=True) == {"left", "top", "low"}
    assert store.select_tasks("d", ["top", "alone"], downstream=True) == set(DIAMOND)


def test_an_unknown_task_is_answered_with_the_nearest(store: Store) -> None:
    with_dag(store, tasks=DIAMOND)
    with pytest.raises(NotFound, match=r"DAG d has no task 'lefft'\. Did you mean 'left'\?"):
        store.select_tasks("d", ["top", "lefft"])
    with pytest.raises(NotFound, match="no DAG"):
        store.select_tasks("x", [])


@pytest.mark.spec("S463")
def test_what_a_clear_would_touch(store: Store) -> None:
    with_dag(store, tasks=6)
    run = with_run(store)
    for slot, state in enumerate((S.SUCCESS, S.FAILED, S.UPSTREAM_FAILED, S.RUNNING, S.QUEUED)):
        step(store, run.id, state, slot=slot)
    every = [f"t{i}" for i in range(6)]

    def touched(task_ids: list[str], **choice: bool) -> list[tuple[int, str, int, TaskState]]:
        return store.clearable(run, task_ids, **choice)

    assert [found[3] for found in touched(every)] == [S.SUCCESS, S.FAILED, S.UPSTREAM_FAILED, S.RUNNING, S.QUEUED]
    assert touched(["t1", "t5", "nobody"]) == [(1, "t1", -1, S.FAILED)]
    assert [found[0] for found in touched(every, only_failed=True)] == [1, 2]
    assert [found[0] for found in touched(every, only_running=True)] == [3, 4]
    assert [found[0] for found in touched(every, only_failed=True, only_running=True)] == [1, 2, 3, 4], "as in Airflow: either"


@pytest.mark.spec("S181", "S383")
def test_clearing_forgets_results_and_gives_the_retries_anew(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    step(store, run.id, S.SCHEDULED, S.QUEUED, S.RUNNING, S.FAILED)
    before = rows(store, run.id)[0]
    cleared = store.clear(run.id, [0], "ada", NOW + 9, "bad data")
    assert cleared == store.run(run.id)
    assert rows(store, run.id)[0] == before._replace(state=0, fence=before.fence + 1, max_tries=before.try_number + 1)
    assert (cleared.clear_number, cleared.revision, cleared.journal_seq) == (1, 5, 5)
    assert (cleared.state, cleared.started_at, cleared.queued_at) == (RunState.RUNNING, NOW, NOW)


def test_an_attempt_that_lives_is_stopped_first(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    for slot, state in enumerate((S.QUEUED, S.RUNNING, S.UP_FOR_RETRY)):
        step(store, run.id, state, slot=slot)
    fences = [row.fence for row in rows(store, run.id).values()]
    store.clear(run.id, [0, 1, 2], "ada", NOW)
    found = rows(store, run.id)
    assert [found[slot].state for slot in range(3)] == [S.RESTARTING.code, S.RESTARTING.code, S.NONE.code]
    assert [found[slot].fence for slot in range(3)] == [fences[0], fences[1], fences[2] + 1]


def test_clearing_what_is_fresh_or_restarting_changes_no_row(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    step(store, run.id, S.RUNNING, slot=1)
    store.clear(run.id, [1], "ada", NOW)
    before, row = rows(store, run.id), store.run(run.id)
    assert row is not None
    again = store.clear(run.id, [0, 1, 77], "ada", NOW)
    assert rows(store, run.id) == before
    assert again == row._replace(revision=row.revision + 1, clear_number=2, feed_seq=2)


@pytest.mark.parametrize("ended", [RunState.SUCCESS, RunState.FAILED])
def test_a_run_that_had_ended_is_queued_again(store: Store, ended: RunState) -> None:
    with_dag(store)
    run = with_run(store)
    step(store, run.id, S.SUCCESS)
    finish(store, run.id, ended)
    assert store.active_runs() == []
    cleared = store.clear(run.id, [0], "ada", NOW + 7)
    assert (cleared.state, cleared.queued_at, cleared.started_at, cleared.ended_at) == (RunState.QUEUED, NOW + 7, None, None)
    assert store.active_runs() == [cleared]


@pytest.mark.spec("S129", "S220")
def test_a_scheduler_that_decided_before_the_clear_is_stale(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    step(store, run.id, S.SCHEDULED, S.QUEUED, S.RUNNING)
    late = share(store, run.id, {0: S.SUCCESS})
    store.clear(run.id, [0], "ada", NOW)
    assert commit(store, late).stale == {run.id: []}
    assert rows(store, run.id)[0].state == S.RESTARTING.code


def test_clearing_a_run_that_is_gone_says_so(store: Store) -> None:
    with pytest.raises(NotFound, match="there is no run number 7"):
        store.clear(7, [0], "ada", NOW)
