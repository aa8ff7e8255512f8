"""Arguments of older DAG files for containers, with made-up packages of Kubernetes and Docker that have those of today."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.airflow import own_process

POD = """
from airflow.models import BaseOperator


class KubernetesPodOperator(BaseOperator):
    def __init__(self, *, image=None, container_resources=None, **kwargs):
        super().__init__(**kwargs)
        self.image, self.container_resources = image, container_resources
"""
DOCKER = """
from airflow.models import BaseOperator


class DockerOperator(BaseOperator):
    def __init__(self, *, image, mounts=None, **kwargs):
        super().__init__(**kwargs)
        self.image, self.mounts = image, mounts
"""
MODELS = """
class V1ResourceRequirements:
    def __init__(self, requests=None, limits=None):
        self.requests, self.limits = requests, limits
"""
MOUNT = """
def Mount(target, source, type="volume", read_only=False):
    return target, source, type, read_only
"""
FILES = {
    "airflow/providers/cncf/kubernetes/operators/pod.py": POD,
    "airflow/providers/docker/operators/docker.py": DOCKER,
    "kubernetes/client/models.py": MODELS,
    "docker/types.py": MOUNT,
}


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    return own_process.install(tmp_path, FILES)


def run(packages: Path, code: str) -> None:
    head = "from airflow import DAG\nfrom tradewind.sdk.open_dags import collecting\ncollecting(1).__enter__()\n"
    own_process.run(packages, code, head)


def test_resources_of_a_pod_are_those_of_its_container(packages: Path) -> None:
    run(
        packages,
        """
from airflow.contrib.kubernetes.pod import Resources
from airflow.contrib.operators.kubernetes_pod_operator import KubernetesPodOperator
with DAG("d", schedule=None, default_args={"resources": {"request_cpu": "1"}}):
    own = KubernetesPodOperator(task_id="a", image="i", resources={"limit_memory": "1Gi"})
    usual = KubernetesPodOperator(task_id="b", image="i")
with DAG("e", schedule=None):
    made = KubernetesPodOperator(task_id="a", resources=Resources(request_memory="2Gi"))
    nested = KubernetesPodOperator(task_id="b", resources={"requests": {"cpu": "1"}})
    present = KubernetesPodOperator(task_id="c", resources={"limit_cpu": "1"}, container_resources="present")
    of_task = KubernetesPodOperator(task_id="d", resources={"cpus": 1})
    without = KubernetesPodOperator(task_id="e", image="i")
assert own.container_resources.limits == {"memory": "1Gi"} and own.image == "i"
assert usual.container_resources.requests == {"cpu": "1"}
assert made.container_resources.requests == {"memory": "2Gi"} and not made.resources
assert nested.container_resources.requests == {"cpu": "1"}
assert present.container_resources == "present"
assert of_task.container_resources is None and of_task.resources
assert without.container_resources is None
""",
    )


def test_volumes_of_docker_are_mounts(packages: Path) -> None:
    run(
        packages,
        """
from airflow.operators.docker_operator import DockerOperator
with DAG("d", schedule=None):
    task = DockerOperator(task_id="a", image="i", volumes=["/host:/in:ro", "data:/out", "/cache"], mounts=["present"])
    without = DockerOperator(task_id="b", image="i")
assert task.mounts == [
    "present", ("/in", "/host", "bind", True), ("/out", "data", "volume", False), ("/cache", None, "volume", False)
], task.mounts
assert without.mounts is None
""",
    )
