"""The API server of Kubernetes, as the KubernetesExecutor uses it: pods of one namespace as JSON objects.

Needs the package `kubernetes` (the extra of the same name), which finds the API server and signs in as kubectl does. It is loaded
only if the deployment has a KubernetesExecutor.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import kubernetes
import urllib3
from kubernetes.client.rest import RESTClientObject

from tradewind.executors.pod_port import Refused
from tradewind.executors.pod_spec import DEPLOYMENT_LABEL, DONE_LABEL, Pod
from tradewind.model.errors import ConfigError

WATCH_SECONDS = 240
"""The API server ends a watch after this time; then another one begins where it ended."""
LINE_MAX = 16 * 1024 * 1024
"""Maximum size of one event of a watch, bytes."""
PAGE = 500
"""Number of pods in one answer of a list."""


class ApiSettings(NamedTuple):
    """How the API server is reached."""

    namespace: str
    deployment: str
    in_cluster: bool
    """Use the service account of this pod."""
    config_file: str | None
    """A kubeconfig file; None: $KUBECONFIG or ~/.kube/config."""
    cluster_context: str | None
    """A context of the file; None: its current one."""
    verify_ssl: bool
    ca_file: str | None
    request_seconds: tuple[float, float]
    """Timeouts of a request: until the connection is made, and between two pieces of the answer."""
    connections: int
    """Maximum number of requests at the same time."""


class PodApi:
    """See the module. Its methods may be called by several threads.

    Of the package `kubernetes` it uses the configuration, the credentials, and the pool of connections, which are the same in
    all its releases.

    Raises:
        ConfigError: there is no usable configuration of a cluster.
    """

    def __init__(self, settings: ApiSettings) -> None:
        self._selector = f"{DEPLOYMENT_LABEL}={settings.deployment},!{DONE_LABEL}"
        self._seconds = settings.request_seconds
        self._configuration = _configuration(settings)
        self._configuration.connection_pool_maxsize = settings.connections + 2
        self._pool = RESTClientObject(self._configuration).pool_manager
        host = str(self._configuration.host).rstrip("/")
        self._url = f"{host}/api/v1/namespaces/{quote(settings.namespace, safe='')}/pods"

    def list_pods(self) -> tuple[list[Pod], str]:
        """Return the pods of the deployment that are not marked as done, and the version from which a watch continues.

        Raises:
            Refused: see the class.
        """
        found: list[Pod] = []
        query = {"labelSelector": self._selector, "limit": str(PAGE)}
        while True:
            page = self._call("GET", query=query)
            found += page.get("items") or []
            metadata = page.get("metadata") or {}
            if not metadata.get("continue"):
                return found, str(metadata.get("resourceVersion") or "")
            query["continue"] = metadata["continue"]

    def watch_pods(self, version: str) -> Iterator[tuple[str, Pod]]:
        """Yield (type, object) of each event after a version, until the API server ends the watch.

        Types: ADDED, MODIFIED, DELETED, and BOOKMARK, whose object has only a version.

        Raises:
            Refused: as for `list_pods`. The status is 410 if the version is too old: list again.
        """
        query = {"labelSelector": self._selector, "watch": "true", "resourceVersion": version, "allowWatchBookmarks": "true"}
        query["timeoutSeconds"] = str(WATCH_SECONDS)
        answer = self._request("GET", query=query, silence=WATCH_SECONDS + self._seconds[1])
        try:
            for line in _lines(answer):
                event = json.loads(line)
                pod = event.get("object") or {}
                if event.get("type") == "ERROR":
                    raise Refused(int(pod.get("code") or 0), str(pod.get("reason") or ""), str(pod.get("message") or ""))
                yield str(event.get("type")), pod
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise Refused(0, type(error).__name__, f"the watch was interrupted: {error}") from None
        finally:
            answer.close()

    def create_pod(self, pod: Pod) -> Pod:
        """Create a pod, and return it as the API server has it.

        Raises:
            Refused: see the class. The reason is `AlreadyExists` if there is a pod of this name.
        """
        return self._call("POST", body=pod)

    def read_pod(self, name: str) -> Pod:
        """Return a pod.

        Raises:
            Refused: see the class. The status is 404 if there is no such pod.
        """
        return self._call("GET", name)

    def delete_pod(self, name: str, uid: str) -> None:
        """Delete a pod, if it still is the one with this uid. It is no error if there is no such pod any more.

        Raises:
            Refused: see the class.
        """
        self._call_if_there("DELETE", name, {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}})

    def mark_done(self, name: str, uid: str) -> None:
        """Mark a pod that is kept, so that it is not listed any more. It is no error if there is no such pod any more.

        Raises:
            Refused: see the class.
        """
        self._call_if_there("PATCH", name, {"metadata": {"uid": uid, "labels": {DONE_LABEL: "True"}}})

    def _call_if_there(self, method: str, name: str, body: dict[str, Any]) -> None:
        try:
            self._call(method, name, body=body)
        except Refused as refused:
            if refused.status not in (404, 409):
                raise

    def _call(self, method: str, name: str = "", *, query: Mapping[str, str] = {}, body: Any = None) -> dict[str, Any]:
        answer = self._request(method, name, query=query, body=body, silence=self._seconds[1])
        try:
            found = json.loads(answer.data)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise Refused(0, type(error).__name__, f"the answer of the API server of Kubernetes was cut off: {error}") from None
        finally:
            answer.release_conn()
        return found if isinstance(found, dict) else {}

    def _request(
        self, method: str, name: str = "", *, query: Mapping[str, str] = {}, body: Any = None, silence: float
    ) -> urllib3.BaseHTTPResponse:
        """Send a request, and return the answer before its content was read.

        Args:
            silence: seconds between two pieces of the answer after which it counts as broken.

        Raises:
            Refused: there was no answer, or its status is an error.
        """
        url = f"{self._url}/{quote(name, safe='')}" if name else self._url
        headers = {"Accept": "application/json", "User-Agent": "tradewind"}
        if body is not None:
            headers["Content-Type"] = "application/merge-patch+json" if method == "PATCH" else "application/json"
        for one in self._configuration.auth_settings().values():  # refreshes a token that is about to expire
            headers[one["key"]] = one["value"]
        try:
            answer: urllib3.BaseHTTPResponse = self._pool.request(
                method,
                f"{url}?{urlencode(query)}" if query else url,
                body=None if body is None else json.dumps(body),
                headers=headers,
                timeout=urllib3.Timeout(connect=self._seconds[0], read=silence),
                retries=False,  # what follows a failure is decided by the caller
                redirect=False,
                preload_content=False,
            )
            if answer.status >= 300:
                raise _refusal(answer)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Refused(0, type(error).__name__, f"the API server of Kubernetes does not answer: {error}") from None
        return answer


def _configuration(settings: ApiSettings) -> Any:
    configuration = kubernetes.client.Configuration()
    try:
        if settings.in_cluster:
            kubernetes.config.load_incluster_config(client_configuration=configuration)
        else:
            kubernetes.config.load_kube_config(
                config_file=settings.config_file, context=settings.cluster_context, client_configuration=configuration
            )
    except (kubernetes.config.ConfigException, OSError) as error:
        where = (
            "kubernetes_executor.in_cluster is true, and this process is not in a pod with a service account"
            if settings.in_cluster
            else f"the kubeconfig file {settings.config_file or '~/.kube/config'} cannot be used"
        )
        hint = "; outside of the cluster set TRADEWIND__KUBERNETES_EXECUTOR__IN_CLUSTER=false" if settings.in_cluster else ""
        raise ConfigError(f"{where}: {error}{hint}") from None
    if not settings.verify_ssl:
        configuration.verify_ssl = False
    if settings.ca_file:
        configuration.ssl_ca_cert = settings.ca_file
    return configuration


def _refusal(answer: urllib3.BaseHTTPResponse) -> Refused:
    """The error of the API server, with the message that it sends."""
    text = answer.data
    answer.release_conn()
    try:
        status = json.loads(text or b"{}")
    except ValueError:
        status = {}
    if not isinstance(status, dict):
        status = {}
    try:
        wait = float(answer.headers.get("Retry-After") or 0)
    except ValueError:
        wait = 0.0
    message = str(status.get("message") or f"HTTP status {answer.status}")
    return Refused(answer.status, str(status.get("reason") or ""), message, wait if 0 < wait < math.inf else 0.0)


def _lines(answer: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """The lines of a watch, each as soon as it is complete."""
    rest = b""
    for piece in answer.stream(amt=None, decode_content=True):
        rest += piece
        *lines, rest = rest.split(b"\n")
        yield from (line for line in lines if line.strip())
        if len(rest) > LINE_MAX:
            raise Refused(0, "TooLarge", f"an event of the watch is larger than {LINE_MAX} bytes")
