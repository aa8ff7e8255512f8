"""Several web servers of one instance, restarted one after the other: there is always one that answers, and no run is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.harness import COMMAND, Standalone
from tests.integration.remote.world import free_port

DAG = """
from datetime import datetime
from tradewind import DAG
from tradewind.operators.empty import EmptyOperator

with DAG("quick", schedule=None, start_date=datetime(2026, 1, 1)):
    EmptyOperator(task_id="one")
"""


class Client:
    """Triggers runs all the time, each through the first web server that answers, as behind a load balancer."""

    def __init__(self, servers: list[str], token: str) -> None:
        self.servers = servers
        self._token = token
        self.triggered: list[str] = []
        self.unanswered: list[str] = []
        self.answered_by: set[str] = set()
        self.has_triggered = threading.Condition()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ends.set()
        self._thread.join(30)

    def wait_more(self, count: int) -> None:
        """Wait until this many further runs have been triggered."""
        with self.has_triggered:
            goal = len(self.triggered) + count
            assert self.has_triggered.wait_for(lambda: len(self.triggered) >= goal, 30)

    def call(self, server: str, method: str, path: str, payload: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        data = None if payload is None else json.dumps(payload).encode()
        with urllib.request.urlopen(urllib.request.Request(server + path, data, headers, method=method), timeout=10) as answer:
            return json.load(answer)

    def _run(self) -> None:
        number = 0
        while not self._ends.is_set():
            number += 1
            run_id = f"run-{number}"
            if not any(self._trigger(server, run_id) for server in self.servers):
                self.unanswered.append(run_id)
            self.servers.append(self.servers.pop(0))

    def _trigger(self, server: str, run_id: str) -> bool:
        try:
            self.call(server, "POST", "/api/v2/dags/quick/dagRuns", {"dag_run_id": run_id, "logical_date": None})
        except urllib.error.HTTPError as error:
            if error.code != 409:  # 409: the former server had created the run when it stopped
                return False
        except OSError:
            return False
        self.answered_by.add(server)
        with self.has_triggered:
            self.triggered.append(run_id)
            self.has_triggered.notify_all()
        return True


def answers(server: str) -> bool:
    """Whether a web server answers."""
    try:
        with urllib.request.urlopen(f"{server}/api/v2/version", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


class WebServer:
    """`tradewind api-server` beside the one of `standalone`."""

    def __init__(self, standalone: Standalone) -> None:
        self._standalone = standalone
        self._port = free_port()
        self.address = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen([*COMMAND, "api-server", "--port", str(self._port)], env=self._standalone.environment)
        self._standalone.wait(lambda: answers(self.address), "an answer of the second web server", 30)

    def stop(self) -> int:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(30)


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[Standalone]:
    made = Standalone(tmp_path / "home", arguments=("--port", str(free_port()), "--no-examples", "--plain"))
    made.write_dag("quick.py", DAG)
    with made.started():
        made.wait_dag("quick")
        made.cli("dags", "unpause", "quick")
        yield made


def token_of(standalone: Standalone) -> str:
    body = json.dumps({"username": "admin", "password": standalone.password}).encode()
    request = urllib.request.Request(f"{standalone.address}/auth/token", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(json.load(answer)["access_token"])


@pytest.mark.long  # web servers start three times
def test_a_rolling_restart_of_web_servers_is_not_noticed(standalone: Standalone) -> None:
    """A token of one server is valid at the other. Each run that was triggered exists once, and succeeds."""
    second = WebServer(standalone)
    second.start()
    client = Client([standalone.address, second.address], token_of(standalone))
    client.start()
    try:
        client.wait_more(5)
        assert second.stop() == 0
        client.wait_more(5)
        second.start()
        client.wait_more(5)
        first = standalone.child("api")
        assert first is not None
        os.kill(first, signal.SIGTERM)
        standalone.wait(lambda: standalone.child("api") not in (None, first), "a new process of the first web server")
        client.wait_more(5)
        standalone.wait(lambda: answers(standalone.address), "an answer of the first web server")
        client.wait_more(5)
    finally:
        client.stop()
        second.stop()
    assert client.unanswered == []
    assert client.answered_by == {standalone.address, second.address}
    assert len(client.triggered) == len(set(client.triggered)) >= 25
    assert set(standalone.succeeded_runs("quick", len(client.triggered))) == set(client.triggered)
