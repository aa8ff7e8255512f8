"""`airflow.kubernetes` for releases of the package `cncf-kubernetes` that import it from Airflow itself."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

OURS = "tradewind.airflow.compat.kubernetes_pods"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the package `cncf-kubernetes` of 2022, and our module without the package `kubernetes`."""
    folder = tmp_path / "airflow" / "providers" / "cncf" / "kubernetes"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("__version__ = '5.0.0'\n")
    (folder / "operator.py").write_text("from airflow.kubernetes.secret import Secret\n")
    monkeypatch.syspath_prepend(tmp_path)
    ours: Any = ModuleType(OURS)
    ours.Secret = ours.PodGenerator = "ours"
    monkeypatch.setitem(sys.modules, OURS, ours)
    before = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "airflow"}
    for name in before:
        del sys.modules[name]
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "airflow"]:
        del sys.modules[name]
    sys.modules.update(before)


@pytest.mark.usefixtures("package")
def test_an_early_release_finds_the_classes_in_airflow() -> None:
    assert importlib.import_module("airflow.providers.cncf.kubernetes.operator").Secret == "ours"
    assert importlib.import_module("airflow.kubernetes.pod_generator").PodGenerator == "ours"


def test_a_later_release_has_its_own(package: Path) -> None:
    (package / "secret.py").write_text("Secret = 'theirs'\n")
    assert importlib.import_module("airflow.kubernetes.secret").Secret == "theirs"


def test_pods_are_merged_and_get_secrets() -> None:
    pods = pytest.importorskip(OURS, reason="needs the package kubernetes", exc_type=ImportError)
    k8s = pods.k8s
    base = pods.PodGenerator.deserialize_model_dict(
        {
            "metadata": {"name": "base", "labels": {"a": "1", "b": "2"}},
            "spec": {"containers": [{"name": "base", "image": "one", "env": [{"name": "A", "value": "1"}]}]},
        }
    )
    spec = k8s.V1PodSpec(containers=[k8s.V1Container(name="base", env=[k8s.V1EnvVar(name="B", value="2")])])
    own = k8s.V1Pod(metadata=k8s.V1ObjectMeta(labels={"b": "3"}), spec=spec)
    merged = pods.PodGenerator.reconcile_pods(base, own)
    assert merged.metadata.labels == {"a": "1", "b": "3"}
    assert merged.metadata.name == "base"
    assert merged.spec.containers[0].image == "one"
    pod = pods.append_to_pod(merged, [pods.Secret("env", "token", "name", "key"), pods.Secret("volume", "/etc/x", "name")])
    assert [one.name for one in pod.spec.containers[0].env] == ["A", "B", "TOKEN"]
    assert pod.spec.containers[0].volume_mounts[0].mount_path == "/etc/x"
    assert merged.spec.volumes is None
    with_xcom = pods.PodGenerator(pod=pod).gen_pod()
    assert [one.name for one in with_xcom.spec.containers] == ["base", "airflow-xcom-sidecar"]
    assert len(with_xcom.metadata.name) <= 63
    assert pods.PodGenerator.serialize_pod(pod)["spec"]["containers"][0]["volumeMounts"][0]["mountPath"] == "/etc/x"


def test_labels_are_safe() -> None:
    pods = pytest.importorskip(OURS, reason="needs the package kubernetes", exc_type=ImportError)
    assert pods.make_safe_label_value("fine.label-1") == "fine.label-1"
    assert pods.make_safe_label_value("scheduled__2020-01-01T00:00:00+00:00").startswith("scheduled__2020-01-01T0000000000-")
    assert len(pods.make_safe_label_value("x" * 100)) == 63
