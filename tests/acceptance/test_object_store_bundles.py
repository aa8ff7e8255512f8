"""DAG files from an object store, with the real fetch, parser, scheduler and tasks. A folder stands for the bucket."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.acceptance.harness import Standalone

pytest.importorskip("fsspec", reason="tests of object stores need fsspec: pip install 'tradewind[object-store]'")

DAG = """
from tradewind import DAG, task

import word

with DAG("stored", schedule=None, is_paused_upon_creation=False):

    @task
    def say():
        return word.WORD

    say()
"""


class Bucket:
    """A folder whose objects are replaced one by one, each at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, name: str, content: str) -> None:
        path = self.folder / "dags" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.folder / "draft"
        draft.write_text(content)
        os.replace(draft, path)


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    return Bucket(tmp_path / "bucket")


@pytest.fixture
def standalone(fresh: Standalone, bucket: Bucket) -> Standalone:
    fresh.environment["TRADEWIND__BUNDLES__LIST"] = f"file://{bucket.folder}/dags"
    fresh.environment["TRADEWIND__BUNDLES__REFRESH_INTERVAL"] = "1"
    return fresh


def said(standalone: Standalone, run_id: str) -> object:
    return json.loads(standalone.cli("xcom", "get", "stored", "say", run_id).strip() or "null")


def wait_other_version(standalone: Standalone, version: str | None) -> str:
    """Wait until the next run of the DAG gets another version than this. Returns it."""
    with standalone.store() as store:
        standalone.wait(lambda: store.need_dag("stored").bundle_version != version or None, "another version")
        return str(store.need_dag("stored").bundle_version)


def test_a_cleared_run_runs_its_own_version(standalone: Standalone, bucket: Bucket) -> None:
    bucket.put("word.py", "WORD = 'one'\n")
    bucket.put("stored.py", DAG)
    with standalone.started():
        standalone.wait_dag("stored")
        old = standalone.trigger("stored")
        assert (standalone.wait_run("stored", old), said(standalone, old)) == ("success", "one")
        with standalone.store() as store:
            first = store.need_dag("stored").bundle_version
        bucket.put("word.py", "WORD = 'twenty-two'\n")  # only a module that the DAG file imports
        second = wait_other_version(standalone, first)
        new = standalone.trigger("stored")
        assert (standalone.wait_run("stored", new), said(standalone, new)) == ("success", "twenty-two")
        standalone.cli("tasks", "clear", "stored", "--run-id", old, "--yes")
        with standalone.store() as store:
            standalone.wait(lambda: store.task_instance("stored", old, "say").try_number == 2 or None, "the second try")
        assert (standalone.wait_run("stored", old), said(standalone, old)) == ("success", "one")
        standalone.cli("tasks", "clear", "stored", "--run-id", old, "--latest-version", "--yes")
        with standalone.store() as store:
            standalone.wait(lambda: store.task_instance("stored", old, "say").try_number == 3 or None, "the third try")
        assert (standalone.wait_run("stored", old), said(standalone, old)) == ("success", "twenty-two")
        listed = json.loads(standalone.cli("bundles", "list", "--output", "json"))
        shown = {one["name"]: (one["kind"], one["version"], one["problem"]) for one in listed}
        assert shown["dags"] == ("object-store", second, "")
