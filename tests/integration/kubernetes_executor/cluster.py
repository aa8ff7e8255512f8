"""A stand-in cluster for the KubernetesExecutor: its pods run `tradewind worker` as processes of this machine, in home folders of
their own. Tests make it refuse requests, lose answers and end pods.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.acceptance.harness import COMMAND
from tests.integration.kubernetes_server import Pods, Refusal
from tradewind.platform.linux import descendants

GRACE_SECONDS = 20.0


class Cluster(Pods):
    """See the module.

    Args:
        folder: for the home folders of pods.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        """Name of a pod → the process of its container."""
        self.made: list[dict[str, Any]] = []
        """All pods that were ever created."""
        self.requests: list[tuple[str, str]] = []
        """(method, name of the pod) of each request that was not a list."""
        self.refuse: Callable[[str, dict[str, Any]], Refusal | None] = lambda method, pod: None
        self.lose_answers = 0
        """Number of creations whose answer gets lost."""
        self.waiting: dict[str, Any] | None = None
        """Set: new pods stay pending, and their container waits with this state."""
        self.unschedulable = ""
        """Set: new pods stay pending, and no node takes them, for this reason."""

    # --- requests -----------------------------------------------------------------------------------------------------

    def refusal(self, method: str, pod: dict[str, Any]) -> Refusal | None:
        name = pod["metadata"].get("name", "")
        with self.changed:
            if name:
                self.requests.append((method, name))
            found = self.refuse(method, pod)
            self.changed.notify_all()
        return found or super().refusal(method, pod)

    def loses_answer(self, pod: dict[str, Any]) -> bool:
        with self.changed:
            self.lose_answers -= 1
            return self.lose_answers >= 0

    def create(self, pod: dict[str, Any]) -> dict[str, Any]:
        with self.changed:
            self.made.append(pod)
        return super().create(pod)

    def delete(self, name: str) -> dict[str, Any] | None:
        """Delete a pod: TERM, KILL after the grace period; it is gone when its processes have ended."""
        process = self.processes.get(name)
        if process is None or process.poll() is not None:
            return super().delete(name)
        with self.changed:
            pod = self.pods[name]
            pod["metadata"]["deletionTimestamp"] = pod["metadata"]["creationTimestamp"]
            self._note("MODIFIED", pod, pod)
        process.send_signal(signal.SIGTERM)
        threading.Thread(target=self._delete_after_end, args=(name, process), daemon=True).start()
        return pod

    def _delete_after_end(self, name: str, process: subprocess.Popen[bytes]) -> None:
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill_processes(name)
        with self.changed:  # the end of the container is seen before the end of the pod
            self.changed.wait_for(lambda: self.phase(name) in ("Succeeded", "Failed", ""), 10)
        super().delete(name)

    # --- pods ---------------------------------------------------------------------------------------------------------

    def start(self, name: str) -> None:
        pod = self.pods[name]
        if self.unschedulable:
            with self.changed:
                condition = {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": self.unschedulable,
                }
                pod["status"] = {"phase": "Pending", "conditions": [condition]}
                self._note("MODIFIED", pod, pod)
        elif self.waiting is not None:
            self._set(pod, "Pending", {"waiting": self.waiting}, ready=False)
        else:
            threading.Thread(target=self._run, args=(name,), daemon=True).start()

    def schedule_all(self) -> None:
        """Let the pods run that no node has taken so far."""
        for name in [name for name in self.pods if name not in self.processes]:
            self.start(name)

    def _run(self, name: str) -> None:
        pod = self.pods[name]
        container = pod["spec"]["containers"][0]
        home = self.folder / name
        home.mkdir()
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("TRADEWIND_", "AIRFLOW"))}
        given = {one["name"]: one.get("value", "") for one in container.get("env") or ()}
        words = list(container["args"])
        command = [*COMMAND, *words[1:]] if words[0] == "tradewind" else words
        with (home / "output").open("wb") as output:
            process = subprocess.Popen(
                command,
                env={**kept, **given, "TRADEWIND_HOME": str(home)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.processes[name] = process
        self._set(pod, "Running", {"running": {"startedAt": pod["metadata"]["creationTimestamp"]}}, ready=True)
        code = process.wait()
        reason = pod.get("reason_of_end") or ("Error" if code else "Completed")
        ended = {"exitCode": code if code >= 0 else 128 - code, "reason": reason}
        self._set(pod, "Failed" if code else "Succeeded", {"terminated": ended}, ready=False)

    def kill_processes(self, name: str) -> None:
        """Kill all processes of a pod at once."""
        process = self.processes[name]
        for pid in (process.pid, *descendants(process.pid)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def run_out_of_memory(self, name: str) -> None:
        """End a pod as the kernel does when its container needs too much memory."""
        self.pods[name]["reason_of_end"] = "OOMKilled"
        self.kill_processes(name)

    def phase(self, name: str) -> str:
        """The phase of a pod; empty: there is no such pod."""
        pod = self.pods.get(name)
        return pod["status"]["phase"] if pod is not None else ""

    def wait(self, look: Callable[[], bool], what: str, deadline: float = 60.0) -> None:
        """Wait for something that a request or an event changes."""
        with self.changed:
            assert self.changed.wait_for(look, deadline), f"{what} did not happen within {deadline} s: {self.describe()}"

    def describe(self) -> str:
        return str({name: pod["status"] for name, pod in self.pods.items()}) + str(self.requests[-20:])

    def output_of(self, name: str) -> str:
        return (self.folder / name / "output").read_text(errors="replace")

    def of_task(self, task: str) -> list[str]:
        """Names of the pods that were ever created for a task."""
        return [pod["metadata"]["name"] for pod in self.made if pod["metadata"]["annotations"]["task_id"] == task]

    def close(self) -> None:
        """End all processes."""
        for name, process in self.processes.items():
            if process.poll() is None:
                self.kill_processes(name)
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
