"""Transactions, epochs, results of commands, retention, jobs, logins."""

from __future__ import annotations

import pytest

from tests.unit.store.suite.build import NOW, S, finish, new_run, parsed, step, with_dag, with_run, xcom
from tradewind.model.errors import Conflict, NotFound, Stale
from tradewind.model.moments import DAY
from tradewind.model.rows import NewJob, PoolRow, RemovedRun, RetiredLog, VariableRow
from tradewind.model.states import RunState
from tradewind.store.port import Store
from tradewind.store.port.services import STALE_GATEWAYS
from tradewind.store.sql.jobs import KEPT_JOBS


class Stop(BaseException):
    """An exception that is not one of ours."""


def variable(key: str, value: bytes = b"1") -> VariableRow:
    return VariableRow(key, value, None, False)


# --- transactions -----------------------------------------------------------------------------------------------------


def test_several_operations_are_one_transaction(store: Store) -> None:
    with store.transaction():
        store.set_variable(variable("a"), "ada", NOW)
        store.add_outbox_item("mail", "1", b"", NOW)
    assert store.variable("a") is not None
    assert len(store.due_outbox_items(NOW)) == 1


def test_any_exception_rolls_back_everything(store: Store) -> None:
    with_dag(store)
    run = with_run(store)
    store.set_variable(variable("a"), "ada", NOW)
    store.push_xcoms(run.id, [xcom("t0")])
    before = (store.snapshot(run.id), store.variables(), store.pools(), store.plans(), store.active_runs())

    def much() -> None:
        with store.transaction():
            step(store, run.id, S.SCHEDULED, S.QUEUED, xcoms=[xcom("t0", b"2")])
            store.clear(run.id, [0], "ada", NOW)
            with_run(store, "r2", day=4)
            store.set_variable(variable("a", b"2"), "ada", NOW)
            store.set_variable(variable("b"), "ada", NOW)
            store.delete_variable("a", "ada", NOW)
            store.set_pool(PoolRow("p", 1, None, False), "ada", NOW)
            store.add_outbox_item("mail", "1", b"", NOW)
            store.save_command_result("op", b"answer", NOW)
            store.set_paused("d", True, "ada", NOW)
            finish(store, run.id)
            store.delete_old_runs(NOW + 1, 0, NOW)
            store.register_file(parsed(), paused_at_creation=False)
            raise Stop

    with pytest.raises(Stop):
        much()
    assert (store.snapshot(run.id), store.variables(), store.pools(), store.plans(), store.active_runs()) == before
    assert store.xcoms(run.id, ["t0"], "return_value") == [("t0", -1, b"1", None)]
    assert store.find_run("d", "r2") is None
    assert store.due_outbox_items(NOW) == []
    assert store.command_result("op") is None
    again = with_run(store, "r2", day=4)
    assert again.id == run.id + 1


def test_an_operation_that_fails_inside_a_transaction_leaves_nothing(store: Store) -> None:
    with_dag(store)
    with_run(store)

    def lose() -> None:
        with store.transaction():
            store.set_variable(variable("lost"), "ada", NOW)
            store.create_run(new_run(store, "r1"))

    with store.transaction():
        store.set_variable(variable("kept"), "ada", NOW)
        with pytest.raises(Conflict):
            lose()
        with pytest.raises(NotFound):
            store.delete_variable("nobody", "ada", NOW)
        store.set_variable(variable("too"), "ada", NOW)
    assert [row.key for row in store.variables()] == ["kept", "too"]


# --- epochs, hosts, commands --------------------------------------------------------------------------------------------


def test_epochs_only_grow(store: Store) -> None:
    assert store.epoch() == 0
    epochs = [store.begin_epoch("box", 1, "boot", NOW) for _ in range(150)]
    assert epochs == sorted(set(epochs))
    assert store.epoch() == epochs[-1]


def test_a_worker_host_may_connect_again_and_from_another_machine(store: Store) -> None:
    for name, hostname in (("h1", "box"), ("h1", "box"), ("h2", "box"), ("h2", "renamed")):
        store.record_worker_host(name, hostname, 1, 0, NOW)


def test_the_gateways_of_a_worker_are_replaced(store: Store) -> None:
    epoch = store.begin_epoch("box", 1, "boot", NOW)
    assert store.worker_gateways() == {}
    for worker, gateways in (("a@remote", {"g1"}), ("b@remote", {"g1", "g2"}), ("a@remote", {"g2"})):
        store.record_worker_gateways(worker, gateways, NOW, epoch)
    assert store.worker_gateways() == {"a@remote": {"g2"}, "b@remote": {"g1", "g2"}}


def test_the_gateways_of_a_worker_that_does_not_exist_any_more_are_forgotten(store: Store) -> None:
    epoch = store.begin_epoch("box", 1, "boot", NOW)
    store.record_worker_gateways("old@remote", {"g1"}, NOW, epoch)
    store.record_worker_gateways("new@remote", {"g1"}, NOW + STALE_GATEWAYS, epoch)
    assert store.worker_gateways().keys() == {"old@remote", "new@remote"}
    store.record_worker_gateways("new@remote", {"g1"}, NOW + STALE_GATEWAYS + 1, epoch)
    assert store.worker_gateways().keys() == {"new@remote"}


def test_a_former_scheduler_stores_no_gateway(store: Store) -> None:
    """The scheduler after it has read which gateways there are."""
    epoch = store.begin_epoch("box", 1, "boot", NOW)
    store.begin_epoch("other", 2, "boot", NOW)
    with pytest.raises(Stale):
        store.record_worker_gateways("a@remote", {"g1"}, NOW, epoch)
    assert store.worker_gateways() == {}


def test_the_first_result_of_a_command_stays(store: Store) -> None:
    assert store.command_result("op") is None
    store.save_command_result("op", b"first", NOW)
    store.save_command_result("op", b"second", NOW)
    assert store.command_result("op") == b"first"


# --- retention ------------------------------------------------------------------------------------------------------------


def ended(store: Store, run_id: str, at: int, dag_id: str = "d", **fields: int) -> int:
    run = with_run(store, run_id, dag_id, run_after=at, **fields)
    step(store, run.id, S.SUCCESS)
    finish(store, run.id, RunState.SUCCESS, at)
    return run.id


def test_old_finished_runs_are_deleted_with_everything_of_theirs(store: Store) -> None:
    with_dag(store)
    old = ended(store, "old", NOW - 9 * DAY)
    store.push_xcoms(old, [xcom("t0", None, spill="file1"), xcom("t1", b"1")])
    young = ended(store, "young", NOW - DAY)
    active = with_run(store, "active", run_after=NOW - 20 * DAY).id
    removed = store.delete_old_runs(NOW - 5 * DAY, 0, NOW)
    assert (removed.removed, removed.spills) == ([RemovedRun(old, "d", "old", None)], ["file1"])
    assert (store.run(old), store.snapshot(old), store.find_run("d", "old")) == (None, None, None)
    assert store.xcoms(old, ["t0", "t1"], "return_value") == []
    assert store.run(young) is not None
    assert store.run(active) is not None
    assert store.delete_old_runs(NOW - 5 * DAY, 0, NOW) == ([], [])


def test_the_newest_runs_of_each_dag_stay(store: Store) -> None:
    for dag_id in ("a", "b"):
        with_dag(store, dag_id)
        for day in range(4):
            ended(store, f"r{day}", NOW - (9 - day) * DAY, dag_id)
    assert store.delete_old_runs(NOW, 3, NOW).runs == 2
    assert [store.find_run(dag_id, "r0") for dag_id in ("a", "b")] == [None, None]
    assert store.find_run("a", "r1") is not None


def test_old_runs_are_deleted_in_steps_the_oldest_end_first(store: Store) -> None:
    with_dag(store)
    for day in range(5):
        ended(store, f"r{day}", NOW - (9 - day) * DAY)
    with_run(store, "active")
    assert [store.delete_old_runs(NOW, 0, NOW, at_most=2).runs for _ in range(4)] == [2, 2, 1, 0]


def test_a_spilled_file_that_another_run_refers_to_stays(store: Store) -> None:
    """Spill files are named by content: equal values of two runs are one file."""
    with_dag(store)
    old, young = ended(store, "old", NOW - 9 * DAY), ended(store, "young", NOW - DAY)
    store.push_xcoms(old, [xcom("t0", None, spill="both"), xcom("t1", None, spill="mine"), xcom("t2", None, spill="mine")])
    store.push_xcoms(young, [xcom("t0", None, spill="both")])
    assert store.delete_old_runs(NOW - 5 * DAY, 0, NOW).spills == ["mine"]


def test_the_spilled_files_that_a_value_refers_to(store: Store) -> None:
    with_dag(store)
    run = with_run(store, "r1").id
    store.push_xcoms(run, [xcom("t0", None, spill="one"), xcom("t1", b"1")])
    assert store.used_spills(["one", "two"]) == {"one"}
    store.push_xcoms(run, [xcom("t0", None, spill="two")])
    assert store.used_spills(["one", "two"]) == {"two"}
    assert store.used_spills([]) == set()


def test_no_run_number_is_used_twice(store: Store) -> None:
    with_dag(store)
    last = ended(store, "r1", NOW - 9 * DAY)
    store.delete_old_runs(NOW, 0, NOW)
    assert with_run(store, "r2").id > last


def test_retention_of_one_dag_leaves_the_others(store: Store) -> None:
    with_dag(store)
    with_dag(store, "other")
    ended(store, "r1", NOW - 9 * DAY)
    finish(store, with_run(store, "r1", "other").id, at=NOW - 9 * DAY)
    with_run(store, "newest")
    assert store.delete_old_runs(NOW, 0, NOW, dag_id="other").runs == 1
    assert store.find_run("d", "r1") is not None


def test_a_dag_is_deleted_in_steps_with_all_its_runs(store: Store) -> None:
    with_dag(store, "other")
    with_dag(store)
    stays = with_run(store, "stays", "other")
    for number in range(3):
        last = ended(store, f"r{number}", NOW)
    store.push_xcoms(last, [xcom("t0", None, spill="file")])
    version = max(store.need_dag(name).version for name in ("d", "other"))
    assert store.delete_dag("d", "ada", NOW, at_most=2)[1] is False
    assert store.dag("d") is not None
    removed, gone = store.delete_dag("d", "ada", NOW, at_most=2)
    assert (removed.runs, removed.spills, gone) == (1, ["file"], True)
    assert store.dag("d") is None
    with pytest.raises(NotFound):
        store.need_dag("d")
    assert store.run(stays.id) == stays
    with_dag(store)
    assert with_run(store, "r0").id > last, "no number comes twice"
    assert store.need_dag("d").version > version, "nor one of a version: schedulers and readers keep definitions by it"


def test_a_dag_with_an_unfinished_run_is_not_deleted(store: Store) -> None:
    with_dag(store)
    with_run(store, "live")
    with pytest.raises(Conflict, match="live"):
        store.delete_dag("d", "ada", NOW)
    assert store.find_run("d", "live") is not None


def test_a_logical_date_is_free_again_when_its_run_is_deleted(store: Store) -> None:
    with_dag(store)
    ended(store, "r1", NOW - 9 * DAY, day=1)
    with_run(store, "newest")
    assert store.delete_old_runs(NOW, 0, NOW).runs == 1
    with_run(store, "r1", day=1)


def test_results_of_commands_are_kept_for_a_day(store: Store) -> None:
    store.save_command_result("old", b"", NOW - DAY - 1)
    store.save_command_result("young", b"1", NOW - DAY + 1)
    store.delete_old_runs(0, 0, NOW)
    assert store.command_result("old") is None
    assert store.command_result("young") == b"1"


def test_the_logs_of_a_deleted_run_are_noted_for_deletion(store: Store) -> None:
    with_dag(store)
    ended(store, "old", NOW - 9 * DAY)
    ended(store, "older", NOW - 10 * DAY)
    ended(store, "young", NOW - DAY)
    assert store.logs_to_delete(10) == []
    store.delete_old_runs(NOW - 5 * DAY, 0, NOW)
    known = [RetiredLog("d", "old", NOW), RetiredLog("d", "older", NOW)]
    assert store.logs_to_delete(10) == known
    assert store.logs_to_delete(1) == known[:1]
    store.delete_log_entries([known[0], known[1]._replace(at=NOW - 1)])
    assert store.logs_to_delete(10) == known[1:], "the other was deleted again since"
    store.delete_dag("d", "ada", NOW + 1)
    assert {one.run_id for one in store.logs_to_delete(10)} == {"older", "young"}


# --- jobs -----------------------------------------------------------------------------------------------------------------


def job(life: str, job_type: str = "SchedulerJob") -> NewJob:
    return NewJob(life, job_type, "box", "ada", 7, "LocalExecutor" if job_type == "SchedulerJob" else None)


@pytest.mark.spec("S195")
def test_a_job_is_running_from_its_start(store: Store) -> None:
    store.begin_job(job("one"), NOW)
    (row,) = store.jobs(10)
    assert (row.service_id, row.state, row.started_at, row.ended_at, row.reason) == ("one", "running", NOW, None, None)
    assert (row.hostname, row.unixname, row.pid) == ("box", "ada", 7)


@pytest.mark.spec("S196", "S197")
@pytest.mark.parametrize(("well", "state", "reason"), [(True, "success", None), (False, "failed", "its connection broke")])
def test_a_job_ends_as_a_success_or_as_a_failure(store: Store, well: bool, state: str, reason: str | None) -> None:
    store.begin_job(job("one"), NOW)
    assert store.end_job("one", well, NOW + 9, reason)
    assert store.end_job("one", not well, NOW + 20) is False, "it has ended already"
    assert [(row.state, row.reason) for row in store.jobs(10)] == [(state, reason)]


@pytest.mark.spec("S198")
def test_a_job_keeps_its_last_heartbeat_and_its_end(store: Store) -> None:
    store.begin_job(job("one"), NOW)
    store.begin_job(job("later", "LocalExecutorJob"), NOW + 1)
    store.write_heartbeats(["one"], NOW + 5)
    store.end_job("one", True, NOW + 9)
    store.write_heartbeats(["one", "later"], NOW + 20)
    assert [(row.service_id, row.heartbeat_at, row.ended_at) for row in store.jobs(10)] == [
        ("later", NOW + 20, None),
        ("one", NOW + 5, NOW + 9),
    ], "the newest first; what has ended has no heartbeat"


def test_a_service_that_was_only_unreachable_keeps_its_job(store: Store) -> None:
    store.begin_job(job("host", "LocalExecutorJob"), NOW)
    store.end_job("host", False, NOW + 1, "its connection broke")
    store.begin_job(job("host", "LocalExecutorJob"), NOW + 2)
    (one,) = store.jobs(10)
    assert (one.state, one.started_at, one.heartbeat_at, one.ended_at, one.reason) == ("running", NOW, NOW + 2, None, None)


def test_a_killed_service_ended_at_its_last_heartbeat(store: Store) -> None:
    store.begin_job(job("old"), NOW)
    store.begin_job(job("host", "LocalExecutorJob"), NOW)
    store.write_heartbeats(["old"], NOW + 5)
    assert store.end_lost_jobs(NOW + 6, NOW + 60, "gone", "SchedulerJob") == ["old"]
    assert store.end_lost_jobs(NOW + 6, NOW + 60, "gone", "SchedulerJob") == []
    assert [(one.state, one.ended_at) for one in store.jobs(10)] == [("running", None), ("failed", NOW + 5)]
    assert store.end_lost_jobs(NOW, NOW + 60, "gone") == [], "it is not silent for so long"


def test_the_latest_jobs_and_all_running_ones_are_kept(store: Store) -> None:
    store.begin_job(job("runs", "LocalExecutorJob"), NOW)
    for number in range(KEPT_JOBS + 5):
        store.begin_job(job(f"life{number}"), NOW)
        store.end_job(f"life{number}", True, NOW)
    kept = store.jobs(5000)
    assert len(kept) == KEPT_JOBS + 1
    assert kept[-1].service_id == "runs"


# --- logins -----------------------------------------------------------------------------------------------------------


def test_a_revoked_token_is_kept_until_it_would_have_expired(store: Store) -> None:
    assert not store.token_revoked("a")
    assert store.revoke_token("a", NOW + DAY, NOW)
    assert not store.revoke_token("a", NOW + DAY, NOW), "it is known already"
    store.revoke_token("b", NOW + 2 * DAY, NOW + DAY - 1)
    assert [store.token_revoked(jti) for jti in ("a", "b", "c")] == [True, True, False]
    store.delete_old_runs(0, 0, NOW + DAY)
    assert [store.token_revoked(jti) for jti in ("a", "b")] == [False, True]
    store.revoke_token("c", NOW + 3 * DAY, NOW + 2 * DAY)
    assert [store.token_revoked(jti) for jti in ("b", "c")] == [False, True]
