"""A stand-in for the API server of Kubernetes: pods whose commands really run, lists, watches, and refusals.

Tests of the package `cncf.kubernetes` use `Pods`; those of the KubernetesExecutor use a subclass, which is in
`tests.integration.kubernetes_executor`.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, NamedTuple
from urllib.parse import parse_qsl, urlsplit


class Refusal(NamedTuple):
    """An answer to a request that is refused."""

    status: int
    reason: str
    message: str
    headers: dict[str, str] = {}


class Event(NamedTuple):
    """A change of a pod, for watches."""

    version: int
    kind: str
    before: dict[str, Any] | None
    pod: dict[str, Any]


class Pods:
    """Pods of a stand-in for Kubernetes. Each container's command really runs, as a process of this machine."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.pods: dict[str, dict[str, Any]] = {}
        self.output: dict[str, bytes] = {}
        self.deleted: list[str] = []
        self.labels: dict[str, dict[str, str]] = {}
        """Task id → the labels of its pod."""
        self.versions = 0
        self.events: list[Event] = []
        self.oldest = 0
        """Watches from an older version are answered with 410."""
        self.watches = 0
        """Number of watches that have begun. A change of `watch_until` ends those before."""
        self.watch_until = 0
        self.is_closed = False

    def refusal(self, method: str, pod: dict[str, Any]) -> Refusal | None:
        """Why a request is refused; None: it is not."""
        if method == "POST" and pod["metadata"].get("name") in self.pods:
            name = pod["metadata"]["name"]
            return Refusal(409, "AlreadyExists", f'pods "{name}" already exists')
        return None

    def create(self, pod: dict[str, Any]) -> dict[str, Any]:
        name = pod["metadata"].setdefault("name", f"pod-{len(self.pods)}")
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        uid = f"uid-{name}-{self.versions}"
        pod["metadata"] |= {"creationTimestamp": now, "uid": uid, "resourceVersion": "1"}
        labels = pod["metadata"].get("labels") or {}
        with self.changed:
            self.pods[name] = pod
            self.labels[labels.get("task_id", "")] = labels
        self._set(pod, "Pending", {"waiting": {"reason": "ContainerCreating"}}, ready=False, kind="ADDED")
        self.start(name)
        return pod

    def loses_answer(self, pod: dict[str, Any]) -> bool:
        """Whether the connection breaks before the answer to the creation of a pod."""
        return False

    def start(self, name: str) -> None:
        """Run the command of a pod."""
        threading.Thread(target=self._run, args=(name,), daemon=True).start()

    def delete(self, name: str) -> dict[str, Any] | None:
        """Delete a pod. Returns it, or None if there is none."""
        with self.changed:
            found = self.pods.pop(name, None)
            if found is not None:
                self._note("DELETED", found, found)
        return found

    def patch(self, name: str, change: dict[str, Any]) -> dict[str, Any]:
        """Change the labels of a pod."""
        with self.changed:
            before = copy.deepcopy(self.pods[name])
            self.pods[name]["metadata"].setdefault("labels", {}).update(change.get("metadata", {}).get("labels") or {})
            self._note("MODIFIED", before, self.pods[name])
            return self.pods[name]

    def _note(self, kind: str, before: dict[str, Any] | None, pod: dict[str, Any]) -> None:
        """Record an event for watches. The caller holds the lock."""
        self.versions += 1
        pod["metadata"]["resourceVersion"] = str(self.versions)
        self.events.append(Event(self.versions, kind, before, copy.deepcopy(pod)))
        self.changed.notify_all()

    def _run(self, name: str) -> None:
        pod = self.pods[name]
        (container,) = pod["spec"]["containers"]
        environ = dict(os.environ) | {one["name"]: one.get("value", "") for one in container.get("env") or ()}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._set(pod, "Running", {"running": {"startedAt": now}}, ready=True)
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environ, timeout=60, check=False)
        self.output[name] = done.stdout
        ended = {"exitCode": done.returncode, "reason": "Error" if done.returncode else "Completed"}
        ended |= {"startedAt": now, "finishedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
        self._set(pod, "Failed" if done.returncode else "Succeeded", {"terminated": ended}, ready=False)

    def _set(
        self, pod: dict[str, Any], phase: str, state: dict[str, Any], *, ready: bool, kind: str = "MODIFIED", reason: str = ""
    ) -> None:
        (container,) = pod["spec"]["containers"]
        status = {"name": container["name"], "state": state, "ready": ready, "restartCount": 0, "image": container["image"]}
        status |= {"imageID": "", "lastState": {}}
        conditions = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": str(ready)}]
        with self.changed:
            pod["status"] = {"phase": phase, "containerStatuses": [status], "conditions": conditions, "podIP": "127.0.0.1"}
            pod["status"] |= {"startTime": pod["metadata"]["creationTimestamp"]} | ({"reason": reason} if reason else {})
            if pod["metadata"]["name"] in self.pods:
                self._note(kind, None if kind == "ADDED" else pod, pod)

    def ended(self, name: str) -> bytes:
        """The output of a pod, when it has ended."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.pods[name]["status"]["phase"] in ("Succeeded", "Failed"), timeout=60)
            return self.output[name]

    def selected(self, labels: str) -> list[dict[str, Any]]:
        """The pods that a label selector names: `a=b`, `a!=b`, `a`, `!a`."""
        return [pod for pod in self.pods.values() if is_selected(pod, labels)]


def is_selected(pod: Mapping[str, Any], labels: str) -> bool:
    """Whether a label selector names a pod."""
    return all(_meets(pod["metadata"].get("labels") or {}, one) for one in _terms(labels))


def _terms(labels: str) -> list[str]:
    return [one.strip() for one in labels.split(",") if one.strip()]


def _meets(labels: Mapping[str, str], term: str) -> bool:
    if "!=" in term:
        name, _, value = term.partition("!=")
        return labels.get(name) != value
    if term.startswith("!"):
        return term[1:] not in labels
    name, equals, value = term.partition("=")
    return labels.get(name) == value.lstrip("=") if equals else name in labels


class _Api(BaseHTTPRequestHandler):
    """The routes for pods."""

    pods: ClassVar[Pods]
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None: ...

    def _answer(self, found: Any, status: int = 200, headers: Mapping[str, str] = {}) -> None:
        data = found if isinstance(found, bytes) else json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(found, bytes) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _refuse(self, refusal: Refusal) -> None:
        status = {"kind": "Status", "status": "Failure", "reason": refusal.reason, "code": refusal.status}
        self._answer(status | {"message": refusal.message}, refusal.status, refusal.headers)

    def _is_refused(self, method: str, pod: dict[str, Any]) -> bool:
        refusal = self.pods.refusal(method, pod)
        if refusal is not None:
            self._refuse(refusal)
        return refusal is not None

    def _body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}")

    def _pod(self) -> tuple[str, str, dict[str, str]]:
        """The name of the pod, what comes after it, and the arguments."""
        url = urlsplit(self.path)
        parts = [*url.path.split("/"), "", ""]
        return (parts[6], parts[7], dict(parse_qsl(url.query))) if parts[5] == "pods" else ("", parts[5], {})

    def _missing(self, name: str) -> None:
        self._refuse(Refusal(404, "NotFound", f'pods "{name}" not found'))

    def do_GET(self) -> None:
        name, more, given = self._pod()
        if more == "events":
            self._answer({"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": []})
        elif not name and given.get("watch") in ("true", "True"):
            self._watch(given.get("labelSelector", ""), int(given.get("resourceVersion") or 0))
        elif self._is_refused("GET", {"metadata": {"name": name}}):
            pass
        elif not name:
            items = self.pods.selected(given.get("labelSelector", ""))
            self._answer(
                {
                    "kind": "PodList",
                    "apiVersion": "v1",
                    "metadata": {"resourceVersion": str(self.pods.versions)},
                    "items": items,
                }
            )
        elif name not in self.pods.pods:
            self._missing(name)
        elif more == "log":
            lines = self.pods.ended(name).splitlines(keepends=True)
            stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000000000Z ").encode()
            self._answer(b"".join(stamp + line if given.get("timestamps") == "True" else line for line in lines))
        else:
            self._answer(self.pods.pods[name])

    def _watch(self, labels: str, version: int) -> None:
        """Send the events after a version until the stand-in ends, or a test ends the watch."""
        pods = self.pods
        with pods.changed:
            if version < pods.oldest:
                self._refuse(Refusal(410, "Expired", "too old resource version"))
                return
            pods.watches += 1
            number = pods.watches
            pods.changed.notify_all()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while True:
            with pods.changed:
                while not (pods.is_closed or number <= pods.watch_until or pods.versions > version):
                    pods.changed.wait(60)
                events, version = [one for one in pods.events if one.version > version], pods.versions
                is_over = pods.is_closed or number <= pods.watch_until
            try:
                for event in events:
                    self._send_event(labels, event)
                if is_over:  # in the middle of a transfer, as when a connection breaks
                    self.close_connection = True
                    return
            except OSError:
                self.close_connection = True
                return

    def _send_event(self, labels: str, event: Event) -> None:
        kind, is_in = event.kind, is_selected(event.pod, labels)
        was_in = event.before is not None and is_selected(event.before, labels)
        if not (is_in or was_in):
            return
        kind = kind if is_in else "DELETED"
        line = json.dumps({"type": kind, "object": event.pod}).encode() + b"\n"
        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        self.wfile.flush()

    def do_POST(self) -> None:
        pod = self._body()
        if not self._is_refused("POST", pod):
            made = self.pods.create(pod)
            if self.pods.loses_answer(made):
                self.close_connection = True
                return
            self._answer(made, 201)

    def do_PATCH(self) -> None:
        name, _, _ = self._pod()
        change = self._body()
        if name not in self.pods.pods:
            self._missing(name)
        elif not self._is_refused("PATCH", self.pods.pods[name]):
            self._answer(self.pods.patch(name, change))

    def do_DELETE(self) -> None:
        name, _, _ = self._pod()
        wanted = (self._body().get("preconditions") or {}).get("uid")
        pod = self.pods.pods.get(name)
        if pod is None:
            self._missing(name)
        elif wanted and wanted != pod["metadata"]["uid"]:
            self._refuse(Refusal(409, "Conflict", f"the UID in the precondition ({wanted}) does not match"))
        elif not self._is_refused("DELETE", pod):
            self.pods.deleted.append(name)
            self.pods.delete(name)
            self._answer(pod)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


@contextmanager
def kubernetes(pods: Pods | None = None) -> Iterator[tuple[Pods, dict[str, Any]]]:
    """A stand-in for the API server of Kubernetes that knows pods: its pods, and the configuration of a client."""
    pods = pods if pods is not None else Pods()
    server = _Server(("127.0.0.1", 0), type("Api", (_Api,), {"pods": pods}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    named = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "jobs"}}],
    }
    try:
        yield pods, {"apiVersion": "v1", "kind": "Config", "current-context": "x", **named}
    finally:
        with pods.changed:
            pods.is_closed = True
            pods.changed.notify_all()
        server.shutdown()
        server.server_close()
        thread.join(10)
