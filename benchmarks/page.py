"""The data of the web page, with 10 … 1,000,000 task instances in the database: how long the server needs for each answer.

Each size is one DAG in a home folder of its own, filled by `page_data`; and one more has a thousand DAGs. `standalone` serves
it, and one client asks again and again. `first` is the first request after the start, before anything is in the cache.
"""

from __future__ import annotations

import gzip
import http.client
import json
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from benchmarks import page_data
from benchmarks.bench import Bench
from benchmarks.deployment import free_port, stock_environment, tradewind_command
from benchmarks.measure import Result, tree

SIZES: dict[str, page_data.Wanted] = {
    "10": page_data.Wanted(1, 10, 1),
    "1k": page_data.Wanted(1, 100, 10),
    "10k": page_data.Wanted(1, 100, 100),
    "100k": page_data.Wanted(1, 1_000, 100),
    "1M": page_data.Wanted(1, 10_000, 100, log_mb=100),
    "1,000 DAGs": page_data.Wanted(1_000, 10, 14),
}
QUICK = ("10", "1k")
PATIENCE = 120.0
"""Seconds until the server is ready, and for one answer."""


class Page:
    """A client of one server, over one connection."""

    def __init__(self, port: int, password: str, server: int) -> None:
        self._server = server
        self.address = f"http://127.0.0.1:{port}"
        self._login = {"username": "admin", "password": password}
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self._headers = {"Content-Type": "application/json"}
        token = json.loads(self.ask("/auth/token", "POST", json.dumps(self._login)))["access_token"]
        self._headers = {"Authorization": f"Bearer {token}", "Accept-Encoding": "gzip"}

    def ask(self, path: str, method: str = "GET", body: str | None = None) -> bytes:
        """The body of an answer. Raises RuntimeError for any other status than 200 or 201."""
        self._connection.request(method, path, body, self._headers)
        answer = self._connection.getresponse()
        data = answer.read()
        if answer.status not in (200, 201):
            raise RuntimeError(f"{method} {path}: {answer.status} {data[:300]!r}")
        return data

    def log_in(self, requests: Any) -> None:
        """Start a session for a browser context; `requests` are its requests, from Playwright."""
        headers = {"X-Tradewind-Request": "1", "Origin": self.address}
        answer = requests.post("/auth/login", data=self._login, headers=headers)
        if not answer.ok:
            raise RuntimeError(f"POST /auth/login: {answer.status} {answer.text()}")

    def cpu(self) -> float:
        """CPU that the API process has used until now, milliseconds. Other work on the machine hardly changes it."""
        return sum(process.own for process in tree([self._server]) if process.name == "tw-api") * 1e3

    def took(self, path: str) -> tuple[float, int]:
        """(milliseconds, bytes) of one answer."""
        began = time.perf_counter()
        size = len(self.ask("/api/tradewind/v1" + path))
        return (time.perf_counter() - began) * 1e3, size


@contextmanager
def served(home: Path) -> Iterator[Page]:
    """`standalone` in this home folder, and a client that is logged in."""
    port = free_port()
    log = home / "standalone.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*tradewind_command(), "standalone", "--port", str(port), "--no-examples"],
            env=stock_environment(home),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
        try:
            password = _password(log, process)
            _await_ready(port)
            yield Page(port, password, process.pid)
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await_ready(port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/tradewind/v1/ready", timeout=5):
                return
        except OSError as error:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the server is not ready: {error}") from None
            time.sleep(0.05)


def _password(log: Path, process: subprocess.Popen[bytes]) -> str:
    """The password that `standalone` prints at its first start, when it is ready."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        found = re.search(r"admin / (\S+)", log.read_text(errors="replace"))
        if found is not None:
            return found[1]
        time.sleep(0.05)
    raise RuntimeError(f"the server did not start: {log.read_text(errors='replace')[-500:]}")


def page(bench: Bench) -> list[Result]:
    """Answers by size of the database."""
    result = Result("page")
    for name, wanted in SIZES.items():
        if bench.quick and name not in QUICK:
            continue
        home = Path(tempfile.mkdtemp(prefix="twb-page-"))
        try:
            result.facts[f"{name}_fill"] = page_data.fill(home / "home", wanted)
            with served(home / "home") as client:
                _measure(client, name, wanted, bench.pick(15, 3), result)
        finally:
            shutil.rmtree(home, ignore_errors=True)
        result.note_load()
        once, again = result.median(f"{name} cells first"), result.median(f"{name} cells")
        bench.say(f"page {name}: cells first {once:.0f} ms, then {again:.0f} ms")
    return [result]


def _measure(client: Page, name: str, wanted: page_data.Wanted, repeat: int, result: Result) -> None:
    dag_id = page_data.dag_ids(1)[0]
    dag = f"/dags/{dag_id}"
    columns = min(wanted.runs, 100)
    client.ask("/api/v2/version")
    first = {"structure": f"{dag}/structure", "cells": f"{dag}/cells?runs={columns}", "dags": "/dags", "triage": "/triage"}
    for what, path in first.items():
        before = client.cpu()
        took, size = client.took(path)
        result.add(f"{name} {what} first", [took])
        result.add(f"{name} {what} first cpu", [client.cpu() - before])
        result.facts[f"{name} {what} bytes"] = size
    run = json.loads(_plain(client, f"{dag}/cells?runs=1"))["runs"][0]["run_id"]
    paths = {**first, "run": f"{dag}/runs/{quote(run, safe='')}", "gantt": f"{dag}/runs/{quote(run, safe='')}/gantt"}
    token = json.loads(_plain(client, f"{dag}/cells?runs={columns}"))["token"]
    paths["cells, nothing new"] = f"{dag}/cells?runs={columns}&since={token}"
    for what, path in paths.items():
        before = client.cpu()
        result.add(f"{name} {what}", [client.took(path)[0] for _ in range(repeat)])
        result.add(f"{name} {what} cpu", [(client.cpu() - before) / repeat])


def _plain(client: Page, path: str) -> bytes:
    data = client.ask("/api/tradewind/v1" + path)
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
