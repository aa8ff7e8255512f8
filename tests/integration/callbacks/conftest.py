"""One running instance for all callbacks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.world import World, until
from tests.unit.operators.servers import free_port

SETTINGS = {
    "TRADEWIND__CORE__DAGS_ARE_PAUSED_AT_CREATION": "false",
    "TRADEWIND__CORE__KILL_GRACE": "0.5",
    "TRADEWIND__RUNNER__DRAIN_TIMEOUT": "0",
    "TRADEWIND__SCHEDULER__CALLBACK_RETRY_DELAY": "0.2",
    "AIRFLOW__SMTP__SMTP_HOST": "127.0.0.1",
    "AIRFLOW__SMTP__SMTP_STARTTLS": "false",
    "AIRFLOW__SMTP__SMTP_MAIL_FROM": "tradewind@example.org",
    "TRADEWIND__SCHEDULER__CALLBACK_RETRIES": "2",
}


class Instance:
    """A running instance whose callbacks write notes, and helpers for requests to it."""

    def __init__(self, world: World, notes: Path, mail_port: int) -> None:
        self.world = world
        self.mail_port = mail_port
        self.notes = notes
        self._count = 0

    def begin(self, dag: str) -> str:
        self._count += 1
        run = f"r{self._count}"
        self.world.trigger(dag, run)
        return run

    def ended(self, dag: str, run: str) -> str:
        until(f"{dag} ends", 30, lambda: self.world.run_state(dag, run) in ("success", "failed"))
        return self.world.run_state(dag, run)

    def lines(self, name: str) -> list[dict[str, Any]]:
        try:
            return [json.loads(line) for line in (self.notes / name).read_text(encoding="utf-8").splitlines()]
        except FileNotFoundError:
            return []

    def wait_for_lines(self, name: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until a note has the given number of lines. Returns the lines."""
        until(f"{name} has {count} lines", 30, lambda: len(self.lines(name)) >= count)
        return self.lines(name)

    def outbox_items(self) -> list[dict[str, Any]]:
        """The rows of the outbox."""
        found: list[dict[str, Any]] = self.world.get("/api/v2/callbacks")["callbacks"]
        return found

    def nothing_left(self) -> None:
        until("the outbox is empty", 20, lambda: self.outbox_items() == [])


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Instance]:
    folder = tmp_path_factory.mktemp("callbacks")
    notes = folder / "notes"
    notes.mkdir()
    port = free_port()
    settings = {**SETTINGS, "CALLBACK_NOTES": str(notes), "AIRFLOW__SMTP__SMTP_PORT": str(port)}
    world = World(folder / "home", settings)
    for path in (Path(__file__).parent / "dags").glob("*.py"):
        shutil.copy(path, world.home / "dags")
    shutil.copytree(Path(__file__).parent / "plugins", world.home / "plugins", dirs_exist_ok=True)
    try:
        world.start()
        world.await_ready()
        until("the DAGs are known", 30, lambda: "nothing" in _dags(world))
        yield Instance(world, notes, port)
        world.stop()
        assert world.census() == []
    finally:
        world.kill_everything()


def _dags(world: World) -> list[str]:
    try:
        return [dag["dag_id"] for dag in world.get("/api/v2/dags?limit=100")["dags"]]
    except OSError:
        return []
