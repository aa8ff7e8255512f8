"""A task is killed and fails, a mail is sent, and a parked callback is found, repaired and retried."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.harness import Standalone
from tests.unit.operators.servers import free_port, mail_server

DAG_FILE = """
import os
import signal
from pathlib import Path

from tradewind import DAG, task

HERE = Path(os.environ["TOLD_HERE"])


def page(context):
    if not (HERE / "mended").exists():
        raise OSError("the pager is away")
    (HERE / "paged").write_text(f"{context['ti'].task_id}: {context['exception']}")


with DAG("told", schedule=None, is_paused_upon_creation=False):

    @task(retries=1, retry_delay=0.01, email="ada@example.org", on_failure_callback=page)
    def killed():
        os.kill(os.getpid(), signal.SIGKILL)

    killed()
"""


@pytest.mark.spec("S386", "S387", "S393")
def test_a_failure_sends_a_mail_and_calls_callbacks(tmp_path: Path) -> None:
    port = free_port()
    settings = {
        "TOLD_HERE": str(tmp_path),
        "TRADEWIND__SCHEDULER__CALLBACK_RETRIES": "0",
        "AIRFLOW__SMTP__SMTP_HOST": "127.0.0.1",
        "AIRFLOW__SMTP__SMTP_PORT": str(port),
        "AIRFLOW__SMTP__SMTP_STARTTLS": "false",
        "AIRFLOW__SMTP__SMTP_MAIL_FROM": "tradewind@example.org",
    }
    standalone = Standalone(tmp_path / "home", environment=settings)
    standalone.write_dag("told.py", DAG_FILE)
    with mail_server(port) as server, standalone.started():
        standalone.wait_dag("told")
        run = standalone.trigger("told")
        assert standalone.wait_run("told", run) == "failed"
        standalone.wait(lambda: len(server.mails) == 2, "a mail for each try")
        states = [message["Subject"].rpartition(" ")[2] for _, _, message in server.mails]
        assert sorted(states) == ["[failed]>", "[up_for_retry]>"]
        assert [one["try_number"] for one in standalone.json("tasks", "tries", "told", "killed")] == [1, 2]

        (parked,) = standalone.wait(lambda: standalone.json("callbacks", "list", "--parked"), "the callback is parked")
        assert (parked["what"], parked["task_id"]) == ("on_failure_callback", "killed")
        assert parked["problem"] == "OSError: the pager is away"
        assert f"tradewind callbacks retry {parked['id']}" in standalone.cli("why", "told", "killed", run)
        assert "the pager is away" in standalone.cli("tasks", "logs", "told", "killed", run)

        (tmp_path / "mended").touch()
        assert standalone.cli("callbacks", "retry", str(parked["id"])) == f"Callbacks that are retried now: {parked['id']}.\n"
        standalone.wait((tmp_path / "paged").exists, "it is called")
        standalone.wait(lambda: standalone.json("callbacks", "list") == [], "nothing is left to call")
        assert "killed by SIGKILL" in (tmp_path / "paged").read_text()
