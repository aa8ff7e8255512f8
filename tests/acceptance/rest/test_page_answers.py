"""What the web page asks a running scheduler: the use of a pool, and what runs now."""

from __future__ import annotations

import json
from pathlib import Path

from tests.acceptance.rest.installation import installation


def test_a_running_task_is_in_the_triage_and_holds_a_slot_of_its_pool(tmp_path: Path) -> None:
    with installation(tmp_path) as found:
        pool = json.loads(found.standalone.get("/api/tradewind/v1/pools/default_pool"))
        triage = json.loads(found.standalone.get("/api/tradewind/v1/triage"))
    assert pool["used"] == pool["holder_count"] == 1
    running = ("held", found.held_run, "wait", "running")
    for (shown,) in (pool["holders"], triage["tasks_running"]):
        assert (shown["dag_id"], shown["run_id"], shown["task_id"], shown["state"]) == running
    assert triage["health"]["scheduler"]["status"] == "healthy"
