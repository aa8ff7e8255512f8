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


class Remote(FileTaskHandler):
    """Reads its log from another system."""

    logs: Any = ()

    def _read_remote_logs(self, ti: Any, try_number: int, metadata: Any = None) -> Any:
        return ["s3://bucket/1.log"], self.logs


@pytest.mark.parametrize("logs", [["one\ntwo"], [iter(["one", "two"])]], ids=["text", "lines"])
def test_a_group_names_the_sources_before_the_messages(tmp_path: Path, logs: Any) -> None:
    handler = Remote(str(tmp_path))
    handler.logs = logs
    found, metadata = handler.read(SimpleNamespace(try_number=1, state="success"), 1)
    header = ["::group::Log message source details", "s3://bucket/1.log", "::endgroup::"]
    assert [one.event for one in found] == [*header, "one", "two"]
    assert metadata == {"end_of_log": True, "log_pos": 2}


def test_the_rest_of_a_log_that_is_still_written(tmp_path: Path) -> None:
    handler = Remote(str(tmp_path))
    handler.logs = ["one\ntwo\nthree"]
    running = SimpleNamespace(dag_id="d", task_id="t", run_id="r", map_index=-1, try_number=2, state="running")
    found, metadata = handler.read(running, 2, {"log_pos": 2})
    assert [one.event for one in found] == ["three"]
    assert metadata == {"end_of_log": False, "log_pos": 3}
    assert handler.read(running, 1)[1]["end_of_log"] is True


def test_the_text_of_a_log_as_in_airflow_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_task_handler, "version", "2.11.0")
    handler = Remote(str(tmp_path))
    handler.logs = ["one\ntwo"]
    text = "s3://bucket/1.log\none\ntwo"
    assert handler.read(TI, 1) == ([[("", text)]], [{"end_of_log": True, "log_pos": len(text)}])


def test_the_file_of_the_worker_where_the_other_system_has_no_log(tmp_path: Path) -> None:
    handler = Remote(str(tmp_path))
    ti = SimpleNamespace(dag_id="d", task_id="t", run_id="r", map_index=-1, try_number=1, state="failed")
    path = tmp_path / handler._render_filename(ti, 1)
    path.parent.mkdir(parents=True)
    path.write_text("here")
    found, _ = handler.read(ti, 1)
    assert [one.event for one in found][1:] == ["s3://bucket/1.log", str(path), "::endgroup::", "here"]
