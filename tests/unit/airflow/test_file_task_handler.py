"""`FileTaskHandler.read`, which handlers of provider packages inherit."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.utils.log.file_task_handler import FileTaskHandler, StructuredLogMessage

from tradewind.airflow.compat import file_task_handler

TI: Any = SimpleNamespace(try_number=1)


class Handler(FileTaskHandler):
    """Reads its messages from another system."""

    found: Any = ()

    def _read(self, ti: Any, try_number: int, metadata: Any = None) -> tuple[Any, dict[str, Any]]:
        return self.found, {"end_of_log": True}


@pytest.fixture
def handler(tmp_path: Path) -> Handler:
    return Handler(str(tmp_path))


def test_messages_and_metadata_of_a_try(handler: Handler) -> None:
    handler.found = [StructuredLogMessage(event="one")]
    logs, metadata = handler.read(TI, 1)
    assert [log.event for log in logs] == ["one"]
    assert metadata == {"end_of_log": True}
    assert handler.read(TI) == (logs, metadata)


def test_no_messages(handler: Handler) -> None:
    handler.found = []
    assert handler.read(TI, 1, {}) == ([], {"end_of_log": True})


def test_a_text_becomes_messages(handler: Handler) -> None:
    handler.found = "one\ntwo"
    logs, _ = handler.read(TI, 1)
    assert [log.event for log in logs] == ["one", "two"]
    handler.found = ['{"event": "three", "level": "info"}\n{four']
    logs, _ = handler.read(TI, 1)
    assert [log.event for log in logs] == ["three", "{four"]


def test_lists_for_each_try_as_in_airflow_2(handler: Handler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_task_handler, "version", "2.11.0")
    handler.found = [("host", "one")]
    assert handler.read(TI, 1) == ([[("host", "one")]], [{"end_of_log": True}])
    handler.found = "text"
    assert handler.read(TI) == ([[("", "text")]], [{"end_of_log": True}])


def test_the_default_name_of_a_file(tmp_path: Path) -> None:
    ti = SimpleNamespace(dag_id="d", task_id="t", run_id="r", map_index=-1, try_number=2)
    assert FileTaskHandler(str(tmp_path))._render_filename(ti, 2) == "dag_id=d/run_id=r/task_id=t/attempt=2.log"
