"""`tradewind waits list`: from the database, with or without a scheduler."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run
from tradewind.cli.compose.bundles import DAGS_BUNDLE
from tradewind.cli.compose.commands_without_scheduler import open_commands
from tradewind.model.definition import DagDefinition, TaskDefinition, encode_definition, version_hash
from tradewind.model.rows import Batch, DeferralRow, NewRun, ParsedDag, ParsedFile, RunWrite, TaskWrite
from tradewind.model.states import RunState, RunType, TaskState
from tradewind.model.waits import Deferral, TasksWait
from tradewind.settings import load

AT = 1_767_225_600_000_000


@pytest.fixture
def waiting(home: Path) -> Path:
    """`report.t` waits for a DAG that does not exist."""
    settings = load()
    settings.paths.prepare()
    store, _ = open_commands(settings)
    try:
        data = encode_definition(DagDefinition("report", (TaskDefinition("t"),), is_paused_upon_creation=False))
        dag = ParsedDag("report", data, version_hash(data))
        store.register_file(ParsedFile(DAGS_BUNDLE, "r.py", "", (dag,), None, 1, False, AT), paused_at_creation=False)
        version = store.need_dag("report").version
        row = store.create_run(NewRun("report", "r1", RunType.MANUAL, version, AT, None, None, AT, AT, "cli"))
        snapshot = store.snapshot(row.id)
        assert snapshot is not None
        (task,) = snapshot.rows
        deferred = task._replace(state=TaskState.DEFERRED.code)
        wait = DeferralRow(0, 0, AT, Deferral(TasksWait("lode", (AT,), task_ids=("x",)), timeout_at=AT + 60_000_000))
        write = RunWrite(row.id, row.revision, RunState.RUNNING, AT, None, None, row.journal_seq, [TaskWrite(deferred, 0, 0)])
        write.deferrals.append(wait)
        store.commit(Batch(0, AT, [write]))
    finally:
        store.close()
    return home


def test_waits_are_listed_with_those_that_can_never_end(run: Run, waiting: Path) -> None:
    (found,) = json.loads(run("waits", "list", "-o", "json").stdout)
    assert (found["dag_id"], found["task_id"], found["run_id"], found["kind"]) == ("report", "t", "r1", "tasks")
    assert found["waits_for"] == "'x' of DAG 'lode' to be success (2026-01-01T00:00:00Z)"
    assert found["timeout_at"] == "2026-01-01T00:01:00Z"
    assert [one["sentence"] for one in found["impossible"]] == ["There is no DAG 'lode'."]
    assert "There is no DAG 'lode'." in run("waits", "list", "report", "--impossible").stdout
    assert "no DAG 'reportt'" in run("waits", "list", "reportt").stderr


def test_no_waits(run: Run, home: Path) -> None:
    settings = load()
    settings.paths.prepare()
    open_commands(settings)[0].close()
    assert "No task is deferred." in "".join((run("waits", "list").stdout, run("waits", "list").stderr))
