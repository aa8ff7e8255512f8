"""The KubernetesExecutor with a real scheduler, a real gateway and real workers, and a stand-in for the cluster."""

from __future__ import annotations

import copy
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.harness import COMMAND
from tests.integration.kubernetes_executor.world import kubernetes_world
from tests.integration.kubernetes_server import Refusal

pytest.importorskip(
    "kubernetes", reason="tests of the KubernetesExecutor need the package: pip install 'tradewind[kubernetes]'"
)

CHAIN = """
from datetime import datetime
from tradewind import DAG
from tradewind.sdk.decorators import task

with DAG("chain", schedule=None, start_date=datetime(2026, 1, 1)):
    @task
    def make():
        return [1, 2]

    @task(executor_config={"pod_override": {"metadata": {"labels": {"team": "sales"}}, "spec": {"containers": [
        {"name": "base", "image": "example.org/large:2", "resources": {"requests": {"memory": "4Gi"}}}]}}})
    def double(x):
        print("doubling", x)
        return 2 * x

    @task(executor="LocalExecutor")
    def check(values):
        assert sorted(values) == [2, 4]

    check(double.expand(x=make()))
"""


@pytest.mark.spec("S318", "S358", "S492")
def test_tasks_run_in_pods(tmp_path: Path) -> None:
    """Each task has a pod of its own, with its override; XComs and logs come back; the pods are deleted."""
    with kubernetes_world(tmp_path, "KubernetesExecutor,LocalExecutor") as world:
        world.standalone.write_dag("chain.py", CHAIN)
        world.standalone.wait_dag("chain")
        world.standalone.cli("dags", "unpause", "chain")
        run = world.standalone.trigger("chain")
        assert world.standalone.wait_run("chain", run) == "success", world.cluster.describe()
        cluster = world.cluster
        assert (len(cluster.of_task("make")), len(cluster.of_task("double")), cluster.of_task("check")) == (1, 2, [])
        cluster.wait(lambda: not cluster.pods, "the deletion of the pods")
        double = next(one for one in cluster.made if one["metadata"]["annotations"]["task_id"] == "double")
        container = double["spec"]["containers"][0]
        assert (container["image"], container["resources"]) == ("example.org/large:2", {"requests": {"memory": "4Gi"}})
        assert double["metadata"]["labels"]["team"] == "sales"
        assert "doubling 1" in world.standalone.cli("tasks", "logs", "chain", "double", run, "--map-index", "0")


def test_a_lost_answer_makes_no_second_pod(tmp_path: Path) -> None:
    """The creation is repeated, Kubernetes says that there is a pod of this name, and this pod is used."""
    with kubernetes_world(tmp_path) as world:
        world.cluster.lose_answers = 1
        world.go.touch()
        run = world.begin_nap()
        assert world.standalone.wait_run("slow", run) == "success"
        assert len(world.cluster.made) == 1
        assert world.marked() == [("begin", "nap1"), ("end", "nap1")]


def test_a_refused_quota_leaves_the_attempt_queued(tmp_path: Path) -> None:
    message = 'pods "nap" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=9, limited: pods=9'
    with kubernetes_world(tmp_path) as world:
        cluster = world.cluster
        cluster.refuse = lambda method, pod: Refusal(403, "Forbidden", message) if method == "POST" else None
        world.write_nap()
        world.go.touch()
        run = world.standalone.trigger("slow")
        answer = world.why(run, "exceeded quota: compute")
        assert "its pod is not created yet" in answer
        assert not cluster.made
        cluster.refuse = lambda method, pod: None
        assert world.standalone.wait_run("slow", run) == "success"
        assert world.marked() == [("begin", "nap1"), ("end", "nap1")]


@pytest.mark.long
def test_too_many_requests_are_repeated_later(tmp_path: Path) -> None:
    with kubernetes_world(tmp_path) as world:
        left = [3]

        def refuse(method: str, pod: dict[str, Any]) -> Refusal | None:
            if method == "POST" and left[0]:
                left[0] -= 1
                return Refusal(429, "TooManyRequests", "the server is busy", {"Retry-After": "1"})
            return None

        world.cluster.refuse = refuse
        world.go.touch()
        run = world.begin_nap()
        assert world.standalone.wait_run("slow", run) == "success"
        assert (left, len(world.cluster.made)) == ([0], 1)


@pytest.mark.long
def test_an_image_that_cannot_be_pulled_fails_the_task_with_this_reason(tmp_path: Path) -> None:
    waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "example.org/tradewind:1"'}
    limits = {"AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT": "4", "TRADEWIND__SCHEDULER__REQUEUE_LIMIT": "1"}
    with kubernetes_world(tmp_path, environment=limits) as world:
        cluster = world.cluster
        cluster.waiting = waiting
        world.write_nap()
        run = world.standalone.trigger("slow")
        assert "does not start: container base: ImagePullBackOff" in world.why(run, "ImagePullBackOff")
        assert world.standalone.wait_run("slow", run) == "failed"
        assert len(cluster.made) == 2
        assert "ImagePullBackOff" in world.standalone.cli("why", "slow", "nap", run, check=False)
        assert "ImagePullBackOff" in world.standalone.cli("tasks", "logs", "slow", "nap", run)
        cluster.wait(lambda: not cluster.pods, "the deletion of the pods")


@pytest.mark.long
def test_a_pod_that_no_node_takes_says_so(tmp_path: Path) -> None:
    with kubernetes_world(tmp_path) as world:
        cluster = world.cluster
        cluster.unschedulable = "0/3 nodes are available: 3 Insufficient memory."
        world.write_nap()
        run = world.standalone.trigger("slow")
        assert "Unschedulable: 0/3 nodes are available" in world.why(run, "Insufficient memory")
        world.standalone.cli("tasks", "mark", "slow", "success", "--run-id", run, "-y")
        cluster.wait(lambda: not cluster.pods, "the deletion of the pod of a marked task")


@pytest.mark.long
def test_a_pod_that_runs_out_of_memory_fails_its_try_at_once(tmp_path: Path) -> None:
    """Kubernetes says that all processes have ended, so the next try need not wait for the end of a lease."""
    with kubernetes_world(tmp_path) as world:
        run = world.begin_nap(retries=1)
        (first,) = world.cluster.of_task("nap")
        world.cluster.run_out_of_memory(first)
        world.wait_mark("begin", "nap2")
        world.go.touch()
        assert world.standalone.wait_run("slow", run) == "success"
        first_log = world.standalone.cli("tasks", "logs", "slow", "nap", run, "--try", "1")
        assert "OOMKilled" in first_log
        assert len(world.cluster.of_task("nap")) == 2
        assert world.cluster.phase(first) == "Failed"  # kept for people: delete_worker_pods_on_failure is false
        labels = world.cluster.pods[first]["metadata"]["labels"]
        assert labels["tradewind_done"] == "True"


def test_a_cleared_task_ends_in_its_pod(tmp_path: Path) -> None:
    with kubernetes_world(tmp_path) as world:
        run = world.begin_nap()
        (first,) = world.cluster.of_task("nap")
        world.standalone.cli("tasks", "clear", "slow", "--run-id", run, "-y")
        world.cluster.wait(lambda: world.cluster.phase(first) == "", "the end of the first pod")
        world.go.touch()
        assert world.standalone.wait_run("slow", run) == "success"
        assert len(world.cluster.of_task("nap")) == 2
        assert [one for one in world.marked() if one[0] == "end"] == [("end", "nap2")]


def test_the_next_scheduler_adopts_running_and_pending_pods(tmp_path: Path) -> None:
    with kubernetes_world(tmp_path) as world:
        run = world.begin_nap()
        world.cluster.unschedulable = "0/3 nodes are available"
        second = world.standalone.trigger("slow")
        world.why(second, "0/3 nodes")
        scheduler = world.standalone.child("scheduler")
        assert scheduler is not None
        os.kill(scheduler, signal.SIGKILL)
        world.standalone.wait(
            lambda: world.standalone.child("scheduler") not in (None, scheduler) or None, "the next scheduler", 40
        )
        world.cluster.unschedulable = ""
        world.cluster.schedule_all()
        world.go.touch()
        assert world.standalone.wait_run("slow", run) == "success"
        assert world.standalone.wait_run("slow", second) == "success"
        assert len(world.cluster.made) == 2
        assert len([one for one in world.marked() if one[0] == "begin"]) == 2
        world.cluster.wait(lambda: not world.cluster.pods, "the deletion of the pods")


@pytest.mark.long
def test_a_watch_that_breaks_or_is_too_old_misses_nothing(tmp_path: Path) -> None:
    with kubernetes_world(tmp_path) as world:
        cluster = world.cluster
        cluster.wait(lambda: cluster.watches >= 1, "the first watch")
        run = world.begin_nap(retries=1)
        (first,) = cluster.of_task("nap")
        with cluster.changed:
            cluster.oldest = cluster.versions + 1_000  # every known version is too old now
            cluster.watch_until = cluster.watches
            cluster.changed.notify_all()
        cluster.run_out_of_memory(first)
        cluster.wait(lambda: cluster.phase(first) == "Failed", "the end of the pod")
        cluster.oldest = 0
        world.wait_mark("begin", "nap2")
        world.go.touch()
        assert world.standalone.wait_run("slow", run) == "success"


@pytest.mark.long
def test_pods_without_an_attempt_are_deleted(tmp_path: Path) -> None:
    """A pod that an earlier scheduler left behind is deleted; pods of others are not touched."""
    with kubernetes_world(tmp_path) as world:
        cluster = world.cluster
        world.go.touch()
        run = world.begin_nap()
        assert world.standalone.wait_run("slow", run) == "success"
        orphan = copy.deepcopy(cluster.made[0])
        orphan["metadata"] |= {"name": "orphan", "labels": {**orphan["metadata"]["labels"], "tradewind_attempt": "77-0-1"}}
        stranger = copy.deepcopy(orphan)
        stranger["metadata"] |= {"name": "stranger"}
        stranger["metadata"]["labels"] |= {"tradewind_deployment": "another"}
        cluster.unschedulable = "no node"
        cluster.create(orphan)
        cluster.create(stranger)
        cluster.wait(lambda: cluster.phase("orphan") == "", "the deletion of the orphan")
        assert cluster.phase("stranger") == "Pending"
        assert "stranger" not in cluster.deleted


@pytest.mark.long
def test_a_scheduler_that_dies_before_it_knows_its_pod(tmp_path: Path) -> None:
    """The pod was created, the answer got lost, and the scheduler was killed: the next one uses the pod."""
    with kubernetes_world(tmp_path) as world:
        cluster = world.cluster
        cluster.lose_answers = 1
        cluster.unschedulable = "0/3 nodes are available"
        world.write_nap()
        world.go.touch()
        scheduler = world.standalone.child("scheduler")
        assert scheduler is not None
        run = world.standalone.trigger("slow")
        cluster.wait(lambda: len(cluster.made) == 1, "the creation of the pod")
        os.kill(scheduler, signal.SIGKILL)
        cluster.unschedulable = ""
        cluster.schedule_all()
        assert world.standalone.wait_run("slow", run) == "success"
        assert len(cluster.made) == 1
        assert world.marked() == [("begin", "nap1"), ("end", "nap1")]


@pytest.mark.long
def test_a_pod_that_a_person_deletes_stops_its_task(tmp_path: Path) -> None:
    with kubernetes_world(tmp_path) as world:
        run = world.begin_nap(retries=1)
        (first,) = world.cluster.of_task("nap")
        world.cluster.delete(first)
        world.wait_mark("begin", "nap2")
        world.go.touch()
        assert world.standalone.wait_run("slow", run) == "success"
        assert ("end", "nap1") not in world.marked()
        assert len(world.cluster.made) == 2


def test_an_unfinished_setting_is_an_error_at_the_start(tmp_path: Path) -> None:
    """The scheduler names the setting, and does not run without pods."""
    home = tmp_path / "home"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRADEWIND_", "AIRFLOW"))}
    given = {**kept, "TRADEWIND_HOME": str(home), "TRADEWIND__CORE__EXECUTOR": "KubernetesExecutor"}
    for more, said in (
        ({}, "has no image for its pods"),
        ({"TRADEWIND__KUBERNETES_EXECUTOR__WORKER_CONTAINER_REPOSITORY": "x"}, "TRADEWIND__GATEWAY__ENABLED=true"),
        ({"TRADEWIND__KUBERNETES_EXECUTOR__POD_TEMPLATE_FILE": "/nowhere.yaml"}, "/nowhere.yaml cannot be read"),
    ):
        words = [*COMMAND, "scheduler", "--no-dag-processor", "--no-worker-host"]
        done = subprocess.run(words, env={**given, **more}, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode != 0
        assert said in done.stdout + done.stderr
