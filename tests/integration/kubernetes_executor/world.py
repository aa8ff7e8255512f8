"""A scheduler with a KubernetesExecutor, a gateway, and a stand-in cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.acceptance.harness import Standalone
from tests.integration.kubernetes_executor.cluster import Cluster
from tests.integration.kubernetes_server import kubernetes
from tests.integration.remote.slow_dag import slow_dag
from tests.integration.remote.world import free_port, read_marks


class World:
    """See the module.

    Args:
        executor: value of `core.executor`.
    """

    def __init__(self, folder: Path, cluster: Cluster, config: Path, executor: str, environment: Mapping[str, str]) -> None:
        self.cluster = cluster
        self.marks, self.go = folder / "marks", folder / "go"
        self.standalone = Standalone(
            folder / "home",
            environment={
                "TRADEWIND__CORE__EXECUTOR": executor,
                "AIRFLOW__KUBERNETES_EXECUTOR__NAMESPACE": "jobs",
                "AIRFLOW__KUBERNETES_EXECUTOR__IN_CLUSTER": "False",
                "AIRFLOW__KUBERNETES_EXECUTOR__CONFIG_FILE": str(config),
                "AIRFLOW__KUBERNETES_EXECUTOR__WORKER_CONTAINER_REPOSITORY": "example.org/tradewind",
                "AIRFLOW__KUBERNETES_EXECUTOR__WORKER_CONTAINER_TAG": "1",
                "TRADEWIND__GATEWAY__ENABLED": "true",
                "TRADEWIND__GATEWAY__PORT": str(free_port()),
                "TRADEWIND__SCHEDULER__RESUBMIT_INTERVAL": "1",
                "TRADEWIND__SCHEDULER__SWEEP_INTERVAL": "1",
                **environment,
            },
        )

    def write_nap(self, retries: int = 0) -> None:
        """Add the DAG `slow`, whose task runs until the file `go` exists."""
        self.standalone.write_dag("slow.py", slow_dag(self.marks, self.go, retries=retries))
        self.standalone.wait_dag("slow")
        self.standalone.cli("dags", "unpause", "slow")

    def begin_nap(self, retries: int = 0) -> str:
        """Start the DAG `slow`, and wait for its task. Returns the run."""
        self.write_nap(retries)
        run = self.standalone.trigger("slow")
        self.wait_mark("begin", "nap1")
        return run

    def marked(self) -> list[tuple[str, str]]:
        return [mark[:2] for mark in read_marks(self.marks)]

    def wait_mark(self, what: str, name: str) -> None:
        self.standalone.wait(lambda: (what, name) in self.marked() or None, f"the mark {what} {name}", 40)

    def why(self, run: str, text: str) -> str:
        """Wait until `tradewind why` names this reason for the task of the DAG `slow`. Returns the whole answer."""

        def look() -> str | None:
            answer = self.standalone.cli("why", "slow", "nap", run, check=False)
            return answer if text in answer else None

        return self.standalone.wait(look, f"why to say {text!r}", 40)


@contextmanager
def kubernetes_world(
    folder: Path, executor: str = "KubernetesExecutor", environment: Mapping[str, str] = {}
) -> Iterator[World]:
    """A running `standalone` with a stand-in cluster; everything is ended afterwards."""
    cluster = Cluster(folder / "pods")
    cluster.folder.mkdir()
    with kubernetes(cluster) as (_, found):
        config = folder / "kubeconfig"
        config.write_text(json.dumps(found))
        world = World(folder, cluster, config, executor, environment)
        try:
            with world.standalone.started():
                world.standalone.wait_line("Gateway for workers on other machines", 30)
                yield world
        finally:
            cluster.close()
