"""One running instance for all hostile tasks."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.world import World, until

SETTINGS = {
    "TRADEWIND__CORE__KILL_GRACE": "0.5",
    "TRADEWIND__CORE__TASK_OVERTIME": "0.5",
    "TRADEWIND__RUNNER__LOG_MAX_BYTES": "200000",
    "TRADEWIND__RUNNER__LOG_LINE_MAX_BYTES": "10000",
    "TRADEWIND__RUNNER__MEMORY_LIMIT_MB": "600",
    "TRADEWIND__SCHEDULER__SWEEP_INTERVAL": "2",
    "TRADEWIND__SCHEDULER__LOST_ATTEMPTS": "repeat",
    "TRADEWIND__RUNNER__DRAIN_TIMEOUT": "0",
}


@dataclass
class Ended:
    """The result of a run of a DAG with one task."""

    state: str
    reason: str
    log: list[dict[str, Any]]

    @property
    def text(self) -> str:
        return "\n".join(str(record["event"]) for record in self.log)


class Hostile:
    """Helpers for requests to the instance."""

    def __init__(self, world: World, notes: Path) -> None:
        self.world = world
        self.notes = notes
        self._count = 0

    def begin(self, dag: str) -> str:
        self._count += 1
        run = f"r{self._count}"
        self.world.trigger(dag, run)
        return run

    def run(self, dag: str, said: str = "", seconds: float = 30.0) -> Ended:
        """Run a DAG to its end, then check that a harmless task still works.

        Args:
            said: the log must contain this text, at the latest a moment after the end.
        """
        found = self.end(dag, self.begin(dag), said, seconds)
        if dag != "fine":
            self.still_works()
        return found

    def end(self, dag: str, run: str, said: str = "", seconds: float = 30.0) -> Ended:
        until(f"{dag} ends", seconds, lambda: self.world.run_state(dag, run) in ("success", "failed"))
        found = Ended(self.world.task_states(dag, run)["t"], " ".join(self.why(dag, run)), [])

        def complete() -> bool:
            page = self.world.get(f"/api/v2/dags/{dag}/dagRuns/{run}/taskInstances/t/logs/1?full_content=true")
            found.log = page["content"]
            return said in found.text

        until(f"the log of {dag} says {said!r}", 10, complete)
        return found

    def why(self, dag: str, run: str) -> list[str]:
        found = self.world.control.call("why", dag_id=dag, task_id="t", run_id=run)
        return [blocker["sentence"] for blocker in found["blockers"]]

    def still_works(self) -> None:
        found = self.run("fine", "all is well")
        assert found.state == "success"

    def noted(self, name: str) -> str:
        until(f"the task wrote {name}", 20, (self.notes / name).exists)
        return (self.notes / name).read_text(encoding="utf-8")


def launch(folder: Path, settings: dict[str, str]) -> Hostile:
    """Start an instance with the hostile DAGs."""
    notes = folder / "notes"
    notes.mkdir()
    world = World(folder / "home", {**SETTINGS, "HOSTILE_NOTES": str(notes), **settings})
    for path in (Path(__file__).parent / "dags").iterdir():
        if path.is_file():
            shutil.copy(path, world.home / "dags")
    return Hostile(world, notes)


@contextmanager
def standing(folder: Path, settings: dict[str, str]) -> Iterator[Hostile]:
    """A running instance. At the end no process of it may be left."""
    found = launch(folder, settings)
    try:
        up(found)
        yield found
        found.world.stop()
        assert found.world.census() == []
    finally:
        found.world.kill_everything()


def up(hostile: Hostile) -> None:
    """Start the instance and wait until every file was read."""
    hostile.world.start()
    hostile.world.await_ready()

    def read() -> bool:
        try:
            dags = hostile.world.get("/api/v2/dags?limit=100")["dags"]
            errors = hostile.world.get("/api/v2/importErrors")["import_errors"]
        except OSError:
            return False
        return len(dags) >= 20 and len(errors) >= 1

    until("the DAGs are known", 30, read)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    found = launch(tmp_path_factory.mktemp("hostile"), {})
    try:
        up(found)
        yield found
        found.world.stop()
        assert found.world.census() == []
    finally:
        found.world.kill_everything()
