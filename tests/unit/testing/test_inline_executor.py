"""The executor without processes keeps the executors' contract: hints may be lost, repeated or late."""

from __future__ import annotations

from tests.unit.store.suite.build import definition, new_run, parsed, rows
from tradewind.executors.port import Executor
from tradewind.model.states import Outcome, TaskState
from tradewind.scheduler.core import Scheduler
from tradewind.testing import FakeClock, MemoryStore
from tradewind.testing.dag_test import inline_config
from tradewind.testing.inline_executor import InlineExecutor
from tradewind.wire.messages import AttemptKey, Report, Workload


class Scene:
    """A run of three tasks in a chain, ready to go."""

    def __init__(self) -> None:
        self.made: list[AttemptKey] = []
        self.repeat = False
        """Hand each attempt over again while it is being made."""
        self.store = MemoryStore()
        self.executor = InlineExecutor(self.perform)
        port: Executor = self.executor
        self.scheduler = Scheduler(self.store, FakeClock(), inline_config(), port, 0, lambda notice: None)
        self.store.register_file(parsed(definition()), paused_at_creation=False)
        self.run = self.store.create_run(new_run(self.store)).id
        self.scheduler.load()
        self.scheduler.process()

    def perform(self, workload: Workload) -> Report:
        self.made.append(workload.key)
        if self.repeat:
            self.executor.submit([workload])
        return Report(2, Outcome.SUCCESS)

    def states(self) -> list[TaskState]:
        return [list(TaskState)[row.state] for row in rows(self.store, self.run).values()]


def test_attempts_are_made_one_after_the_other() -> None:
    scene = Scene()
    while scene.executor.step(scene.scheduler):
        pass
    assert scene.states() == [TaskState.SUCCESS] * 3
    assert scene.made == [(scene.run, slot, 1) for slot in range(3)]


def test_a_repeated_submission_is_one_attempt() -> None:
    scene = Scene()
    scene.repeat = True
    assert scene.scheduler.hosts.resubmit_old(2**62) == 1
    while scene.executor.step(scene.scheduler):
        pass
    assert scene.made == [(scene.run, slot, 1) for slot in range(3)]


def test_a_cancelled_attempt_is_reported_gone_instead_of_made() -> None:
    scene = Scene()
    scene.executor.cancel((scene.run, 0, 1), "told to", 0)
    assert scene.executor.step(scene.scheduler)
    scene.scheduler.process()
    assert scene.made == []
    assert scene.states()[0] is TaskState.UP_FOR_RETRY


def test_an_attempt_of_an_old_fence_is_not_made() -> None:
    scene = Scene()
    old = Workload(run=scene.run, slot=0, fence=0, dag_id="d", task_id="t0", run_id="r1")
    scene.executor.submit([old])
    while scene.executor.step(scene.scheduler):
        pass
    assert (scene.run, 0, 0) not in scene.made


def test_what_is_not_known_is_reported_gone() -> None:
    scene = Scene()
    scene.executor.reconcile("w1", {(scene.run, 0, 1): "", (scene.run, 2, 5): ""})
    while scene.executor.step(scene.scheduler):
        pass
    assert scene.states() == [TaskState.SUCCESS] * 3
    assert len(scene.made) == 3
