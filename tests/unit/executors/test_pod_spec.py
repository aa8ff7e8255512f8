"""The pod of an attempt: how template, override and our own part are merged."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tradewind.executors.pod_spec import (
    EMPTY_TEMPLATE,
    LABEL_MAX,
    NAME_MAX,
    Pod,
    PodSettings,
    attempt_in,
    check_template,
    label_value,
    make_pod,
    merge_pods,
    name_of_pod,
)
from tradewind.model.errors import ConfigError
from tradewind.wire.messages import Workload

WORK = Workload(7, 3, 2, "etl.daily", "load_all", "manual__2026-01-01T00:00:00+00:00", queue="far", try_number=2)


def settings(template: Pod = EMPTY_TEMPLATE, image: str = "example.org/tradewind:1") -> PodSettings:
    return PodSettings("abcd1234", "jobs", template, image, "wss://gateway:8974", 10.0, 5)


def pod(override: Any = None, template: Pod = EMPTY_TEMPLATE, image: str = "example.org/tradewind:1") -> Pod:
    work = msgspec.structs.replace(WORK, pod_override=json.dumps(override) if override else "")
    return make_pod(work, settings(template, image), "tww1.token")


def test_the_smallest_pod() -> None:
    made = pod()
    assert made["metadata"]["name"] == "etl-daily-load-all-abcd1234-7-3-2"
    assert made["metadata"]["namespace"] == "jobs"
    assert attempt_in(made) == (7, 3, 2)
    labels = made["metadata"]["labels"]
    assert (labels["dag_id"], labels["task_id"], labels["try_number"]) == ("etl.daily", "load_all", "2")
    assert made["metadata"]["annotations"]["run_id"] == WORK.run_id
    (container,) = made["spec"]["containers"]
    assert (container["image"], container["args"]) == ("example.org/tradewind:1", ["tradewind", "worker", "--single-attempt"])
    variables = {one["name"]: one["value"] for one in container["env"]}
    assert variables["TRADEWIND__WORKER__GATEWAY"] == "wss://gateway:8974"
    assert variables["TRADEWIND__WORKER__TOKEN"] == "tww1.token"
    assert made["spec"]["restartPolicy"] == "Never"
    assert made["spec"]["terminationGracePeriodSeconds"] == 40


def test_the_labels_are_those_of_airflow() -> None:
    work = msgspec.structs.replace(WORK, logical_date=1_767_225_600_000_000, map_index=4)
    metadata = make_pod(work, settings(), "t")["metadata"]
    assert metadata["labels"]["logical_date"] == "2026-01-01T00_00_00_plus_00_00"
    assert metadata["annotations"]["logical_date"] == "2026-01-01T00:00:00+00:00"
    assert (metadata["labels"]["map_index"], metadata["labels"]["kubernetes_executor"]) == ("4", "True")
    assert "logical_date" not in pod()["metadata"]["labels"]


def test_the_home_folder_is_an_empty_volume_unless_the_template_names_another_one() -> None:
    assert {"name": "tradewind-home", "emptyDir": {}} in pod()["spec"]["volumes"]
    own: Pod = {"spec": {"containers": [{"name": "base", "image": "x", "env": [{"name": "TRADEWIND_HOME", "value": "/data"}]}]}}
    made = pod(template=own)
    assert "volumes" not in made["spec"]
    assert [one["value"] for one in made["spec"]["containers"][0]["env"] if one["name"] == "TRADEWIND_HOME"] == ["/data"]


def test_an_override_wins_over_the_template_and_lists_are_joined() -> None:
    template: Pod = {
        "metadata": {"labels": {"a": "1", "b": "1"}},
        "spec": {
            "serviceAccountName": "tasks",
            "volumes": [{"name": "one"}],
            "terminationGracePeriodSeconds": 600,
            "containers": [
                {"name": "base", "image": "old", "env": [{"name": "A", "value": "1"}], "volumeMounts": [{"name": "one"}]},
                {"name": "sidecar", "image": "proxy"},
            ],
        },
    }
    override = {
        "metadata": {"labels": {"b": "2"}},
        "spec": {
            "volumes": [{"name": "two"}],
            "nodeSelector": {"disk": "fast"},
            "containers": [
                {"name": "base", "image": "new", "env": [{"name": "B", "value": "2"}], "resources": {"limits": {"cpu": 1}}}
            ],
        },
    }
    made = pod(override, template, image="")
    spec = made["spec"]
    assert (made["metadata"]["labels"]["a"], made["metadata"]["labels"]["b"]) == ("1", "2")
    assert (spec["serviceAccountName"], spec["nodeSelector"]) == ("tasks", {"disk": "fast"})
    assert [one["name"] for one in spec["volumes"]] == ["one", "two", "tradewind-home"]
    base, sidecar = spec["containers"]
    assert (base["image"], base["resources"], sidecar["image"]) == ("new", {"limits": {"cpu": 1}}, "proxy")
    assert [one["name"] for one in base["env"]][:2] == ["A", "B"]
    assert spec["terminationGracePeriodSeconds"] == 600
    assert template["spec"]["containers"][0]["image"] == "old", "the template is used again for the next pod"


def test_the_image_of_the_setting_wins_over_the_template_and_the_override_over_both() -> None:
    """As in Airflow, whose worker_container_repository replaces the image of the pod template."""
    template: Pod = {"spec": {"containers": [{"name": "base", "image": "template"}]}}
    override = {"spec": {"containers": [{"name": "base", "image": "override"}]}}
    assert pod(template=template)["spec"]["containers"][0]["image"] == "example.org/tradewind:1"
    assert pod(template=template, image="")["spec"]["containers"][0]["image"] == "template"
    assert pod(override, template)["spec"]["containers"][0]["image"] == "override"


def test_nobody_changes_the_labels_by_which_a_pod_is_found() -> None:
    override = {
        "metadata": {"name": "mine", "namespace": "other", "labels": {"tradewind_attempt": "1-1-1"}},
        "spec": {"restartPolicy": "Always"},
    }
    made = pod(override)
    assert attempt_in(made) == (7, 3, 2)
    assert (made["metadata"]["name"], made["metadata"]["namespace"]) == (name_of_pod(WORK, "abcd1234"), "jobs")
    assert made["spec"]["restartPolicy"] == "Never"


def test_names_and_labels_are_short_and_distinct() -> None:
    long = msgspec.structs.replace(WORK, dag_id="d" * 250, task_id="Ünï")
    assert len(name_of_pod(long, "abcd1234")) <= NAME_MAX
    assert name_of_pod(long, "abcd1234").endswith("-abcd1234-7-3-2")
    assert name_of_pod(msgspec.structs.replace(WORK, dag_id="Ü", task_id="ï"), "abcd1234") == "task-abcd1234-7-3-2"
    first, second = label_value("x" * 100 + "a"), label_value("x" * 100 + "b")
    assert first != second
    assert len(first) <= LABEL_MAX
    assert label_value("plain-1.2_3") == "plain-1.2_3"


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("text", "does not contain a pod"),
        ({"kind": "Deployment", "spec": {}}, "does not contain a pod"),
        ({"kind": "Pod", "spec": {}}, "has no spec.containers"),
        ({"kind": "Pod", "spec": {"containers": [{"name": "main"}]}}, "call it 'base'"),
    ],
)
def test_a_template_that_cannot_be_used_is_named(template: object, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check_template(template, "/etc/pod.yaml")


def test_an_empty_part_changes_nothing() -> None:
    base: Pod = {"metadata": {"labels": {"a": "1"}}, "spec": {"containers": [{"name": "base", "image": "x"}]}}
    assert merge_pods(base, {"metadata": {}, "spec": {"containers": []}}) == base
    assert merge_pods(base, None) == base
