"""An installation that clients of the REST API call: DAGs of each kind, runs that have ended, and a run that waits for a person."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.acceptance.harness import Standalone
from tests.acceptance.rest.dags import DAG_IDS, FILES

_TIMEOUT = 120.0
"""Seconds. The setup takes two seconds on an idle machine."""


class Installation:
    """A running `standalone`.

    `shop_run` is a run of the DAG `shop` that has succeeded, `held_run` one of the DAG `held` whose task `wait` runs until
    `release` is called.
    """

    def __init__(self, standalone: Standalone, pipe: Path) -> None:
        self.standalone = standalone
        self._pipe = pipe
        self.shop_run = standalone.trigger("shop", run_id="first")
        self.held_run = standalone.trigger("held", run_id="waiting", conf={"gate": str(pipe)})
        assert standalone.wait_run("shop", self.shop_run, deadline=_TIMEOUT) == "success"
        standalone.wait_task("held", self.held_run, "wait", ("running",), deadline=_TIMEOUT)

    def release(self) -> None:
        """Let the task `wait` end. No effect if it has ended."""
        try:
            os.close(os.open(self._pipe, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            pass  # no process reads the pipe: the task is not running


@contextmanager
def installation(folder: Path) -> Iterator[Installation]:
    """Start an installation in this folder, and end it afterwards."""
    standalone = Standalone(folder / "home", environment={"TRADEWIND__API__TEST_CONNECTION": "enabled"})
    for name, source in FILES.items():
        standalone.write_dag(name, source)
    pipe = folder / "gate"
    os.mkfifo(pipe)
    standalone.start(deadline=_TIMEOUT)
    try:
        for dag_id in DAG_IDS:
            standalone.wait_dag(dag_id, deadline=_TIMEOUT)
            if dag_id != "nightly":
                standalone.call("set_paused", dag_id=dag_id, is_paused=False)
        found = Installation(standalone, pipe)
        try:
            yield found
        finally:
            found.release()
    finally:
        standalone.close()
