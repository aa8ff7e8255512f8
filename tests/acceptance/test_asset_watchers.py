"""Asset watchers with the real command line and processes: events, failures, and deaths of the processes."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from tests.acceptance.harness import Standalone
from tradewind.store.views import AssetWatcherView

TRIGGERS = """
import asyncio
import os

from airflow.sdk import BaseHook
from airflow.triggers.base import BaseEventTrigger, TriggerEvent


class Messages(BaseEventTrigger):
    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def serialize(self):
        return "inbox.Messages", {"folder": self.folder}

    async def run(self):
        queue = await asyncio.to_thread(BaseHook.get_connection, "queue")
        while True:
            for name in sorted(os.listdir(self.folder)):
                path = os.path.join(self.folder, name)
                if name == "poison":
                    os.unlink(path)
                    raise RuntimeError("the queue is gone")
                yield TriggerEvent({"message": name, "host": queue.host})
                os.unlink(path)
            await asyncio.sleep(0.02)
"""

DAG_FILE = """
from datetime import timedelta

from airflow.sdk import DAG, Asset, AssetWatcher, task
from inbox import Messages

orders = Asset("orders", watchers=[AssetWatcher(name="inbox", trigger=Messages("FOLDER"))])

with DAG("load", schedule=[orders]):
    @task(retries=3, retry_delay=timedelta(0))  # the death of the worker host costs a try
    def load(triggering_asset_events):
        events = triggering_asset_events[orders]
        return [[event.extra["payload"]["host"], event.extra["payload"]["message"]] for event in events]

    load()
"""


@pytest.fixture
def inbox(fresh: Standalone) -> Path:
    folder = fresh.home / "inbox"
    folder.mkdir(parents=True)
    fresh.write_dag("inbox.py", TRIGGERS)
    fresh.write_dag("load.py", DAG_FILE.replace("FOLDER", str(folder)))
    fresh.start()
    fresh.wait_dag("load")
    fresh.cli("connections", "add", "queue", "--conn-uri", "amqp://me:hunter-22@queue.example:5672/x")
    return folder


def process(standalone: Standalone, comm: str) -> int | None:
    named = {pid: Path(f"/proc/{pid}/comm") for pid in standalone.processes()}
    return next((pid for pid, name in named.items() if name.exists() and name.read_text().strip() == comm), None)


def messages(standalone: Standalone) -> list[str]:
    """The messages of all events of the asset, the oldest first."""
    with standalone.store() as store:
        extras = [json.loads(event.extra or b"{}") for event in store.asset_events(name="orders")]
    return [extra["payload"]["message"] for extra in extras]


def watcher(standalone: Standalone) -> AssetWatcherView:
    with standalone.store() as store:
        (found,) = store.need_asset("orders", "").watchers
    return found


def test_each_event_of_a_watcher_starts_a_run_and_survives_the_death_of_every_process(fresh: Standalone, inbox: Path) -> None:
    assert process(fresh, "tw-triggerer") is None  # the DAG is paused
    fresh.cli("dags", "unpause", "load")
    sent = []
    for victim in (None, "tw-triggerer", "tw-host", "tw-scheduler"):
        if victim is not None:
            pid = process(fresh, victim)
            assert pid is not None, victim
            os.kill(pid, signal.SIGKILL)
        sent.append(f"after {victim}")
        (inbox / sent[-1]).touch()
        fresh.wait(lambda: not list(inbox.iterdir()), f"{sent[-1]} becomes an event, and the trigger goes on")
    assert messages(fresh) == sent

    def loaded() -> bool:
        rows = fresh.json("dags", "list-runs", "load")
        return bool(rows) and {row["state"] for row in rows} == {"success"}

    fresh.wait(loaded, "the runs succeed")
    with fresh.store() as store:
        found = []
        for row in fresh.json("dags", "list-runs", "load"):
            ((_, _, value, _),) = store.xcoms(store.need_run("load", row["run_id"]).id, ["load"], "return_value")
            assert value is not None
            found += json.loads(value)
    assert sorted(found) == [["queue.example", name] for name in sorted(sent)]
    fresh.cli("dags", "pause", "load")
    fresh.wait(lambda: watcher(fresh).worker is None, "the trigger stops")


def test_a_failed_trigger_is_shown_and_started_again(fresh: Standalone, inbox: Path) -> None:
    fresh.cli("dags", "unpause", "load")
    (inbox / "poison").touch()

    def failed() -> AssetWatcherView | None:
        one = watcher(fresh)
        return one if one.failures else None

    found = fresh.wait(failed, "the failure is shown")
    assert (found.error or "").endswith("RuntimeError: the queue is gone")
    (inbox / "good").touch()
    fresh.wait(lambda: messages(fresh) == ["good"], "the trigger runs again")
    assert watcher(fresh).failures == 0
