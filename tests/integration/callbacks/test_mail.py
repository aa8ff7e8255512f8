"""Mails of failed and retried tasks, sent to a real SMTP server."""

from __future__ import annotations

from email.message import Message

import pytest

from tests.chaos.world import until
from tests.integration.callbacks.conftest import Instance
from tests.unit.operators.servers import mail_server


def text_of(message: Message) -> str:
    payload = message.get_payload()
    assert isinstance(payload, list)
    (part,) = payload
    assert isinstance(part, Message)
    body = part.get_payload(decode=True)
    assert isinstance(body, bytes)
    return body.decode()


@pytest.mark.spec("S387")
def test_a_task_that_fails_sends_a_mail_with_the_exception(instance: Instance) -> None:
    with mail_server(instance.mail_port) as server:
        run = instance.begin("mails")
        instance.ended("mails", run)
        until("the mail is there", 20, lambda: server.mails)
        instance.nothing_left()
    ((sender, recipients, message),) = server.mails
    assert (sender, recipients) == ("tradewind@example.org", ["ada@example.org", "bob@example.org"])
    assert message["Subject"] == f"Airflow alert: <TaskInstance: mails.t {run} [failed]>"
    text = text_of(message)
    assert "Try 1 out of 1<br>Exception:<br>ValueError: boom<br>" in text
    assert f"/dags/mails/runs/{run}/tasks/t?try_number=1" in text


@pytest.mark.spec("S386")
def test_a_task_that_is_tried_again_sends_a_mail(instance: Instance) -> None:
    with mail_server(instance.mail_port) as server:
        instance.begin("mails_retry")
        instance.wait_for_lines("mails_retry")
        until("the mail is there", 20, lambda: server.mails)
        instance.nothing_left()
    ((_, _, message),) = server.mails
    assert message["Subject"].endswith("[up_for_retry]>")
    assert "Try 1 out of 2" in text_of(message)


@pytest.mark.spec("S387", "S393")
def test_a_killed_task_sends_a_mail(instance: Instance) -> None:
    with mail_server(instance.mail_port) as server:
        instance.begin("mails_killed")
        until("the mail is there", 20, lambda: server.mails)
    assert "killed by SIGKILL" in text_of(server.mails[0][2])


@pytest.mark.spec("S388")
def test_the_mail_is_sent_when_the_server_is_back(instance: Instance) -> None:
    run = instance.begin("mails")
    assert instance.ended("mails", run) == "failed"
    until("it was tried in vain", 20, lambda: [post for post in instance.outbox_items() if post["tries"]])
    (post,) = instance.outbox_items()
    assert "cannot connect to the mail server" in post["problem"]
    with mail_server(instance.mail_port) as server:
        instance.nothing_left()
    assert len(server.mails) == 1
    page = instance.world.get(f"/api/v2/dags/mails/dagRuns/{run}/taskInstances/t/logs/1?full_content=true")
    said = [str(record["event"]) for record in page["content"]]
    assert "Failed to send email to: ada@example.org, bob@example.org" in said
    assert "Sent an email to: ada@example.org, bob@example.org" in said


@pytest.mark.spec("S388")
def test_an_undeliverable_mail_changes_no_state(instance: Instance) -> None:
    with mail_server(instance.mail_port):
        run = instance.begin("mails_nobody")
        assert instance.ended("mails_nobody", run) == "failed"
        until("it is parked", 20, lambda: [post["parked"] for post in instance.outbox_items()] == [True])
    (post,) = instance.outbox_items()
    assert "nobody of that name" in post["problem"]
    instance.world.control.call("drop_callbacks", ids=None)
    assert instance.outbox_items() == []
