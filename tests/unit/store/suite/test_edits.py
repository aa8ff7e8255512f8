"""What people change: clearing and marking task instances, setting a run's state, notes."""

from __future__ import annotations

import pytest

from tests.unit.store.suite.build import NOW, S, attempts, commit, finish, notes, rows, share, step, with_dag, with_run
from tradewind.model.errors import NotFound
from tradewind.model.states import RunState, TaskState
from tradewind.store.port import Store


@pytest.mark.spec("S463")
def test_what_a_clear_would_reset(store: Store) -> None:
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
def test_clearing_deletes_results_and_gives_the_retries_again(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    step(store, run.id, S.SCHEDULED, S.QUEUED, S.RUNNING, S.FAILED)
    before = rows(store, run.id)[0]
    cleared = store.clear(run.id, [0], "ada", NOW + 9, "bad data")
    assert cleared == store.run(run.id)
    assert rows(store, run.id)[0] == before._replace(state=0, fence=before.fence + 1, max_tries=before.try_number + 1)
    assert (cleared.clear_number, cleared.revision, cleared.journal_seq) == (1, 5, 5)
    assert (cleared.state, cleared.started_at, cleared.queued_at) == (RunState.RUNNING, NOW, NOW)


def test_a_live_attempt_is_stopped_first(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    for slot, state in enumerate((S.QUEUED, S.RUNNING, S.UP_FOR_RETRY)):
        step(store, run.id, state, slot=slot)
    fences = [row.fence for row in rows(store, run.id).values()]
    store.clear(run.id, [0, 1, 2], "ada", NOW)
    found = rows(store, run.id)
    assert [found[slot].state for slot in range(3)] == [S.RESTARTING.code, S.RESTARTING.code, S.NONE.code]
    assert [found[slot].fence for slot in range(3)] == [fences[0], fences[1], fences[2] + 1]


def test_clearing_new_or_restarting_task_instances_changes_no_row(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    step(store, run.id, S.RUNNING, slot=1)
    store.clear(run.id, [1], "ada", NOW)
    before, row = rows(store, run.id), store.run(run.id)
    assert row is not None
    again = store.clear(run.id, [0, 1, 77], "ada", NOW)
    assert rows(store, run.id) == before
    assert again == row._replace(revision=row.revision + 1, clear_number=2, feed_seq=2)


def pools(store: Store, run: int) -> dict[int, str]:
    snapshot = store.snapshot(run)
    assert snapshot is not None
    return snapshot.pools


@pytest.mark.spec("S71")
def test_a_chosen_pool_lasts_until_a_clear(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    assert pools(store, run.id) == {}
    assert commit(store, share(store, run.id, {0: S.SCHEDULED}, pools=[(0, "other"), (1, "other")])).stale == {}
    step(store, run.id, S.QUEUED, S.RUNNING, S.UP_FOR_RETRY)
    assert pools(store, run.id) == {0: "other", 1: "other"}
    store.clear(run.id, [0, 1, 2], "ada", NOW)
    assert rows(store, run.id)[1].state == S.NONE.code
    assert pools(store, run.id) == {}


@pytest.mark.spec("S71")
def test_a_cleared_attempt_keeps_its_chosen_pool_until_it_has_ended(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    commit(store, share(store, run.id, {0: S.SCHEDULED}, pools=[(0, "other")]))
    step(store, run.id, S.QUEUED, S.RUNNING)
    store.clear(run.id, [0], "ada", NOW)
    store.clear(run.id, [0], "ada", NOW)
    assert pools(store, run.id) == {0: "other"}
    step(store, run.id, S.RESTARTING)
    assert pools(store, run.id) == {0: "other"}, "it is written anew in the same state"
    step(store, run.id, S.NONE)
    assert pools(store, run.id) == {}


@pytest.mark.spec("S71")
def test_a_stale_part_of_a_run_sets_no_pool(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    write = share(store, run.id, {}, pools=[(0, "other")])
    step(store, run.id, S.SCHEDULED)
    assert commit(store, write).stale == {run.id: []}
    assert pools(store, run.id) == {}


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


def test_clearing_a_missing_run_raises(store: Store) -> None:
    with pytest.raises(NotFound, match="there is no run number 7"):
        store.clear(7, [0], "ada", NOW)


@pytest.mark.spec("S437")
def test_a_clear_can_leave_the_run_ended(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    step(store, run.id, S.FAILED)
    finish(store, run.id, RunState.FAILED)
    before = store.run(run.id)
    assert before is not None
    cleared = store.clear(run.id, [0], "ada", NOW + 7, reset_run=False)
    assert cleared == before._replace(revision=before.revision + 1, journal_seq=before.journal_seq + 1, feed_seq=1)
    assert rows(store, run.id)[0].state == S.NONE.code
    assert store.active_runs() == []


# --- marking --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [S.SUCCESS, S.FAILED, S.SKIPPED])
def test_marking_sets_a_state_under_a_new_fence(store: Store, state: TaskState) -> None:
    with_dag(store, tasks=4)
    run = with_run(store)
    step(store, run.id, S.SCHEDULED, S.QUEUED, S.RUNNING, S.UP_FOR_RETRY)
    step(store, run.id, S.UPSTREAM_FAILED, slot=1)
    before = rows(store, run.id)
    marked = store.mark(run.id, [0, 1, 2], state, "ada", NOW + 9, "known good")
    assert marked.run == store.run(run.id)
    assert marked.live == [], "none of them had an attempt"
    cause = f"marked {state.value} by ada: known good"
    for slot in range(3):
        assert rows(store, run.id)[slot] == before[slot]._replace(
            state=state.code, fence=before[slot].fence + 1, ended_at=NOW + 9, reason=cause
        )
    assert rows(store, run.id)[3] == before[3]
    assert (marked.run.state, marked.run.ended_at) == (RunState.RUNNING, None), "its run goes on"


@pytest.mark.spec("S451")
def test_marking_a_live_task_instance_ends_its_attempt(store: Store) -> None:
    """Queued or running: its attempt ends, and the result names the attempt."""
    with_dag(store)
    run = with_run(store)
    for slot, state in enumerate((S.QUEUED, S.RUNNING, S.RESTARTING)):
        step(store, run.id, S.QUEUED, *([state] if state is not S.QUEUED else []), slot=slot)
    fences = {slot: row.fence for slot, row in rows(store, run.id).items()}
    marked = store.mark(run.id, [0, 1, 2], S.SUCCESS, "ada", NOW, executors={0: "here"})
    assert marked.live == [(slot, fences[slot]) for slot in range(3)]
    assert {one[:2]: one[2:] for one in attempts(store, run.id)} == {
        (slot, fences[slot]): (NOW, "stopped", "marked success by ada") for slot in range(3)
    }
    snapshot = store.snapshot(run.id)
    assert snapshot is not None
    assert snapshot.live == []


@pytest.mark.spec("S448")
def test_marking_skips_instances_in_that_state_and_removed_ones(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    step(store, run.id, S.SUCCESS)
    step(store, run.id, S.REMOVED, slot=1)
    before, row = rows(store, run.id), store.run(run.id)
    assert row is not None
    assert store.mark(run.id, [0, 1, 77], S.SUCCESS, "ada", NOW).run == row._replace(revision=row.revision + 1, feed_seq=1)
    assert rows(store, run.id) == before


def test_a_scheduler_that_decided_before_the_mark_is_stale(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    step(store, run.id, S.SCHEDULED, S.QUEUED, S.RUNNING)
    late = share(store, run.id, {0: S.FAILED})
    store.mark(run.id, [0], S.SUCCESS, "ada", NOW)
    assert commit(store, late).stale == {run.id: []}
    assert rows(store, run.id)[0].state == S.SUCCESS.code


# --- the state of a run ---------------------------------------------------------------------------------------------------


@pytest.mark.spec("S191")
def test_a_person_sets_the_state_of_a_run(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    step(store, run.id, S.SUCCESS)
    failed = store.set_run_state(run.id, RunState.FAILED, "ada", NOW + 5, "bad data")
    assert (failed.state, failed.started_at, failed.ended_at) == (RunState.FAILED, NOW, NOW + 5)
    assert failed.reason == "marked failed by ada: bad data"
    assert store.active_runs() == []
    queued = store.set_run_state(run.id, RunState.QUEUED, "ada", NOW + 6)
    assert (queued.state, queued.queued_at, queued.started_at, queued.ended_at) == (RunState.QUEUED, NOW + 6, None, None)
    assert queued.reason is None
    assert store.active_runs() == [queued]
    never = store.set_run_state(run.id, RunState.SUCCESS, "ada", NOW + 7)
    assert (never.state, never.started_at, never.ended_at) == (RunState.SUCCESS, NOW + 7, NOW + 7)
    assert never.revision == queued.revision + 1
    assert [entry.kind for entry in store.feed(run.id)] == ["set run state"] * 3


def test_a_run_set_to_running_continues_and_fails_at_its_end(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    step(store, run.id, S.SUCCESS)
    failing = store.set_run_state(run.id, RunState.RUNNING, "ada", NOW + 5)
    assert (failing.state, failing.ended_at, failing.reason) == (RunState.RUNNING, None, "marked failed by ada")


# --- notes ----------------------------------------------------------------------------------------------------------------


def test_notes_of_runs_and_of_task_instances(store: Store) -> None:
    """They change nothing else: the run's revision stays."""
    with_dag(store)
    run = with_run(store)
    assert store.set_run_note(run.id, "look here", "ada", NOW) == run._replace(note="look here")
    assert store.set_run_note(run.id, None, "ada", NOW) == run
    store.set_task_notes(run.id, [0, 2, 77], "slow", "ada", NOW)
    store.set_task_notes(run.id, [2], None, "ada", NOW)
    assert notes(store, run.id) == {0: "slow"}
    assert store.run(run.id) == run


def test_editing_a_missing_run_raises(store: Store) -> None:
    for edit in (
        lambda: store.mark(7, [0], S.SUCCESS, "ada", NOW),
        lambda: store.set_run_state(7, RunState.FAILED, "ada", NOW),
        lambda: store.set_run_note(7, "x", "ada", NOW),
        lambda: store.set_task_notes(7, [0], "x", "ada", NOW),
    ):
        with pytest.raises(NotFound, match="there is no run number 7"):
            edit()
