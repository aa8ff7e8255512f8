"""The mail of a task that failed: its words, templates of one's own, other ways to send it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tradewind import DAG
from tradewind.execution.context import build_context
from tradewind.execution.task_instance import TaskInstance
from tradewind.sdk.exceptions import AirflowConfigException
from tradewind.sdk.operator import BaseOperator
from tradewind.wire.messages import Workload
from tradewind.worker import alert_mail

WORK = Workload(1, 0, 1, "d", "t", "r <1>", max_tries=2, try_number=2, conf={"who": "ada"})


def context() -> Any:
    with DAG("d", schedule=None):
        task = BaseOperator("t")
    found = build_context(task, WORK)
    found["ti"].state = "up_for_retry"
    return found


@pytest.mark.spec("S387")
def test_the_usual_words() -> None:
    subject, body = alert_mail.rendered(context(), "ValueError: a < b\nand more")
    assert subject == "Airflow alert: <TaskInstance: d.t r <1> [up_for_retry]>"
    assert body.startswith("Try 2 out of 3<br>Exception:<br>ValueError: a &lt; b<br>and more<br>Log: <a href=")


def test_words_without_a_context() -> None:
    """Where the file cannot be imported nothing is known but the attempt."""
    ti = TaskInstance(None, WORK)
    ti.state = "failed"
    subject, body = alert_mail.rendered({"ti": ti}, "SyntaxError")
    assert subject.endswith("[failed]>")
    assert "Exception:<br>SyntaxError<br>" in body


def test_templates_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "subject").write_text("{{ dag.dag_id }}: {{ exception }}\n  of {{ dag_run.conf['who'] }}\n")
    monkeypatch.setenv("AIRFLOW__EMAIL__SUBJECT_TEMPLATE", str(tmp_path / "subject"))
    monkeypatch.setenv("AIRFLOW__EMAIL__HTML_CONTENT_TEMPLATE", str(tmp_path / "missing"))
    subject, body = alert_mail.rendered(context(), "boom")
    assert subject == "d: boom of ada"
    assert body.startswith("Try 2 out of 3")


def test_another_way_to_send(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[Any, ...]] = []
    module = ModuleType("postmen")
    module.send = lambda *given, **named: sent.append((*given, named))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "postmen", module)
    monkeypatch.setenv("AIRFLOW__EMAIL__EMAIL_BACKEND", "postmen.send")
    monkeypatch.setenv("AIRFLOW__EMAIL__FROM_EMAIL", "me@example.org")
    alert_mail.send_alert(("ada@example.org",), context(), "boom")
    ((to, subject, _, named),) = sent
    assert (to, named) == (["ada@example.org"], {"from_email": "me@example.org"})
    assert subject.startswith("Airflow alert")
    monkeypatch.setenv("AIRFLOW__EMAIL__EMAIL_BACKEND", "postmen.nobody")
    with pytest.raises(AirflowConfigException, match=r"email\.email_backend is 'postmen\.nobody'"):
        alert_mail.send_alert(("ada@example.org",), context(), "boom")
