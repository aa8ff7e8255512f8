"""How many SQL statements each answer needs: a fixed number, whatever the number of rows.

The requests are those of `test_schema.py` for objects that exist. Each is sent twice: the first one fills caches.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from benchmarks import page_data

from tests.unit.api import full_world
from tests.unit.api.conftest import World
from tests.unit.api.page_world import counted_statements
from tests.unit.api.test_schema import ENDLESS, NOT_THERE, OPERATIONS, values_for

BUDGET = Path(__file__).parent / "statements.json"
"""Path → the statements of one GET, with the objects of `full_world` and its caches filled. To write it again after a change:
`WRITE_STATEMENTS=1 pytest tests/unit/api/test_statements.py`, and look at the difference."""

COPIES = 7


def paths() -> list[str]:
    return [one.path for one in OPERATIONS if one.method == "get" and one.path not in ENDLESS | NOT_THERE]


def statements(world: World, path: str, known: dict[str, Any], monkeypatch: pytest.MonkeyPatch, everywhere: bool) -> list[str]:
    values = values_for(path, known)
    if everywhere and path.count("{") == len(re.findall(r"\{dag_id\}|\{dag_run_id\}", path)) and path.startswith("/api/v2"):
        values |= {"dag_id": "~", "dag_run_id": "~"}
    address = re.sub(r"\{(\w+)\}", lambda found: str(values[found[1]]), path)
    query = {"search": {"q": "sales"}, "wait": {"interval": "1"}}.get(path.rpartition("/")[2], {})
    world.get(address, params=query)
    with counted_statements(monkeypatch) as seen:
        answer = world.get(address, params=query)
    assert answer.status_code in (200, 307, 404), answer.text
    return seen


@pytest.fixture
def small(world: World) -> dict[str, Any]:
    return full_world.fill(world)


def test_no_answer_needs_more_than_its_number_of_statements(
    world: World, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {path: len(statements(world, path, small, monkeypatch, everywhere=False)) for path in paths()}
    if os.environ.get("WRITE_STATEMENTS"):
        BUDGET.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    budget = json.loads(BUDGET.read_text())
    assert {path: count for path, count in found.items() if count > budget.get(path, -1)} == {}, "a route without a number?"
    assert {path: count for path, count in budget.items() if path not in found} == {}


def test_more_rows_need_no_more_statements(world: World, small: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path: statements(world, path, small, monkeypatch, everywhere=True) for path in paths()}
    for number in range(COPIES):
        full_world.fill(world, f"_{number}")
    growing = {}
    for path in paths():
        after = statements(world, path, small, monkeypatch, everywhere=True)
        if len(after) > len(before[path]):
            growing[path] = [len(before[path]), len(after), after[-1]]
    assert growing == {}


LARGE_LISTS = (
    "/api/v2/dags/~/dagRuns",
    "/api/v2/dags/~/dagRuns/~/taskInstances",
    "/api/v2/dags/~/dagRuns/~/taskInstances?state=failed",
    "/api/v2/dags/~/dagRuns/~/taskInstances?order_by=-id&limit=100",
    "/api/tradewind/v1/dags/{dag_id}/cells?runs=100",
)
"""Requests besides the bare paths."""
NOT_LARGE = {"wait"}
"""Last word of a path that waits for the end of a run."""
SLOWEST_CPU_SECONDS = 2.0
"""Far more than measured (the slowest takes 0.15 s), so that a busy machine does not fail."""


@pytest.mark.slow
def test_a_million_task_instances_need_no_more_statements_than_a_few(
    tmp_path: Path, password_hash: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every path, on 100 runs of a DAG with 10,000 tasks and on 20 of them. Slow, because the data is written first."""
    few, many = (_figures(tmp_path / str(runs), runs, password_hash, monkeypatch) for runs in (20, 100))
    with capsys.disabled():
        for path, (number, seconds) in sorted(many.items(), key=lambda one: -one[1][1])[:20]:
            print(f"\n{number:3} statements, {seconds * 1e3:6.1f} ms CPU: {path}", end="")
    more = {path: (few[path][0], number) for path, (number, _) in many.items() if number > few[path][0]}
    assert more == {}
    assert {path: seconds for path, (_, seconds) in many.items() if seconds > SLOWEST_CPU_SECONDS} == {}


def _figures(home: Path, runs: int, password_hash: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, float]]:
    """Path → (statements, seconds of CPU), with so many runs of a DAG with 10,000 tasks."""
    home.mkdir(mode=0o700)
    monkeypatch.setenv("TRADEWIND_HOME", str(home))
    assert page_data.fill(home, page_data.Wanted(1, 10_000, runs, unfinished=1))["task_instances"] > runs * 10_000
    world = World(home, password_hash)
    try:
        return dict(_requests(world, monkeypatch))
    finally:
        world.close()


def _requests(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, tuple[int, float]]]:
    """(path, (statements, seconds of CPU)) of each request. What belongs to a DAG exists; other things do not."""
    (dag_id,) = page_data.dag_ids(1)
    (run,) = world.json(f"/api/v2/dags/{dag_id}/dagRuns?state=success&order_by=-id&limit=1")["dag_runs"]
    instances = world.json(
        f"/api/v2/dags/{dag_id}/dagRuns/{quote(run['dag_run_id'], safe='')}/taskInstances?state=success&limit=1"
    )
    names = {"dag_id": dag_id, "dag_run_id": run["dag_run_id"], "task_id": instances["task_instances"][0]["task_id"]}
    known = {**names, "run_id": run["dag_run_id"], "task_instance_id": names["task_id"], "map_index": -1, "try_number": 1}
    for path in (*paths(), *LARGE_LISTS):
        if path.rpartition("/")[2] in NOT_LARGE:
            continue
        address = re.sub(r"\{(\w+)\}", lambda found: quote(str(known.get(found[1], 1)), safe=""), path)
        query = {"q": "sales"} if path.endswith("/search") else None
        world.get(address, params=query)
        began = time.process_time()
        with counted_statements(monkeypatch) as seen:
            answer = world.get(address, params=query)
        assert answer.status_code in (200, 307, 404), f"{path}: {answer.text}"
        yield path, (len(seen), time.process_time() - began)
