"""A failed task is reported to a stand-in for Sentry."""

from __future__ import annotations

import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.harness import Standalone

DAG_FILE = """
from airflow.sdk import DAG, task

with DAG("reported", schedule=None, is_paused_upon_creation=False):

    @task
    def good(): ...

    @task
    def bad():
        raise ValueError("the file is empty")

    good() >> bad()
"""


class Sentry(ThreadingHTTPServer):
    """Keeps the events of the envelopes that it receives."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        super().__init__(("127.0.0.1", 0), _Envelopes)

    def receive(self, envelope: bytes) -> None:
        lines = [json.loads(line) for line in envelope.split(b"\n") if line]
        self.events += [line for line in lines if "exception" in line]


class _Envelopes(BaseHTTPRequestHandler):
    server: Sentry

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.receive(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_arguments: object) -> None: ...


@pytest.mark.spec("S478", "S502")
def test_a_failed_task_is_reported_to_sentry(tmp_path: Path) -> None:
    pytest.importorskip("sentry_sdk", reason="the package sentry-sdk is not installed (the extra sentry)")
    server = Sentry()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        standalone = Standalone(
            tmp_path / "home",
            environment={
                "AIRFLOW__SENTRY__SENTRY_ON": "True",
                "AIRFLOW__SENTRY__SENTRY_DSN": f"http://key@127.0.0.1:{server.server_port}/1",
                "AIRFLOW__SENTRY__ENVIRONMENT": "production",
            },
        )
        standalone.write_dag("reported.py", DAG_FILE)
        with standalone.started():
            standalone.wait_dag("reported")
            run = standalone.trigger("reported")
            assert standalone.wait_run("reported", run) == "failed"
            (event,) = standalone.wait(lambda: server.events, "the report arrives")
        (error,) = event["exception"]["values"]
        assert (error["type"], error["value"]) == ("ValueError", "the file is empty")
        assert event["environment"] == "production"
        expected = {"dag_id": "reported", "task_id": "bad", "run_id": run, "operator": "_PythonDecoratedOperator"}
        assert expected.items() <= event["tags"].items()
        others = [one["data"] for one in event["breadcrumbs"]["values"] if one.get("category") == "completed_tasks"]
        assert ("good", "success") in [(one["task_id"], one["state"]) for one in others]
    finally:
        server.shutdown()
        server.server_close()
