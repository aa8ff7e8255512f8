"""Which attempts the KubernetesExecutor asks pods for, and what their workers get."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import pytest

from tradewind.executors.kubernetes import KubernetesExecutor, KubernetesExecutorBesideCelery
from tradewind.executors.pod_registry import PodNews
from tradewind.executors.port import TaskKey
from tradewind.model.executor_names import CELERY, KUBERNETES, LOCAL
from tradewind.model.waits import TriggerWait
from tradewind.platform.clock import ManualClock
from tradewind.wire.messages import (
    AttemptKey,
    Cancel,
    EndLog,
    FromScheduler,
    LastLine,
    RunTriggers,
    Submit,
    TriggerOrder,
    Withdraw,
    Workload,
)


class World:
    """An executor, its pods, and what its workers were sent."""

    def __init__(self) -> None:
        self.wanted: list[AttemptKey] = []
        self.dropped: list[TaskKey | AttemptKey] = []
        self.up: list[AttemptKey] = []
        self.news: list[PodNews] = []
        self.gone: list[tuple[AttemptKey, str, bool]] = []
        self.fences: Callable[[TaskKey], int | None] = lambda task: None
        self.sent: dict[str, list[FromScheduler]] = {}
        self.published: list[AttemptKey] = []
        self.executor = KubernetesExecutor(self, lambda worker: True)

    # the interface of the launcher

    def want(self, workload: Workload) -> None:
        self.wanted.append(workload.key)

    def connected(self, attempt: AttemptKey) -> None:
        self.up.append(attempt)

    def drop(self, task: TaskKey) -> None:
        self.dropped.append(task)

    def drop_attempt(self, attempt: AttemptKey) -> None:
        self.dropped.append(attempt)

    def retain(self, tasks: Collection[TaskKey], fence_of: Callable[[TaskKey], int | None]) -> None:
        self.fences = fence_of

    def why(self, attempt: AttemptKey) -> str:
        return "its pod is pending"

    def take_news(self) -> tuple[list[PodNews], bool]:
        return self.news, False

    # for tests

    def publish(self, workloads: Sequence[Workload]) -> None:
        self.published += [one.key for one in workloads]

    def connect(self, worker: str, process: str = "p", live: tuple[AttemptKey, ...] = (), slots: int = 0) -> None:
        messages = self.sent[worker] = []
        self.executor.connect(f"{worker}.{process}", messages.append, live=live, slots=slots)

    def submitted(self, worker: str) -> list[AttemptKey]:
        return [work.key for one in self.sent[worker] if isinstance(one, Submit) for work in one.workloads]

    def apply(self, *news: PodNews) -> None:
        self.news = list(news)

        def gone(attempt: AttemptKey, worker: str, reason: str, *, processes_ended: bool) -> None:
            self.gone.append((attempt, worker, processes_ended))

        self.executor.apply_news(gone)


def work(slot: int, fence: int = 1, executor: str = KUBERNETES, previous: str = "") -> Workload:
    return Workload(1, slot, fence, "etl", f"t{slot}", "r1", executor=executor, previous_host=previous)


@pytest.fixture
def world() -> World:
    return World()


def test_an_attempt_gets_a_pod_and_only_its_worker_gets_the_attempt(world: World) -> None:
    world.connect("w1")
    world.executor.submit([work(1), work(2)])
    assert world.wanted == [(1, 1, 1), (1, 2, 1)]
    assert world.sent["w1"] == []
    assert world.executor.waits_for((1, 1, 1)) == "its pod is pending"
    world.connect("pod-1-1-1@remote")
    world.executor.submit([work(1)])
    assert world.submitted("pod-1-1-1@remote") == [(1, 1, 1)]
    assert (world.executor.worker_of((1, 1, 1)), world.up) == ("pod-1-1-1@remote", [(1, 1, 1)])
    assert world.executor.waits_for((1, 1, 1)) == ""
    assert len(world.wanted) == 2


def test_a_pod_gets_nothing_but_its_attempt(world: World) -> None:
    """No attempt of another executor, no trigger, and no last line of another log."""
    world.connect("pod-1-1-1@remote")
    world.executor.submit([work(5, executor=LOCAL), work(1, fence=2)])
    world.executor.run_triggers([TriggerOrder((1, 9, 1), TriggerWait("triggers.Time", b"{}"), "etl", "t", "r1")])
    world.executor.end_log(LastLine("info", "text", "log"))
    assert world.sent["pod-1-1-1@remote"] == []
    assert (world.executor.ready, world.executor.runs_triggers) == (True, False)
    world.connect("w1")
    assert world.executor.runs_triggers
    world.executor.run_triggers([TriggerOrder((1, 9, 1), TriggerWait("triggers.Time", b"{}"), "etl", "t", "r1")])
    world.executor.end_log(LastLine("info", "text", "log"))
    assert [type(one) for one in world.sent["w1"]] == [Submit, RunTriggers, EndLog]


def test_other_executors_work_beside_it(world: World) -> None:
    world.executor = KubernetesExecutorBesideCelery(world, world, ManualClock(), lambda worker: True)
    world.connect("w1")
    celery: list[FromScheduler] = []
    world.executor.connect("c1.p", celery.append, executors=(CELERY,), slots=4)
    world.executor.submit([work(1), work(2, executor=LOCAL), work(3, executor=CELERY)])
    assert (world.wanted, world.submitted("w1"), world.published) == ([(1, 1, 1)], [(1, 2, 1)], [(1, 3, 1)])
    assert all(world.executor.serves(one, "default") for one in (KUBERNETES, LOCAL, CELERY))


def test_a_released_task_needs_its_pod_no_more(world: World) -> None:
    world.executor.submit([work(1)])
    world.executor.release((1, 1))
    assert world.dropped == [(1, 1)]


def test_the_assignment_of_an_attempt_keeps_its_pod(world: World) -> None:
    world.executor.submit([work(1)])
    world.connect("pod-1-1-1@remote", live=((1, 1, 1),))
    assert world.dropped == []
    world.executor.retain({(1, 1)})
    assert (world.fences((1, 1)), world.fences((1, 2))) == (1, None)


def test_a_cancelled_attempt_ends_through_its_worker_or_else_with_its_pod(world: World) -> None:
    world.connect("pod-1-1-1@remote", live=((1, 1, 1),))
    world.executor.cancel((1, 1, 1), "cleared", 5)
    assert [type(one) for one in world.sent["pod-1-1-1@remote"]] == [Cancel]
    assert world.dropped == []
    world.executor.disconnect("pod-1-1-1@remote")
    world.executor.cancel((1, 1, 1), "cleared", 5)
    assert world.dropped == [(1, 1, 1)]


def test_the_next_attempt_waits_for_the_processes_of_the_previous_pod(world: World) -> None:
    world.connect("pod-1-1-1@remote", live=((1, 1, 1),))
    world.executor.submit([work(1, fence=2, previous="pod-1-1-1@remote.p")])
    assert world.wanted == []
    assert [type(one) for one in world.sent["pod-1-1-1@remote"]] == [Withdraw]
    world.executor.disconnect("pod-1-1-1@remote")
    assert world.wanted == []
    world.apply(PodNews((1, 1, 1), "it has ended", processes_ended=True))
    assert world.wanted == [(1, 1, 2)]
    assert world.gone == [((1, 1, 1), "pod-1-1-1@remote", True)]
    assert not world.executor.may_live("pod-1-1-1@remote")


def test_a_pod_on_a_lost_node_may_live(world: World) -> None:
    world.connect("pod-1-1-1@remote", live=((1, 1, 1),))
    world.executor.disconnect("pod-1-1-1@remote")
    world.apply(PodNews((1, 1, 1), "its pod was deleted", processes_ended=False))
    assert world.executor.may_live("pod-1-1-1@remote")
    assert world.gone == [((1, 1, 1), "pod-1-1-1@remote", False)]


def test_a_late_pod_whose_worker_has_connected_meanwhile_goes_on(world: World) -> None:
    world.executor.submit([work(1)])
    world.connect("pod-1-1-1@remote")
    world.apply(PodNews((1, 1, 1), "it did not start in time", processes_ended=False))
    assert world.gone == []


def test_the_last_line_of_a_pod_that_has_just_ended_is_written_by_another_worker(world: World) -> None:
    world.connect("w1")
    world.connect("pod-1-1-1@remote", live=((1, 1, 1),))
    world.apply(PodNews((1, 1, 1), "OOMKilled", processes_ended=True))
    world.executor.end_log(LastLine("error", "text", "log"), "pod-1-1-1@remote")
    assert [type(one) for one in world.sent["w1"]] == [EndLog]
