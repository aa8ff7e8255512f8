"""What Airflow 2.0 to 2.6 itself had for pods of Kubernetes: `airflow.kubernetes.pod_generator`, `…kube_client`, `…secret`.

Later releases of the package `cncf-kubernetes` have these modules, and they are used where they exist. Releases of 2021 and
2022 import them from Airflow. Needs the package `kubernetes`, which those releases require.
"""

from __future__ import annotations

import copy
import datetime
import hashlib
import logging
import os
import re
import secrets
import socket
import string
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import reduce
from typing import Any, cast

import yaml
from kubernetes import client, config
from kubernetes.client import models as k8s
from urllib3.connection import HTTPConnection, HTTPSConnection

from tradewind.airflow.compat.configuration import conf
from tradewind.airflow.compat.provider_helpers import PodDefaults
from tradewind.sdk.exceptions import AirflowConfigException

log = logging.getLogger("airflow.kubernetes")

MAX_LABEL_LEN = 63
"""Characters of a label's value, and of a part of a name."""
MAX_POD_ID_LEN = 253
_SECTION = "kubernetes_executor"
_CONTAINER_LISTS = ("volume_mounts", "env", "env_from", "ports", "volume_devices")
_METADATA_LISTS = ("managed_fields", "finalizers", "owner_references")


# --- client -------------------------------------------------------------------------------------------------------------------


def _disable_verify_ssl() -> None:
    """Let clients of this process accept any certificate."""
    settings = client.Configuration()
    settings.verify_ssl = False
    client.Configuration.set_default(settings)


def _enable_tcp_keepalive() -> None:
    """Let connections of this process to an API server be probed, so that a firewall does not drop an idle one unnoticed."""
    probes = (
        ("TCP_KEEPIDLE", "tcp_keep_idle", 120),
        ("TCP_KEEPINTVL", "tcp_keep_intvl", 30),
        ("TCP_KEEPCNT", "tcp_keep_cnt", 6),
    )
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    options += [
        (socket.IPPROTO_TCP, getattr(socket, name), conf.getint(_SECTION, option, fallback=default))
        for name, option, default in probes
        if hasattr(socket, name)
    ]
    for connection in (HTTPConnection, HTTPSConnection):
        connection.default_socket_options = [*connection.default_socket_options, *options]


def get_kube_client(in_cluster: bool | None = None, cluster_context: str | None = None, config_file: str | None = None) -> Any:
    """A client of the API server of Kubernetes.

    Args:
        in_cluster: use the account of this pod. None: as configured in `[kubernetes_executor] in_cluster`.
        cluster_context: a context of the file; None: as configured, else the file's current one.
        config_file: a kubeconfig file; None: as configured, else the client's default.
    """
    if conf.getboolean(_SECTION, "enable_tcp_keepalive", fallback=True):
        _enable_tcp_keepalive()
    if in_cluster is None:
        in_cluster = conf.getboolean(_SECTION, "in_cluster", fallback=True)
    if in_cluster:
        config.load_incluster_config()
    else:
        config.load_kube_config(
            config_file=config_file or conf.get(_SECTION, "config_file", fallback=None),
            context=cluster_context or conf.get(_SECTION, "cluster_context", fallback=None),
        )
    if not conf.getboolean(_SECTION, "verify_ssl", fallback=True):
        _disable_verify_ssl()
    return client.CoreV1Api()


# --- names and labels ---------------------------------------------------------------------------------------------------------


def make_safe_label_value(string: str) -> str:
    """A text that Kubernetes accepts as the value of a label.

    A text that had to be changed ends with a hash of the original one.
    """
    safe = re.sub(r"[^a-zA-Z0-9_.\-]", "", re.sub(r"^[^a-zA-Z0-9]+|[^a-zA-Z0-9]+$", "", string))
    if safe == string and len(safe) <= MAX_LABEL_LEN:
        return safe
    hashed = hashlib.md5(string.encode(), usedforsecurity=False).hexdigest()[:9]
    return f"{safe[: MAX_LABEL_LEN - len(hashed) - 1]}-{hashed}"


def datetime_to_label_safe_datestring(datetime_obj: datetime.datetime) -> str:
    """`2020-01-01T00_00_00_plus_00_00`"""
    return datetime_obj.isoformat().replace(":", "_").replace("+", "_plus_")


def label_safe_datestring_to_datetime(string: str) -> datetime.datetime:
    """The date that `datetime_to_label_safe_datestring` has written."""
    return datetime.datetime.fromisoformat(string.replace("_plus_", "+").replace("_", ":"))


def rand_str(num: int) -> str:
    """A random text of lower-case letters and digits."""
    return "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(num))


def add_pod_suffix(*, pod_name: str, rand_len: int = 8, max_len: int = 80) -> str:
    """A name that ends with a random text, and is not longer than `max_len`."""
    return f"{pod_name[: max_len - rand_len - 1].strip('-.')}-{rand_str(rand_len)}"


def create_pod_id(dag_id: str | None = None, task_id: str | None = None, *, max_length: int = 80, unique: bool = True) -> str:
    """The name of a pod for a task.

    Raises:
        ValueError: neither a DAG nor a task is given.
    """
    if not (dag_id or task_id):
        raise ValueError("Must supply either dag_id or task_id.")
    words = re.sub(r"[^a-z0-9]+", "-", "-".join(filter(None, (dag_id, task_id))).lower()).strip("-")
    return add_pod_suffix(pod_name=words, max_len=max_length) if unique else words[:max_length].strip("-.")


# --- merged objects -----------------------------------------------------------------------------------------------------------


def merge_objects(base_obj: Any, client_obj: Any) -> Any:
    """A copy of `client_obj` in which missing values are those of `base_obj`. Both are dicts, or objects of the client's models."""
    if not base_obj or not client_obj:
        return client_obj or base_obj
    if isinstance(base_obj, dict) and isinstance(client_obj, dict):
        return {**copy.deepcopy(base_obj), **copy.deepcopy(client_obj)}
    merged = copy.deepcopy(client_obj)
    for name in base_obj.attribute_map:
        if not getattr(client_obj, name, None) and getattr(base_obj, name, None):
            setattr(merged, name, getattr(base_obj, name))
    return merged


def extend_object_field(base_obj: Any, client_obj: Any, field_name: str) -> Any:
    """A copy of `client_obj` in which a list begins with the items of `base_obj`.

    Raises:
        ValueError: the field is not a list.
    """
    first, second = getattr(base_obj, field_name, None), getattr(client_obj, field_name, None)
    if not all(isinstance(found, (list, type(None))) for found in (first, second)):
        raise ValueError("The chosen field must be a list.")
    extended = copy.deepcopy(client_obj)
    if first:
        setattr(extended, field_name, [*first, *(second or ())])
    return extended


def _extended(base: Any, own: Any, names: Iterable[str]) -> Any:
    return reduce(lambda made, name: extend_object_field(base, made, name), names, own)


# --- pods ---------------------------------------------------------------------------------------------------------------------


class _Sidecar(PodDefaults):
    """The container beside a task's container that keeps the file with its XCom until it is read."""

    VOLUME_MOUNT = k8s.V1VolumeMount(name="xcom", mount_path=PodDefaults.XCOM_MOUNT_PATH)
    VOLUME = k8s.V1Volume(name="xcom", empty_dir=k8s.V1EmptyDirVolumeSource())
    SIDECAR_CONTAINER = k8s.V1Container(
        name=PodDefaults.SIDECAR_CONTAINER_NAME,
        command=["sh", "-c", PodDefaults.XCOM_CMD],
        image="alpine",
        volume_mounts=[VOLUME_MOUNT],
        resources=k8s.V1ResourceRequirements(requests={"cpu": "1m"}),
    )


class PodGenerator:
    """Makes pods, and merges them.

    Args:
        pod: a pod; or
        pod_template_file: the path of a YAML file with a pod.
        extract_xcom: add the container that keeps the XCom.

    Raises:
        AirflowConfigException: both or neither of pod and file are given.
    """

    def __init__(self, pod: Any = None, pod_template_file: str | None = None, extract_xcom: bool = True) -> None:
        if (pod is None) == (not pod_template_file):
            raise AirflowConfigException("give either pod or pod_template_file.")
        self.ud_pod = pod if pod is not None else self.deserialize_model_file(cast("str", pod_template_file))
        self.extract_xcom = extract_xcom

    def gen_pod(self) -> Any:
        """The pod with a unique name, and with the container that keeps the XCom."""
        made = copy.deepcopy(self.ud_pod)
        made.metadata.name = self.make_unique_pod_id(made.metadata.name)
        return self.add_sidecar(made) if self.extract_xcom else made

    @staticmethod
    def add_sidecar(pod: Any) -> Any:
        """A copy of a pod with the container that keeps the XCom of its first container."""
        made = copy.deepcopy(pod)
        made.spec.volumes = [_Sidecar.VOLUME, *(made.spec.volumes or ())]
        first = made.spec.containers[0]
        first.volume_mounts = [_Sidecar.VOLUME_MOUNT, *(first.volume_mounts or ())]
        made.spec.containers.append(copy.deepcopy(_Sidecar.SIDECAR_CONTAINER))
        return made

    add_xcom_sidecar = add_sidecar

    @staticmethod
    def from_obj(obj: Any) -> Any:
        """The pod of a task's `executor_config`: its `pod_override`, or None.

        Raises:
            TypeError: `pod_override` is not a pod.
        """
        given = obj.get("pod_override") if isinstance(obj, dict) else obj
        if given is None or isinstance(given, k8s.V1Pod):
            return given
        raise TypeError(f"pod_override has to be a kubernetes.client.models.V1Pod; this is {type(given).__name__}.")

    @staticmethod
    def reconcile_pods(base_pod: Any, client_pod: Any | None) -> Any:
        """A copy of `client_pod` that has everything else of `base_pod`. Lists such as volumes are joined."""
        if client_pod is None:
            return base_pod
        made = copy.deepcopy(client_pod)
        made.spec = PodGenerator.reconcile_specs(base_pod.spec, made.spec)
        made.metadata = PodGenerator.reconcile_metadata(base_pod.metadata, made.metadata)
        return merge_objects(base_pod, made)

    @staticmethod
    def reconcile_metadata(base_meta: Any, client_meta: Any) -> Any:
        """Metadata that has everything of both; `client_meta` wins."""
        if not base_meta or not client_meta:
            return client_meta or base_meta or None
        made = _extended(base_meta, client_meta, _METADATA_LISTS)
        made.labels = merge_objects(base_meta.labels, client_meta.labels)
        made.annotations = merge_objects(base_meta.annotations, client_meta.annotations)
        return merge_objects(base_meta, made)

    @staticmethod
    def reconcile_specs(base_spec: Any, client_spec: Any) -> Any:
        """A spec that has everything of both; `client_spec` wins."""
        if not base_spec or not client_spec:
            return client_spec or base_spec or None
        made = _extended(base_spec, client_spec, ("init_containers", "volumes"))
        made.containers = PodGenerator.reconcile_containers(base_spec.containers, client_spec.containers)
        return merge_objects(base_spec, made)

    @staticmethod
    def reconcile_containers(base_containers: Any, client_containers: Any) -> Any:
        """Merge containers by position."""
        theirs, own = list(base_containers or ()), list(client_containers or ())
        both = [merge_objects(base, _extended(base, one, _CONTAINER_LISTS)) for base, one in zip(theirs, own, strict=False)]
        return [*both, *theirs[len(both) :], *own[len(both) :]]

    @staticmethod
    def serialize_pod(pod: Any) -> dict[str, Any]:
        """A pod as a dict with the names of its YAML form."""
        return cast("dict[str, Any]", client.ApiClient().sanitize_for_serialization(pod))

    @staticmethod
    def deserialize_model_file(path: str) -> Any:
        """The pod of a YAML file. A file that does not exist gives an empty pod, as in Airflow."""
        if not os.path.exists(path):
            log.warning("there is no pod template file %s.", path)
            return PodGenerator.deserialize_model_dict(None)
        with open(path, encoding="utf-8") as file:
            return PodGenerator.deserialize_model_dict(yaml.safe_load(file))

    @staticmethod
    def deserialize_model_dict(pod_dict: dict[str, Any] | None) -> Any:
        """The pod of a dict with the names of its YAML form."""
        return client.ApiClient()._ApiClient__deserialize_model(pod_dict, k8s.V1Pod)

    @staticmethod
    def make_unique_pod_id(pod_id: str | None) -> str | None:
        """A name that begins with a text and ends with a random number, at most 63 characters."""
        if not pod_id:
            return None
        number = uuid.uuid4().hex
        return f"{pod_id[: MAX_LABEL_LEN - len(number) - 1].rstrip('-.')}-{number}"


# --- secrets ------------------------------------------------------------------------------------------------------------------


class K8SModel(ABC):
    """Something that can be added to a pod."""

    @abstractmethod
    def attach_to_pod(self, pod: Any) -> Any:
        """A copy of the pod with this added."""


def append_to_pod(pod: Any, k8s_objects: Iterable[K8SModel] | None) -> Any:
    """A copy of the pod with all of them added."""
    return reduce(lambda made, one: one.attach_to_pod(made), k8s_objects or (), pod)


class Secret(K8SModel):
    """A secret of Kubernetes as an environment variable or as files of a pod.

    Args:
        deploy_type: `env` or `volume`.
        deploy_target: the variable, or the path where the files are mounted. None: all keys become variables.
        secret: the name of the secret.
        key: the key in the secret.
        items: keys and paths for a volume.

    Raises:
        AirflowConfigException: the type is unknown, or a key has no target.
    """

    def __init__(
        self, deploy_type: str, deploy_target: str | None, secret: str, key: str | None = None, items: Any = None
    ) -> None:
        if deploy_type not in ("env", "volume"):
            raise AirflowConfigException("deploy_type must be env or volume")
        if key is not None and deploy_target is None:
            raise AirflowConfigException("If `key` is set, `deploy_target` should not be None")
        is_variable = deploy_type == "env" and deploy_target is not None
        self.deploy_type, self.secret, self.key, self.items = deploy_type, secret, key, items or []
        self.deploy_target = cast("str", deploy_target).upper() if is_variable else deploy_target

    def to_env_secret(self) -> Any:
        """One key as a variable."""
        reference = k8s.V1SecretKeySelector(name=self.secret, key=self.key)
        return k8s.V1EnvVar(name=self.deploy_target, value_from=k8s.V1EnvVarSource(secret_key_ref=reference))

    def to_env_from_secret(self) -> Any:
        """All keys as variables."""
        return k8s.V1EnvFromSource(secret_ref=k8s.V1SecretEnvSource(name=self.secret))

    def to_volume_secret(self) -> tuple[Any, Any]:
        """The volume, and where it is mounted."""
        name = f"secretvol{uuid.uuid4()}"
        source = k8s.V1SecretVolumeSource(secret_name=self.secret, items=self.items or None)
        mount = k8s.V1VolumeMount(mount_path=self.deploy_target, name=name, read_only=True)
        return k8s.V1Volume(name=name, secret=source), mount

    def attach_to_pod(self, pod: Any) -> Any:
        """A copy of the pod with the secret in its first container."""
        made = copy.deepcopy(pod)
        first = made.spec.containers[0]
        if self.deploy_type == "volume":
            volume, mount = self.to_volume_secret()
            made.spec.volumes = [*(made.spec.volumes or ()), volume]
            first.volume_mounts = [*(first.volume_mounts or ()), mount]
        elif self.key is not None:
            first.env = [*(first.env or ()), self.to_env_secret()]
        else:
            first.env_from = [*(first.env_from or ()), self.to_env_from_secret()]
        return made

    def _facts(self) -> tuple[Any, ...]:
        return self.deploy_type, self.deploy_target, self.secret, self.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._facts())

    def __repr__(self) -> str:
        return f"Secret({', '.join(map(str, self._facts()))})"
