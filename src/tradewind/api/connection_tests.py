"""Tests of connections, each in a process without credentials, a few at a time, with a time limit."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tradewind.model.errors import Conflict, NotFound
from tradewind.platform.clock import Clock

TEST_SECONDS = 30.0
TESTS_AT_A_TIME = 2
TESTS_KEPT = 100
"""How many queued tests are kept until their clients ask for the result."""
_OUTPUT_MAX = 4000
"""Maximum length of the sentence of a hook, characters."""


@dataclass(slots=True)
class QueuedTest:
    """A test that runs in the background."""

    token: str
    connection_id: str
    created_at: int
    state: str = "queued"
    """`queued`, `running`, `success` or `failed`: Airflow's words."""
    message: str | None = None


class ConnectionTests:
    """Runs tests, and keeps those in the background until their clients have asked for the result."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running = threading.BoundedSemaphore(TESTS_AT_A_TIME)
        self._queued: OrderedDict[str, QueuedTest] = OrderedDict()
        self._lock = threading.Lock()

    def run(self, fields: Mapping[str, Any]) -> tuple[bool, str]:
        """(whether the connection works, a sentence). Waits until other tests have ended.

        Raises:
            Conflict: other tests take too long.
        """
        if not self._running.acquire(timeout=TEST_SECONDS):
            raise Conflict("Other connection tests are running; try again in a minute.")
        try:
            return _run(fields)
        finally:
            self._running.release()

    def start(self, fields: Mapping[str, Any]) -> QueuedTest:
        """Start a test in the background. Raises Conflict: a test of this connection has not ended."""
        with self._lock:
            name = str(fields["conn_id"])
            if any(one.connection_id == name and one.state in ("queued", "running") for one in self._queued.values()):
                raise Conflict(f"A test of the connection {name!r} is running already.")
            test = QueuedTest(secrets.token_urlsafe(24), name, self._clock.wall())
            self._queued[test.token] = test
            while len(self._queued) > TESTS_KEPT:
                self._queued.popitem(last=False)
        threading.Thread(target=self._execute, args=(test, dict(fields)), daemon=True).start()
        return test

    def find(self, token: str) -> QueuedTest:
        """Raises NotFound: the token is unknown, or its test is too old."""
        with self._lock:
            found = self._queued.get(token)
        if found is None:
            raise NotFound("There is no connection test with this token, or it is too old.")
        return found

    def _execute(self, test: QueuedTest, fields: Mapping[str, Any]) -> None:
        try:
            test.state = "running"
            works, test.message = self.run(fields)
            test.state = "success" if works else "failed"
        except Exception as error:
            test.message, test.state = str(error), "failed"


def _run(fields: Mapping[str, Any]) -> tuple[bool, str]:
    kept = {name: value for name, value in os.environ.items() if "FERNET" not in name and "DATABASE" not in name}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tradewind.execution.connection_test"],
            input=json.dumps(dict(fields)),
            env=kept,
            capture_output=True,
            text=True,
            timeout=TEST_SECONDS,
            check=False,
        )
        works, sentence = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return False, f"The test did not end within {TEST_SECONDS:g} seconds."
    except (ValueError, OSError) as error:
        return False, f"The test could not run: {error}"
    return bool(works), str(sentence)[:_OUTPUT_MAX]
