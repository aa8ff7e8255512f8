"""Waits of task instances that are deferred now."""

from __future__ import annotations

from tests.unit.store.suite.build import NOW, S, commit, share, step, with_dag, with_run
from tradewind.model.rows import DeferralRow, OpenWaitRow
from tradewind.model.waits import Deferral, MomentWait
from tradewind.store.port import Store


def test_open_waits_are_listed_the_longest_first(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    rows = [DeferralRow(slot, 0, since, Deferral(MomentWait(5))) for slot, since in ((0, NOW + 2), (1, NOW + 1))]
    commit(store, share(store, run.id, {0: S.DEFERRED, 1: S.DEFERRED}, deferrals=rows))
    names = [task.task_id for task in store.definition(run.version).tasks]
    found = store.open_waits()
    assert found == [
        OpenWaitRow(run.id, 1, names[1], -1, NOW + 1, Deferral(MomentWait(5))),
        OpenWaitRow(run.id, 0, names[0], -1, NOW + 2, Deferral(MomentWait(5))),
    ]
    assert store.open_waits(run=run.id, dag_id=run.dag_id) == found
    assert store.open_waits(at_most=1) == found[:1]
    assert store.open_waits(run=run.id + 1) == store.open_waits(dag_id="another") == []
    step(store, run.id, S.SUCCESS)
    assert [one.slot for one in store.open_waits()] == [1], "the row may stay, the wait is over"


def test_states_of_a_few_tasks_and_of_many(store: Store) -> None:
    """Few names are compared by the database, many in Python: the result is the same."""
    with_dag(store, tasks=600)
    run = with_run(store)
    names = [task.task_id for task in store.definition(run.version).tasks]
    step(store, run.id, S.SCHEDULED, slot=7)
    few, many = store.states_of(run.id, names[5:9]), store.states_of(run.id, names)
    assert few == {name: many[name] for name in names[5:9]}
    assert few[names[7]] == [S.SCHEDULED.code]
    assert len(many) == 600
    assert store.states_of(run.id, []) == store.states_of(run.id, ["nobody"]) == {}
