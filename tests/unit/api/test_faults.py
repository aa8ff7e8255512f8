"""Errors of the server and wrong arguments: the answer of the API, and where the place of an error is written."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.unit.api.conftest import World
from tradewind.model.errors import StatementError


def raising(error: Exception) -> Any:
    def call(*given: Any, **more: Any) -> Any:
        raise error

    return call


def ids_in_the_log(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [getattr(record, "values", {}) for record in caplog.records if record.exc_info is not None]
    return [values["fault"] for values in found if "fault" in values]


def id_told(world: World) -> str:
    detail = world.json("/api/v2/pools", 500)["detail"]
    result = re.search(r"under the id ([0-9a-f]{8})\.", detail)
    assert result is not None, detail
    return result.group(1)


@pytest.mark.parametrize("error", [ZeroDivisionError("a bug"), StatementError("no such column: full")])
def test_a_bug_in_a_route_is_a_500_with_an_id(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    world.dag()
    monkeypatch.setattr("tradewind.store.sql.store.SqlStore.list_pools", raising(error), raising=True)
    result = id_told(world)
    assert ids_in_the_log(caplog) == [result]


def test_a_bug_in_a_command_is_a_500_with_its_id(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world.dag()
    world.run()
    monkeypatch.setattr(world.store, "set_run_note", raising(KeyError("note")))
    path = "/api/v2/dags/sales/dagRuns/r1"
    answer = world.request("PATCH", path, json={"note": "so"})
    assert answer.status_code == 500
    (fault,) = ids_in_the_log(caplog)
    assert fault in answer.json()["detail"]
