"""The examples of the operators' pages run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shape.source import ROOT
from tests.unit.operators import datax_installation
from tests.unit.operators.servers import http_server, mail_server
from tradewind.sdk.load import load_file

PAGES = sorted(page for page in (ROOT / "docs" / "reference" / "operators").glob("*.md") if page.name != "README.md")


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A web server, a mail server, a database and a recorder in place of DataX for the default connections."""
    (tmp_path / "rain.csv").write_text("day,mm\n")
    monkeypatch.chdir(tmp_path)
    with http_server() as web, mail_server() as mail:
        monkeypatch.setenv("TRADEWIND_CONN_HTTP_DEFAULT", json.dumps({"conn_type": "http", "host": web.url}))
        monkeypatch.setenv("TRADEWIND_CONN_SQL_DEFAULT", json.dumps({"conn_type": "sqlite", "host": str(tmp_path / "x.db")}))
        extra = {"disable_ssl": True, "disable_tls": True, "from_email": "tradewind@example.org"}
        for conn_id, connection in datax_installation.install(tmp_path).items():
            monkeypatch.setenv(f"TRADEWIND_CONN_{conn_id.upper()}", json.dumps(connection))
        server = {"conn_type": "smtp", "host": "127.0.0.1", "port": mail.port, "extra": json.dumps(extra)}
        monkeypatch.setenv("TRADEWIND_CONN_SMTP_DEFAULT", json.dumps(server))
        yield


@pytest.mark.usefixtures("outside")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_example_of_each_page_runs(page: Path, tmp_path: Path) -> None:
    """The first Python block of a page is a DAG file whose run succeeds."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    (tmp_path / "copied.py").write_text(blocks[0], encoding="utf-8")
    (dag,) = load_file(str(tmp_path), "copied.py").dags.values()
    run = dag.test()
    assert {task.task_id: task.state for task in run.tasks.values() if task.state not in ("success", "skipped")} == {}
    assert run.state == "success"
    assert "success" in {task.state for task in run.tasks.values()}
