"""Airflow 2's own Python client (`apache-airflow-client` 2.10) calls every operation that it has, under `/api/v1`.

It cannot be installed beside version 3, so it runs in another Python: `make test-airflow2-client` makes one and names it in the
environment. Each operation is either answered as the client expects, or names its path in `/api/v2`.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.rest.installation import installation

PYTHON = os.environ.get("CLIENT_OF_AIRFLOW_2", "")
"""A Python that has this package."""
PROGRAM = Path(__file__).with_name("client_of_airflow_2.py")

MOVED_APIS = ("DatasetApi", "RoleApi", "UserApi", "PermissionApi")
MOVED = ("DAGApi.post_set_task_instances_state", "DAGApi.get_dag_source", "DAGRunApi.get_upstream_dataset_events")
"""Operations whose answer names another path."""


@pytest.mark.skipif(not PYTHON, reason="needs a Python with version 2 of the client: make test-airflow2-client")
def test_every_operation_answers_or_names_its_new_path(tmp_path: Path) -> None:
    with installation(tmp_path) as found:
        standalone = found.standalone
        command = [PYTHON, str(PROGRAM), standalone.address, standalone.password, found.shop_run, found.held_run]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL, check=False)
    assert ran.returncode == 0, ran.stderr[-4000:]
    outcomes = dict(json.loads(line) for line in ran.stdout.splitlines())
    moved = {name for name in outcomes if name in MOVED or name.split(".")[0] in MOVED_APIS}
    assert outcomes == {name: "moved" if name in moved else "answered" for name in outcomes}
    assert len(outcomes) == 90
