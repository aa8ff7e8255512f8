"""The threads that create, watch and delete pods, with a client whose answers the test chooses."""

from __future__ import annotations

import queue
import select
import threading
from collections.abc import Callable, Iterator

import pytest

from tradewind.executors.pod_launcher import PodLauncher
from tradewind.executors.pod_port import Refused
from tradewind.executors.pod_registry import PodLimits, PodNews
from tradewind.executors.pod_spec import EMPTY_TEMPLATE, Pod, PodSettings, make_pod
from tradewind.model.moments import SECOND
from tradewind.platform.clock import SystemClock
from tradewind.wire.messages import Workload
from tradewind.wire.worker_tokens import read_grant

KEY = b"k" * 32
DEADLINE = 20.0
SETTINGS = PodSettings("dep", "jobs", EMPTY_TEMPLATE, "image:1", "ws://gateway", 10.0, 1)


class Api:
    """A client that records requests and answers as the test says."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.pods: dict[str, Pod] = {}
        self.calls: list[str] = []
        self.errors: list[Exception] = []
        """Raised by the next creations, one each."""
        self.created_though: bool = False
        """A creation that raises has created the pod nevertheless."""
        self.lists = 0
        self.events: queue.Queue[tuple[str, Pod] | Exception | None] = queue.Queue()

    def note(self, call: str) -> None:
        with self.changed:
            self.calls.append(call)
            self.changed.notify_all()

    def wait(self, look: Callable[[], bool]) -> None:
        with self.changed:
            assert self.changed.wait_for(look, DEADLINE), self.calls

    def list_pods(self) -> tuple[list[Pod], str]:
        with self.changed:
            self.lists += 1
            self.changed.notify_all()
            return list(self.pods.values()), str(self.lists)

    def watch_pods(self, version: str) -> Iterator[tuple[str, Pod]]:
        while (event := self.events.get()) is not None:
            if isinstance(event, Exception):
                raise event
            yield event

    def create_pod(self, pod: Pod) -> Pod:
        name = pod["metadata"]["name"]
        error = self.errors.pop(0) if self.errors else None
        if error is None and name in self.pods:
            error = Refused(409, "AlreadyExists", f"{name} already exists")
        if error is None or self.created_though:
            self.created_though = False
            self.pods[name] = {**pod, "metadata": {**pod["metadata"], "uid": f"uid-{name}"}, "status": {"phase": "Pending"}}
        self.note(f"create {name}")
        if error is not None:
            raise error
        return self.pods[name]

    def read_pod(self, name: str) -> Pod:
        self.note(f"read {name}")
        return self.pods[name]

    def delete_pod(self, name: str, uid: str) -> None:
        self.pods.pop(name, None)
        self.note(f"delete {name} {uid}")

    def mark_done(self, name: str, uid: str) -> None:
        self.note(f"mark {name} {uid}")


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def launcher(api: Api) -> Iterator[PodLauncher]:
    made = PodLauncher(api, SETTINGS, PodLimits(2, 300 * SECOND, True, False, 1), KEY, SystemClock())
    made.start()
    yield made
    made.stop()
    api.events.put(None)


def work(slot: int = 1) -> Workload:
    return Workload(1, slot, 1, "etl", "load", "r1", queue="far", executor="KubernetesExecutor")


def news_of(launcher: PodLauncher) -> list[PodNews]:
    """Wait until the loop is woken by news."""
    while True:
        assert select.select([launcher], [], [], DEADLINE)[0], "there is no news"
        news, _ = launcher.take_news()
        if news:
            return news


def test_a_pod_gets_a_token_for_its_attempt_alone(api: Api, launcher: PodLauncher) -> None:
    launcher.want(work())
    api.wait(lambda: "create etl-load-dep-1-1-1" in api.calls)
    variables = {one["name"]: one["value"] for one in api.pods["etl-load-dep-1-1-1"]["spec"]["containers"][0]["env"]}
    grant = read_grant(variables["TRADEWIND__WORKER__TOKEN"], KEY, SystemClock().wall())
    assert (grant.worker, grant.queues) == ("pod-1-1-1", ("far",))
    assert grant.expires


def test_a_lost_answer_leads_to_the_pod_that_was_created(api: Api, launcher: PodLauncher) -> None:
    api.errors, api.created_though = [Refused(0, "Timeout", "no answer")], True
    launcher.want(work())
    api.wait(lambda: "read etl-load-dep-1-1-1" in api.calls)
    launcher.drop((1, 1))
    api.wait(lambda: "delete etl-load-dep-1-1-1 uid-etl-load-dep-1-1-1" in api.calls)


def test_a_pod_of_another_run_that_has_the_name_is_deleted_first(api: Api, launcher: PodLauncher) -> None:
    """A database that was replaced gives the same numbers again."""
    api.wait(lambda: api.lists == 1)
    pod = make_pod(work(), SETTINGS, "token")
    pod["metadata"] |= {"uid": "old", "annotations": {"dag_id": "etl", "run_id": "another run"}}
    api.pods[pod["metadata"]["name"]] = pod
    launcher.want(work())
    api.wait(lambda: [one.partition(" ")[0] for one in api.calls] == ["create", "read", "delete", "create"])
    assert api.calls[2].endswith(" old")


def test_an_unexpected_error_is_repeated_like_a_missing_answer(api: Api, launcher: PodLauncher) -> None:
    api.errors = [RuntimeError("a bug")]
    launcher.want(work())
    api.wait(lambda: api.calls.count("create etl-load-dep-1-1-1") == 2)
    assert len(api.pods) == 1


def test_after_410_the_pods_are_listed_again(api: Api, launcher: PodLauncher) -> None:
    api.wait(lambda: api.lists == 1)
    api.events.put(Refused(410, "Expired", "too old"))
    api.wait(lambda: api.lists == 2)
    api.events.put(RuntimeError("not JSON"))
    api.wait(lambda: api.lists == 3)


def test_a_watch_that_breaks_goes_on_where_it_was(api: Api, launcher: PodLauncher) -> None:
    launcher.want(work())
    api.wait(lambda: len(api.pods) == 1)
    api.events.put(Refused(0, "ProtocolError", "the connection broke"))
    (pod,) = api.pods.values()
    ended = {"phase": "Failed", "containerStatuses": [{"name": "base", "state": {"terminated": {"exitCode": 137}}}]}
    api.events.put(("MODIFIED", {**pod, "status": ended}))
    (news,) = news_of(launcher)
    assert (news.attempt, news.processes_ended, api.lists) == ((1, 1, 1), True, 1)


def test_an_event_that_cannot_be_read_is_no_end(api: Api, launcher: PodLauncher) -> None:
    api.events.put(("MODIFIED", {"metadata": {"name": "p", "labels": {"tradewind_attempt": "1-1-1"}}, "status": {"phase": 7}}))
    api.events.put(("BOOKMARK", {"metadata": {"resourceVersion": "9"}}))
    launcher.want(work(2))
    api.wait(lambda: "create etl-load-dep-1-2-1" in api.calls)
