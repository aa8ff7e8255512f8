"""`executor_config` as the JSON of a pod."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import pytest

from tradewind.sdk.pod_override import pod_override


class V1Container:
    """As in the package `kubernetes`: the class says how its fields are called in YAML."""

    attribute_map: ClassVar = {"name": "name", "image_pull_policy": "imagePullPolicy", "env": "env"}

    def __init__(self, name: str, image_pull_policy: str | None = None, env: list[Any] | None = None) -> None:
        self.name, self.image_pull_policy, self.env = name, image_pull_policy, env


class V1Pod:
    attribute_map: ClassVar = {"api_version": "apiVersion", "spec": "spec"}

    def __init__(self, spec: Any) -> None:
        self.api_version, self.spec = None, spec


def read(config: object) -> Any:
    text = pod_override(config)
    return json.loads(text) if text else None


def test_objects_of_the_client_get_their_names_of_yaml() -> None:
    pod = V1Pod({"containers": [V1Container("base", "Always", [{"name": "A", "value": "1"}])]})
    container = {"name": "base", "imagePullPolicy": "Always", "env": [{"name": "A", "value": "1"}]}
    assert read({"pod_override": pod}) == {"spec": {"containers": [container]}}


def test_the_real_models() -> None:
    kubernetes = pytest.importorskip("kubernetes")
    k8s = kubernetes.client.models
    reference = k8s.V1EnvVarSource(secret_key_ref=k8s.V1SecretKeySelector(name="db", key="password"))
    container = k8s.V1Container(name="base", env=[k8s.V1EnvVar(name="P", value_from=reference)])
    pod = k8s.V1Pod(metadata=k8s.V1ObjectMeta(labels={"a": "b"}), spec=k8s.V1PodSpec(containers=[container]))
    assert read({"pod_override": pod}) == kubernetes.client.ApiClient().sanitize_for_serialization(pod)


def test_the_form_of_airflow_1() -> None:
    config = {
        "KubernetesExecutor": {
            "image": "one:2",
            "request_memory": "1Gi",
            "limit_cpu": 2,
            "node_selectors": {"disk": "fast"},
            "annotations": {"a": "b"},
            "volumes": [{"name": "data", "hostPath": {"path": "/data"}}],
            "volume_mounts": [{"name": "data", "mountPath": "/data"}],
            "image_pull_secrets": "one,two",
        }
    }
    assert read(config) == {
        "metadata": {"annotations": {"a": "b"}},
        "spec": {
            "nodeSelector": {"disk": "fast"},
            "volumes": [{"name": "data", "hostPath": {"path": "/data"}}],
            "imagePullSecrets": [{"name": "one"}, {"name": "two"}],
            "containers": [
                {
                    "name": "base",
                    "image": "one:2",
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    "resources": {"requests": {"memory": "1Gi"}, "limits": {"cpu": "2"}},
                }
            ],
        },
    }


@pytest.mark.parametrize(
    "config", [None, {}, "text", {"CeleryExecutor": {"x": 1}}, {"pod_override": None}, {"pod_override": object()}]
)
def test_what_describes_no_pod_changes_nothing(config: object) -> None:
    assert pod_override(config) == ""


def test_the_text_is_the_same_at_each_parse() -> None:
    """Otherwise each parse would make a new version of the DAG."""
    first = {"pod_override": {"spec": {"b": 1, "a": 2}}}
    second = {"pod_override": {"spec": {"a": 2, "b": 1}}}
    assert pod_override(first) == pod_override(second)


def test_an_object_that_contains_itself_changes_nothing() -> None:
    pod: dict[str, Any] = {}
    pod["spec"] = pod
    assert pod_override({"pod_override": pod}) == ""
