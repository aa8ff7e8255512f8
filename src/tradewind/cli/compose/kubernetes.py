"""Puts the KubernetesExecutor together: its pods, the client of the API server, and its news in the scheduler's loop."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import selectors
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tradewind.cli.compose.gateway import gateway_address, worker_key
from tradewind.model.errors import ConfigError

if TYPE_CHECKING:
    from tradewind.executors.local import LocalExecutor
    from tradewind.executors.pod_launcher import PodLauncher
    from tradewind.executors.pod_spec import Pod
    from tradewind.platform.clock import Clock
    from tradewind.scheduler.server import SchedulerServer
    from tradewind.settings import Settings

REQUEST_SECONDS = (10.0, 30.0)
"""Timeouts of a request: until the connection is made, and between two pieces of the answer."""
DEPLOYMENT_LENGTH = 8


def make_launcher(settings: Settings, clock: Clock, epoch: int) -> PodLauncher:
    """Return what creates the pods. Its threads are not started yet.

    Raises:
        ConfigError: the package `kubernetes` is missing, or a setting cannot be used.
    """
    if importlib.util.find_spec("kubernetes") is None:
        raise ConfigError(
            "the KubernetesExecutor needs the package kubernetes. Install it: pip install 'tradewind[kubernetes]'"
        )
    from tradewind.executors.kubernetes_api import ApiSettings, PodApi
    from tradewind.executors.pod_launcher import PodLauncher
    from tradewind.executors.pod_registry import PodLimits
    from tradewind.executors.pod_spec import PodSettings, image_of

    chosen, key = settings.kubernetes_executor, worker_key(settings)
    template = _template(chosen.pod_template_file)
    if not chosen.image and not image_of(template):
        raise ConfigError(
            "the KubernetesExecutor has no image for its pods; set TRADEWIND__KUBERNETES_EXECUTOR__WORKER_CONTAINER_REPOSITORY "
            "and …__WORKER_CONTAINER_TAG, or name the image in kubernetes_executor.pod_template_file"
        )
    gateway = chosen.gateway or gateway_address(settings)
    if not gateway:
        raise ConfigError(
            "pods of the KubernetesExecutor connect to a gateway, and there is none; set TRADEWIND__GATEWAY__ENABLED=true, "
            "or TRADEWIND__KUBERNETES_EXECUTOR__GATEWAY to the address of a gateway that you start yourself"
        )
    deployment = hashlib.sha256(b"pods of " + key).hexdigest()[:DEPLOYMENT_LENGTH]
    creates = chosen.worker_pods_creation_batch_size
    api = PodApi(
        ApiSettings(
            namespace=chosen.namespace,
            deployment=deployment,
            in_cluster=chosen.in_cluster,
            config_file=chosen.config_file or None,
            cluster_context=chosen.cluster_context or None,
            verify_ssl=chosen.verify_ssl,
            ca_file=chosen.ssl_ca_cert or None,
            request_seconds=_request_seconds(chosen.kube_client_request_args),
            connections=creates,
        )
    )
    pod = PodSettings(deployment, chosen.namespace, template, chosen.image, gateway, settings.core.kill_grace, epoch)
    limits = PodLimits(
        creates,
        chosen.worker_pods_pending_timeout_us,
        chosen.delete_worker_pods,
        chosen.delete_worker_pods_on_failure,
        epoch,
    )
    return PodLauncher(api, pod, limits, key, clock)


@contextmanager
def following_pods(pods: PodLauncher | None, executor: LocalExecutor, server: SchedulerServer) -> Iterator[None]:
    """Let the threads of the launcher run for the block, and the scheduler's loop apply what they find out. None: do nothing."""
    if pods is None:
        yield
        return
    from tradewind.executors.kubernetes import KubernetesExecutor

    assert isinstance(executor, KubernetesExecutor)
    kubernetes = executor

    def apply(events: int) -> None:
        hosts = server.scheduler.hosts
        if kubernetes.apply_news(hosts.attempt_gone) and not server.scheduler.paused:
            hosts.resubmit_old(server.clock.wall())  # attempts of an earlier scheduler

    server.loop.watch(pods, selectors.EVENT_READ, apply)
    pods.start()
    try:
        yield
    finally:
        pods.stop()


def _template(path: str | None) -> Pod:
    """Return the pod template.

    Raises:
        ConfigError: the file cannot be read, or does not contain a pod.
    """
    from tradewind.executors.pod_spec import EMPTY_TEMPLATE, check_template

    if not path:
        return EMPTY_TEMPLATE
    import yaml

    try:
        with open(path, encoding="utf-8") as file:
            return check_template(yaml.safe_load(file), path)
    except OSError as error:
        raise ConfigError(f"kubernetes_executor.pod_template_file: {path} cannot be read: {error.strerror}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"kubernetes_executor.pod_template_file: {path} is not valid YAML: {error}") from None


def _request_seconds(text: str | None) -> tuple[float, float]:
    """Return the timeouts of `kube_client_request_args`.

    Raises:
        ConfigError: it is not a JSON object, or its timeout is not one or two positive numbers.
    """
    if not text:
        return REQUEST_SECONDS
    try:
        given: Any = json.loads(text)
        found = given.get("_request_timeout") or list(REQUEST_SECONDS)
        first, second = found if isinstance(found, list) else (found, found)
        if not (float(first) > 0 and float(second) > 0):
            raise ValueError("a timeout has to be positive")
    except (ValueError, TypeError, AttributeError):
        raise ConfigError(
            f"kubernetes_executor.kube_client_request_args = {text!r} is not valid; "
            'write a JSON object such as {"_request_timeout": [10, 30]}'
        ) from None
    return float(first), float(second)
