"""The group commit: each run's part whole or not at all; guards name what did not match."""

from __future__ import annotations

import pytest

from tests.unit.store.suite.build import NOW, S, commit, due, new_run, rows, share, step, with_dag, with_run, xcom
from tradewind.model.branch import Branch
from tradewind.model.errors import Conflict, Stale, StoreError
from tradewind.model.rows import (
    AttemptEnd,
    AttemptStart,
    LiveAttempt,
    NewTaskRow,
    ScheduledRun,
    SchedulePosition,
    Skipped,
    TaskWrite,
)
from tradewind.model.states import RunState, RunType
from tradewind.store.port import Store


def start(slot: int = 0, fence: int = 1, nonce: str = "n1") -> AttemptStart:
    return AttemptStart(slot, fence, 1, "LocalExecutor", "host", "box", 4711, nonce, NOW, NOW + 5)


def end(slot: int = 0, fence: int = 1, outcome: str = "success") -> AttemptEnd:
    return AttemptEnd(slot, fence, 1, "LocalExecutor", NOW, NOW + 9, outcome, None, 0, None)


def test_a_commit_changes_rows_and_increments_the_revision(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    answer = commit(store, share(store, run.id, {0: S.SCHEDULED}, reason="under way"))
    assert answer.stale == {}
    now = store.run(run.id)
    assert now == run._replace(state=RunState.RUNNING, started_at=NOW, revision=1, journal_seq=1, reason="under way")
    assert [row.state for row in rows(store, run.id).values()] == [S.SCHEDULED.code, 0, 0]


def test_mapped_instances_are_created_and_changed_in_one_batch(store: Store) -> None:
    """New rows come after all others. A second creation of the same row rolls the whole part of the run back."""
    with_dag(store)
    run = with_run(store)
    new_rows = [NewTaskRow(3, "t1", 1, 4), NewTaskRow(4, "t1", 2, 4)]
    write = share(store, run.id, {1: S.SCHEDULED}, new_rows=new_rows, labels=[(1, "first")])
    write.tasks[0] = write.tasks[0]._replace(row=write.tasks[0].row._replace(map_index=0))
    born = write.tasks[0].row._replace(slot=3, map_index=1, max_tries=4)
    write.tasks.append(TaskWrite(born, S.NONE.code, 0))
    assert commit(store, write).stale == {}
    found = rows(store, run.id)
    assert [(row.task_id, row.map_index, row.state) for row in found.values()] == [
        ("t0", -1, 0),
        ("t1", 0, S.SCHEDULED.code),
        ("t2", -1, 0),
        ("t1", 1, S.SCHEDULED.code),
        ("t1", 2, 0),
    ]
    with pytest.raises(StoreError, match=r"slot 3|UNIQUE|already"):
        commit(store, share(store, run.id, {0: S.SCHEDULED}, new_rows=new_rows))
    assert rows(store, run.id) == found


def test_every_field_of_a_row_is_read_as_it_was_written(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    write = share(store, run.id, {1: S.UP_FOR_RETRY})
    full = write.tasks[0].row._replace(
        fence=7,
        try_number=3,
        max_tries=5,
        resume=True,
        requeues=2,
        due_at=NOW + 1,
        queued_at=NOW + 2,
        started_at=NOW + 3,
        ended_at=NOW + 4,
        reason="it failed: ✗",
        branch=Branch("follow", ("t2",), True),
        map_index=0,
        length=12,
    )
    write.tasks[0] = write.tasks[0]._replace(row=full)
    commit(store, write)
    assert rows(store, run.id)[1] == full


@pytest.mark.parametrize("wrong", ["state", "fence"])
def test_a_guard_that_does_not_match_names_its_slots_and_writes_nothing(store: Store, wrong: str) -> None:
    with_dag(store)
    run = with_run(store)
    write = share(
        store, run.id, {0: S.SCHEDULED, 1: S.SCHEDULED, 2: S.SCHEDULED}, starts=[start()], ends=[end(1)], xcoms=[xcom("t0")]
    )
    for place in (0, 2):
        task = write.tasks[place]
        write.tasks[place] = (
            task._replace(expected_state=S.RUNNING.code) if wrong == "state" else task._replace(expected_fence=9)
        )
    before = store.snapshot(run.id)
    assert commit(store, write).stale == {run.id: [0, 2]}
    assert store.snapshot(run.id) == before
    assert store.xcoms(run.id, ["t0"], "return_value") == []


def test_a_row_that_already_has_the_new_state_is_named_too(store: Store) -> None:
    """The same part sent twice: the rows already have the new states, but it must not count again."""
    with_dag(store)
    run = with_run(store)
    first = share(store, run.id, {0: S.SCHEDULED, 1: S.SCHEDULED})
    commit(store, first)
    first.revision, first.journal_seq = 1, 2
    assert commit(store, first).stale == {run.id: [0, 1]}


def test_another_revision_is_stale_without_slots(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    late = share(store, run.id, {0: S.SCHEDULED})
    step(store, run.id, S.SCHEDULED, slot=1)
    assert commit(store, late).stale == {run.id: []}
    assert rows(store, run.id)[0].state == 0


def test_a_second_part_of_one_run_in_one_batch_is_stale(store: Store) -> None:
    """Guessing the next revision is not enough: the part must also continue the journal at its end."""
    with_dag(store)
    run = with_run(store)
    first = share(store, run.id, {0: S.SCHEDULED})
    second = share(store, run.id, {})
    second.revision += 1
    answer = commit(store, first, second)
    assert answer.stale == {run.id: []}
    assert [row.state for row in rows(store, run.id).values()] == [S.SCHEDULED.code, 0, 0]
    found = store.run(run.id)
    assert found is not None
    assert (found.revision, found.journal_seq) == (1, 1)


def test_a_missing_run_is_stale(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    write = share(store, run.id, {})
    write.run = 999
    assert commit(store, write).stale == {999: []}


def test_a_missing_row_is_stale(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    write = share(store, run.id, {0: S.SCHEDULED})
    write.tasks.append(write.tasks[0]._replace(row=write.tasks[0].row._replace(slot=77)))
    assert commit(store, write).stale == {run.id: [77]}


def test_one_stale_run_does_not_stop_the_others(store: Store) -> None:
    with_dag(store)
    one, two, three = (with_run(store, f"r{i}") for i in range(3))
    writes = [share(store, run.id, {0: S.SCHEDULED}) for run in (one, two, three)]
    writes[1].tasks[0] = writes[1].tasks[0]._replace(expected_fence=4)
    answer = commit(store, *writes, new_runs=[due(new_run(store, "r4"))])
    assert answer.stale == {two.id: [0]}
    assert [rows(store, run.id)[0].state for run in (one, two, three)] == [S.SCHEDULED.code, 0, S.SCHEDULED.code]
    assert answer.created[0].run_id == "r4"


def test_a_part_that_depends_on_a_stale_one_is_stale_too(store: Store) -> None:
    with_dag(store)
    runs = [with_run(store, f"r{i}") for i in range(4)]
    writes = [share(store, run.id, {0: S.SCHEDULED}) for run in runs]
    writes[0].tasks[0] = writes[0].tasks[0]._replace(expected_fence=4)
    writes[1].after, writes[2].after, writes[3].after = frozenset({runs[0].id}), frozenset({runs[1].id}), frozenset({4711})
    assert commit(store, *writes).stale == {runs[0].id: [0], runs[1].id: [], runs[2].id: []}
    assert [rows(store, run.id)[0].state for run in runs] == [0, 0, 0, S.SCHEDULED.code]


def test_a_superseded_scheduler_writes_nothing(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    old, new = (store.begin_epoch("box", 1, "boot", NOW) for _ in range(2))
    assert new > old
    with pytest.raises(Stale, match=f"epoch {old} was superseded by {new}"):
        commit(store, share(store, run.id, {0: S.SCHEDULED}), epoch=old)
    assert commit(store, share(store, run.id, {0: S.SCHEDULED}), epoch=new).stale == {}


def test_a_run_written_under_a_newer_epoch_refuses_writes_without_one(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    epoch = store.begin_epoch("box", 1, "boot", NOW)
    commit(store, share(store, run.id, {0: S.SCHEDULED}), epoch=epoch)
    assert commit(store, share(store, run.id, {1: S.SCHEDULED}), epoch=0).stale == {run.id: []}


def test_live_attempts_are_part_of_the_snapshot(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    step(store, run.id, S.SCHEDULED, S.QUEUED)
    step(store, run.id, S.RUNNING, starts=[start()])
    snapshot = store.snapshot(run.id)
    assert snapshot is not None
    assert snapshot.live == [LiveAttempt(0, 1, "n1", "host")]
    step(store, run.id, S.SUCCESS, ends=[end()])
    snapshot = store.snapshot(run.id)
    assert snapshot is not None
    assert snapshot.live == []


def test_an_attempt_may_end_without_having_started(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    step(store, run.id, S.SCHEDULED, S.QUEUED)
    step(store, run.id, S.FAILED, ends=[end(outcome="failed")])
    snapshot = store.snapshot(run.id)
    assert snapshot is not None
    assert snapshot.live == []


def test_xcoms_of_an_earlier_attempt_are_replaced_in_one_commit(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    step(store, run.id, S.SCHEDULED, xcoms=[xcom("t0", b"1"), xcom("t0", b"2", "other"), xcom("t1", b"3")])
    step(store, run.id, S.QUEUED, cleared_xcoms=[("t0", -1)], xcoms=[xcom("t0", b"4")])
    assert store.xcoms(run.id, ["t0", "t1"], "return_value") == [("t0", -1, b"4", None), ("t1", -1, b"3", None)]
    assert store.xcoms(run.id, ["t0"], "other") == []


def test_the_schedule_moves_with_the_run_it_created(store: Store) -> None:
    version = with_dag(store)
    times = (NOW, NOW, NOW + 10, NOW + 10)
    new = new_run(store, "scheduled__1", day=0, run_type=RunType.SCHEDULED)
    answer = commit(store, new_runs=[ScheduledRun(new, SchedulePosition("d", None, times, None))])
    assert answer.created[0].version == version
    assert store.need_dag("d").last == times


def test_a_schedule_at_another_position_gets_neither_run_nor_position(store: Store) -> None:
    """A person may have reset it meanwhile: then the run was decided from old data."""
    for dag_id in ("d", "other"):
        with_dag(store, dag_id)
    elsewhere = (NOW + 5, NOW, NOW, NOW)
    wrong = due(new_run(store, "scheduled__1", day=1), elsewhere)
    later = due(new_run(store, "scheduled__2", day=2), wrong.position.last)
    good = due(new_run(store, "scheduled__1", "other", day=1))
    shown = SchedulePosition("d", elsewhere, elsewhere, None)
    assert commit(store, positions=[shown]).moved == {"d"}
    answer = commit(store, new_runs=[wrong, later, good])
    assert [row.dag_id for row in answer.created] == ["other"]
    assert answer.moved == {"d"}
    assert store.need_dag("d").last is None
    assert store.runs_between("d", None, None) == []


def test_a_position_that_was_planned_from_a_new_run_is_written_after_it(store: Store) -> None:
    """A custom timetable may answer between the creation of a run and the commit: the answer's position depends on that run."""
    with_dag(store)
    new = due(new_run(store, "scheduled__1", day=1))
    answer = commit(store, new_runs=[new], positions=[SchedulePosition("d", new.position.last, new.position.last, None)])
    assert (len(answer.created), answer.moved) == (1, frozenset())


def test_a_batch_that_fails_leaves_nothing_behind(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    first = due(new_run(store, "r2"))
    with pytest.raises(Conflict):
        commit(
            store,
            share(store, run.id, {0: S.SCHEDULED}),
            new_runs=[first, due(new_run(store, "r1"), first.position.last)],
        )
    assert store.run(run.id) == run
    assert store.find_run("d", "r2") is None
    assert store.need_dag("d").last is None


def test_an_empty_batch_is_fine(store: Store) -> None:
    assert commit(store) == ({}, [], {}, frozenset(), frozenset())


def test_skipped_intervals_are_written_with_the_position(store: Store) -> None:
    with_dag(store)
    times = (NOW, NOW, NOW, NOW)
    first, second = Skipped(NOW - 9, NOW, "why", NOW), Skipped(NOW - 5, NOW + 1, "why", NOW + 1)
    for one in (first, second, first._replace(at=NOW + 2)):
        before = store.need_dag("d").last
        assert commit(store, positions=[SchedulePosition("d", before, times, None, one)]).moved == frozenset()
    assert commit(store, positions=[SchedulePosition("nobody", None, times, None, first)]).moved == {"nobody"}
    assert store.skipped("d") == [second, first], "said again it is the same"
    assert store.skipped("d", 1) == [second]
    assert store.skipped("nobody") == []
