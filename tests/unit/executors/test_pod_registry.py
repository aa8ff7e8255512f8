"""Which requests about pods are due, and what the scheduler is told: with a clock that the test moves."""

from __future__ import annotations

from tradewind.executors.pod_registry import (
    END_GRACE,
    LONGEST_PAUSE,
    REPEAT_AFTER,
    Create,
    Delete,
    MarkDone,
    PodLimits,
    PodRegistry,
    Request,
)
from tradewind.executors.pod_status import PodStatus
from tradewind.model.moments import SECOND
from tradewind.wire.messages import AttemptKey, Workload

PENDING_MAX = 300 * SECOND
QUOTA = 'pods "p" is forbidden: exceeded quota: compute'


class World:
    """A registry at a moment."""

    def __init__(self, creates: int = 2, delete: bool = True, delete_failed: bool = False) -> None:
        self.now = 1_000 * SECOND
        limits = PodLimits(creates, PENDING_MAX, delete, delete_failed, epoch=5)
        self.registry = PodRegistry(limits, lambda: 0.0, "ws://gateway", "jobs")

    def want(self, slot: int, fence: int = 1) -> None:
        self.registry.want(work(slot, fence), self.now)

    def due(self) -> list[Request]:
        return self.registry.due(self.now)

    def create(self, slot: int, fence: int = 1) -> None:
        """The pod of an attempt is wanted and created."""
        self.want(slot, fence)
        assert [one.attempt for one in self.due()] == [(1, slot, fence)]
        self.registry.created((1, slot, fence), pod(slot, fence), self.now)

    def seen(self, slot: int, phase: str, fence: int = 1, *, ended: bool = False, problem: str = "", epoch: int = 5) -> None:
        self.registry.seen(pod(slot, fence, phase, ended=ended, problem=problem, epoch=epoch), self.now)

    def news(self) -> list[tuple[AttemptKey, bool]]:
        assert self.due() is not None
        return [(one.attempt, one.processes_ended) for one in self.registry.take_news()]


def work(slot: int, fence: int = 1) -> Workload:
    return Workload(1, slot, fence, "etl", f"t{slot}", "r1", executor="KubernetesExecutor")


def pod(
    slot: int,
    fence: int = 1,
    phase: str = "Pending",
    *,
    ended: bool = False,
    problem: str = "",
    epoch: int = 5,
    uid: str = "u",
    deleting: bool = False,
) -> PodStatus:
    return PodStatus(f"p{slot}", uid, (1, slot, fence), epoch, "r1", "etl", phase, deleting, ended, problem)


def test_pods_are_created_in_the_order_of_the_scheduler_and_a_few_at_a_time() -> None:
    world = World(creates=2)
    for slot in (5, 3, 9):
        world.want(slot)
    assert [one.attempt[1] for one in world.due()] == [5, 3]
    assert world.due() == []
    world.registry.created((1, 5, 1), pod(5), world.now)
    assert [one.attempt[1] for one in world.due()] == [9]


def test_an_attempt_that_is_wanted_again_has_one_pod() -> None:
    world = World()
    for _ in range(3):
        world.want(1)
    assert len(world.due()) == 1
    world.want(1)
    assert world.due() == []
    world.registry.created((1, 1, 1), pod(1), world.now)
    world.want(1)
    assert world.due() == []


def test_a_quota_holds_creations_until_a_pod_is_gone() -> None:
    world = World(creates=2)
    world.create(1)
    world.want(2)
    world.due()
    world.registry.refused((1, 2, 1), 403, QUOTA, 0.0, world.now)
    assert world.due() == []
    assert world.registry.why((1, 2, 1)) == f"its pod is not created yet: {QUOTA}"
    assert world.registry.take_news() == []
    world.registry.drop((1, 1), world.now)
    assert world.due() == [Delete((1, 1, 1), "p1", "u")]
    world.registry.deleted(pod(1))
    assert [one.attempt for one in world.due()] == [(1, 2, 1)]


def test_after_too_many_requests_one_creation_tries_it_first() -> None:
    world = World(creates=4)
    for slot in range(4):
        world.want(slot)
    assert len(world.due()) == 4
    for slot in range(4):
        world.registry.refused((1, slot, 1), 429, "busy", 3.0, world.now)
    world.now += 2 * SECOND
    assert world.due() == []
    world.now += LONGEST_PAUSE
    (first,) = world.due()
    world.registry.created(first.attempt, pod(first.attempt[1]), world.now)
    assert len(world.due()) == 3


def test_an_invalid_pod_ends_its_attempt_at_once() -> None:
    world = World()
    world.want(1)
    world.due()
    world.registry.refused((1, 1, 1), 422, 'Pod "p1" is invalid: spec.nodeName: Invalid value', 0.0, world.now)
    (news,) = world.registry.take_news()
    assert (news.attempt, news.processes_ended) == ((1, 1, 1), False)
    assert "spec.nodeName" in news.reason
    world.now += LONGEST_PAUSE
    assert world.due() == []


def test_a_creation_without_an_answer_is_repeated() -> None:
    world = World()
    world.want(1)
    world.due()
    world.registry.refused((1, 1, 1), 0, "no answer", 0.0, world.now)
    world.now += LONGEST_PAUSE
    assert world.due() == [Create((1, 1, 1), work(1))]
    assert world.registry.is_same((1, 1, 1), pod(1))
    assert not world.registry.is_same((1, 1, 1), pod(1, phase="Failed"))
    assert not world.registry.is_same((1, 1, 1), pod(1, deleting=True))


def test_a_pod_of_an_earlier_scheduler_is_adopted() -> None:
    world = World()
    world.registry.listed([pod(1, epoch=4)], world.now, world.now)
    world.want(1)
    assert world.due() == []


def test_a_pod_that_ends_without_a_result_is_told_until_it_is_dropped() -> None:
    world = World()
    world.create(1)
    world.seen(1, "Failed", ended=True, problem="OOMKilled")
    assert world.news() == [((1, 1, 1), True)]
    assert world.news() == []
    world.now += REPEAT_AFTER
    assert world.news() == [((1, 1, 1), True)]
    world.registry.drop((1, 1), world.now)
    world.now += REPEAT_AFTER
    assert world.registry.take_news() == []


def test_a_pod_that_does_not_start_is_told_with_the_reason() -> None:
    world = World()
    world.create(1)
    world.seen(1, "Pending", problem="ImagePullBackOff: no such image")
    world.now += PENDING_MAX - 1
    assert world.news() == []
    world.now += 1
    world.due()
    (news,) = world.registry.take_news()
    assert "did not start within 300 seconds: ImagePullBackOff: no such image" in news.reason


def test_a_worker_that_does_not_reach_the_gateway_is_told_with_a_command() -> None:
    world = World()
    world.create(1)
    world.seen(1, "Running")
    world.now += PENDING_MAX
    world.due()
    (news,) = world.registry.take_news()
    assert "ws://gateway" in news.reason
    assert "kubectl logs -n jobs p1" in news.reason


def test_a_worker_that_has_connected_may_take_its_time() -> None:
    world = World()
    world.create(1)
    world.registry.connected((1, 1, 1))
    world.now += 10 * PENDING_MAX
    assert world.news() == []


def test_the_worker_of_an_ended_attempt_gets_time_to_end_its_pod() -> None:
    world = World()
    world.create(1)
    world.registry.connected((1, 1, 1))
    world.registry.drop((1, 1), world.now)
    assert world.due() == []
    world.seen(1, "Succeeded", ended=True)
    assert world.due() == [Delete((1, 1, 1), "p1", "u")]


def test_a_pod_that_does_not_end_by_itself_is_deleted() -> None:
    world = World()
    world.create(1)
    world.registry.connected((1, 1, 1))
    world.registry.drop((1, 1), world.now)
    world.now += END_GRACE
    (request,) = world.due()
    assert isinstance(request, Delete)
    world.registry.answered(request, world.now)
    assert world.due() == []
    world.now += REPEAT_AFTER
    assert world.due() == [request]
    world.registry.answered(request, world.now)
    world.registry.deleted(pod(1))
    assert len(world.registry) == 0


def test_a_failed_pod_is_kept_and_marked() -> None:
    world = World()
    world.create(1)
    world.seen(1, "Failed", ended=True)
    world.registry.drop((1, 1), world.now)
    assert world.due() == [MarkDone((1, 1, 1), "p1", "u")]
    world.registry.answered(MarkDone((1, 1, 1), "p1", "u"), world.now)
    assert len(world.registry) == 0
    world = World(delete_failed=True)
    world.create(1)
    world.seen(1, "Failed", ended=True)
    world.registry.drop((1, 1), world.now)
    assert world.due() == [Delete((1, 1, 1), "p1", "u")]


def test_without_deletions_every_ended_pod_is_kept() -> None:
    world = World(delete=False)
    world.create(1)
    world.registry.drop((1, 1), world.now)
    assert world.due() == [Delete((1, 1, 1), "p1", "u")], "a pod that has not ended needs resources"
    world = World(delete=False)
    world.create(1)
    world.seen(1, "Succeeded", ended=True)
    world.registry.drop((1, 1), world.now)
    assert world.due() == [MarkDone((1, 1, 1), "p1", "u")]


def test_a_new_attempt_replaces_the_pod_of_the_older_one() -> None:
    world = World()
    world.create(1, fence=1)
    world.want(1, fence=2)
    assert world.due() == [Delete((1, 1, 1), "p1", "u"), Create((1, 1, 2), work(1, 2))]


def test_orphans_are_deleted_but_not_the_pods_of_a_later_scheduler() -> None:
    world = World()
    world.registry.listed([pod(1), pod(2, epoch=4), pod(3, epoch=6), pod(4)], world.now, world.now)
    world.registry.retain({(1, 4)}, lambda task: None, world.now)
    assert sorted(one.attempt[1] for one in world.due()) == [1, 2]


def test_an_older_attempt_of_a_live_task_is_an_orphan() -> None:
    world = World()
    world.registry.listed([pod(1, fence=1)], world.now, world.now)
    world.registry.retain({(1, 1)}, lambda task: 2, world.now)
    assert len(world.due()) == 1


def test_a_list_does_not_remove_a_pod_that_was_created_meanwhile() -> None:
    world = World()
    began = world.now
    world.now += SECOND
    world.create(1)
    world.registry.listed([], began, world.now)
    assert world.news() == []
    world.now += SECOND
    world.registry.listed([], world.now, world.now)
    assert world.news() == [((1, 1, 1), False)]


def test_a_pod_that_somebody_deletes_is_told_and_created_again_if_the_attempt_is_still_wanted() -> None:
    world = World()
    world.create(1)
    world.registry.deleted(pod(1))
    assert world.news() == [((1, 1, 1), False)]
    world.want(1)
    assert world.due() == [Create((1, 1, 1), work(1))]


def test_the_deletion_of_an_earlier_pod_of_the_same_name_changes_nothing() -> None:
    world = World()
    world.create(1)
    world.registry.deleted(pod(1, uid="earlier"))
    assert world.news() == []


def test_a_dropped_attempt_whose_pod_was_being_created_loses_the_pod() -> None:
    world = World()
    world.want(1)
    world.due()
    world.registry.drop((1, 1), world.now)
    world.registry.created((1, 1, 1), pod(1), world.now)
    assert world.due() == [Delete((1, 1, 1), "p1", "u")]


def test_a_dropped_attempt_is_not_created_again() -> None:
    world = World()
    world.want(1)
    world.due()
    world.registry.drop((1, 1), world.now)
    world.registry.refused((1, 1, 1), 0, "no answer", 0.0, world.now)
    world.now += LONGEST_PAUSE
    assert world.due() == []
    assert len(world.registry) == 0
