"""A stand-in for the API server of Kubernetes, for tests of the package `cncf.kubernetes`: pods whose commands really run."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit


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

    def create(self, pod: dict[str, Any]) -> dict[str, Any]:
        name = pod["metadata"].setdefault("name", f"pod-{len(self.pods)}")
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        pod["metadata"] |= {"creationTimestamp": now, "uid": f"uid-{name}", "resourceVersion": "1"}
        self._set(pod, "Pending", {"waiting": {"reason": "ContainerCreating"}}, ready=False)
        labels = pod["metadata"].get("labels") or {}
        with self.changed:
            self.pods[name] = pod
            self.labels[labels.get("task_id", "")] = labels
        threading.Thread(target=self._run, args=(name,), daemon=True).start()
        return pod

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

    def _set(self, pod: dict[str, Any], phase: str, state: dict[str, Any], *, ready: bool) -> None:
        (container,) = pod["spec"]["containers"]
        status = {"name": container["name"], "state": state, "ready": ready, "restartCount": 0, "image": container["image"]}
        status |= {"imageID": "", "lastState": {}}
        conditions = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": str(ready)}]
        with self.changed:
            self.versions += 1
            pod["metadata"]["resourceVersion"] = str(self.versions)
            pod["status"] = {"phase": phase, "containerStatuses": [status], "conditions": conditions, "podIP": "127.0.0.1"}
            self.changed.notify_all()

    def ended(self, name: str) -> bytes:
        """The output of a pod, when it has ended."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.pods[name]["status"]["phase"] in ("Succeeded", "Failed"), timeout=60)
            return self.output[name]

    def selected(self, labels: str) -> list[dict[str, Any]]:
        """The pods that a label selector names: `a=b`, `a!=b`, `a`, `!a`."""
        return [
            pod for pod in self.pods.values() if all(_meets(pod["metadata"].get("labels") or {}, one) for one in _terms(labels))
        ]


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

    def _answer(self, found: Any, status: int = 200) -> None:
        data = found if isinstance(found, bytes) else json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(found, bytes) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or b"{}")

    def _pod(self) -> tuple[str, str, dict[str, str]]:
        """The name of the pod, what comes after it, and the arguments."""
        url = urlsplit(self.path)
        parts = [*url.path.split("/"), "", ""]
        return (parts[6], parts[7], dict(parse_qsl(url.query))) if parts[5] == "pods" else ("", parts[5], {})

    def _missing(self, name: str) -> None:
        status = {
            "kind": "Status",
            "status": "Failure",
            "reason": "NotFound",
            "code": 404,
            "message": f'pods "{name}" not found',
        }
        self._answer(status, 404)

    def do_GET(self) -> None:
        name, more, given = self._pod()
        if more == "events":
            self._answer({"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": []})
        elif not name:
            items = self.pods.selected(given.get("labelSelector", ""))
            self._answer({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})
        elif name not in self.pods.pods:
            self._missing(name)
        elif more == "log":
            lines = self.pods.ended(name).splitlines(keepends=True)
            stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000000000Z ").encode()
            self._answer(b"".join(stamp + line if given.get("timestamps") == "True" else line for line in lines))
        else:
            self._answer(self.pods.pods[name])

    def do_POST(self) -> None:
        self._answer(self.pods.create(self._body()), 201)

    def do_PATCH(self) -> None:
        name, _, _ = self._pod()
        labels = self._body().get("metadata", {}).get("labels") or {}
        self.pods.pods[name]["metadata"].setdefault("labels", {}).update(labels)
        self._answer(self.pods.pods[name])

    def do_DELETE(self) -> None:
        name, _, _ = self._pod()
        self._body()
        found = self.pods.pods.pop(name, None)
        self.pods.deleted.append(name)
        self._missing(name) if found is None else self._answer(found)


@contextmanager
def kubernetes() -> Iterator[tuple[Pods, dict[str, Any]]]:
    """A stand-in for the API server of Kubernetes that knows pods: its pods, and the configuration of a client."""
    pods = Pods()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Api", (_Api,), {"pods": pods}))
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
        server.shutdown()
        server.server_close()
        thread.join(10)
