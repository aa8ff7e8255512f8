"""The interface between the KubernetesExecutor and a client of the API server of Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from tradewind.executors.pod_spec import Pod
from tradewind.model.errors import TradewindError


class Refused(TradewindError):
    """The API server refused a request, or did not answer.

    Attributes:
        status: HTTP status; 0: there was no answer.
        reason: the reason that Kubernetes gives, such as `AlreadyExists`.
        retry_after: seconds until the request may be repeated; 0: not said.
    """

    def __init__(self, status: int, reason: str, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after


class Api(Protocol):
    """The requests to the API server: `kubernetes_api.PodApi`. Each raises `Refused` if it fails."""

    def list_pods(self) -> tuple[list[Pod], str]: ...

    def watch_pods(self, version: str) -> Iterator[tuple[str, Pod]]: ...

    def create_pod(self, pod: Pod) -> Pod: ...

    def read_pod(self, name: str) -> Pod: ...

    def delete_pod(self, name: str, uid: str) -> None: ...

    def mark_done(self, name: str, uid: str) -> None: ...
