"""A DAG file is edited, renamed and restored while its run is active, with the real file watch, parser and processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.acceptance.harness import Standalone

HEAD = """
from datetime import datetime

from tradewind import DAG, task

FIFO = {fifo!r}


with DAG("edited", schedule=None, start_date=datetime(2026, 1, 1), is_paused_upon_creation=False):

    @task(retries=1, retry_delay=0)
    def first(ti):
        with open(f"{{FIFO}}{{ti.try_number}}") as ready:  # waits for the test
            if ready.read() == "fail":
                raise ValueError("once more")

"""
OLD = """
    @task
    def old():
        print("never")

    first() >> old()
"""
NEW = """
    @task
    def new():
        print("code of the new file")

    first() >> new()
"""


@pytest.mark.spec("S148", "S160", "S254")
def test_an_edited_and_renamed_file_fails_nothing(fresh: Standalone, tmp_path: Path) -> None:
    fifo = tmp_path / "ready"
    for number in (1, 2):
        os.mkfifo(f"{fifo}{number}")
    head = HEAD.format(fifo=str(fifo))
    path = fresh.write_dag("before.py", head + OLD)
    with fresh.started():
        fresh.wait_dag("edited")
        run_id = fresh.trigger("edited")
        fresh.wait_task("edited", run_id, "first", ("running",))
        renamed = fresh.write_dag("after.py", head + NEW)
        path.unlink()
        with fresh.store() as store:
            fresh.wait(lambda: store.need_dag("edited").file == "after.py", "the new name is known")
        Path(f"{fifo}1").write_text("fail")
        Path(f"{fifo}2").write_text("go on")
        assert fresh.wait_run("edited", run_id) == "success"
        with fresh.store() as store:
            states = {name: store.task_instance("edited", run_id, name).state for name in ("first", "old", "new")}
        assert states == {"first": "success", "old": "removed", "new": "success"}
        assert renamed.exists()
