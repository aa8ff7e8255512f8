"""Mail that is sent to a real SMTP server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.execution.world import World, carry_out
from tests.unit.operators.servers import MailServer, mail_server
from tradewind import DAG
from tradewind.execution.run_task import TaskResult
from tradewind.hooks.smtp import SmtpHook, addresses, send_email
from tradewind.model.states import Outcome
from tradewind.operators.email import EmailOperator
from tradewind.sdk.exceptions import AirflowException


def _connection(port: int, **extra: Any) -> dict[str, Any]:
    plain = {"disable_ssl": True, "disable_tls": True, "from_email": "me@example.org", "retry_limit": 2, **extra}
    return {"conn_type": "smtp", "host": "127.0.0.1", "port": port, "extra": json.dumps(plain)}


@pytest.fixture
def server(world: World) -> Iterator[MailServer]:
    with mail_server() as found:
        world.connections["smtp_default"] = _connection(found.port)
        yield found


def _run(**kwargs: Any) -> TaskResult:
    with DAG("d", schedule=None):
        operator = EmailOperator(**{"task_id": "t", "to": "ada@example.org", "subject": "s", "html_content": "x", **kwargs})
    return carry_out(operator)


@pytest.mark.spec("S504")
def test_a_mail_arrives_with_all_its_parts(server: MailServer, tmp_path: Path) -> None:
    (tmp_path / "rain.csv").write_text("mm\n1\n")
    result = _run(
        to="Ada <ada@example.org>; bob@example.org",
        cc=["cy@example.org"],
        bcc="dan@example.org",
        subject="Rain on {{ ds }} – ü",
        html_content="<b>{{ run_id }}</b> ü",
        files=[str(tmp_path / "{{ 'rain' }}.csv")],
        custom_headers={"X-Team": "weather"},
    )
    assert result.outcome is Outcome.SUCCESS, result.reason
    ((sender, recipients, message),) = server.mails
    assert sender == "me@example.org"
    assert recipients == ["ada@example.org", "bob@example.org", "cy@example.org", "dan@example.org"]
    from email.header import decode_header, make_header

    assert str(make_header(decode_header(message["Subject"]))) == "Rain on 2024-03-05 – ü"
    assert (message["To"], message["Cc"], message["Bcc"]) == ("Ada <ada@example.org>, bob@example.org", "cy@example.org", None)
    assert (message["X-Team"], message.get_content_type()) == ("weather", "multipart/mixed")
    parts: Any = message.get_payload()
    text, attached = parts
    assert text.get_payload(decode=True).decode() == "<b>r1</b> ü"
    assert (attached.get_filename(), attached.get_content_type()) == ("rain.csv", "text/csv")
    assert attached.get_payload(decode=True) == b"mm\n1\n"


def test_a_refused_recipient_fails_the_task(server: MailServer) -> None:
    assert "refused the recipients refused@example.org" in str(_run(to="refused@example.org, ada@example.org").reason)
    assert server.mails[0][1] == ["ada@example.org"]


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"to": "ada"}, "'ada' is not an email address"),
        ({"to": []}, "has no recipient"),
        ({"files": ["/no/file"]}, "cannot attach the file '/no/file'"),
        ({"conn_id": "mial"}, "there is no connection 'mial'"),
    ],
)
def test_invalid_mails_are_errors(server: MailServer, kwargs: Any, words: str) -> None:
    assert words in str(_run(**kwargs).reason)
    assert server.mails == []


def test_a_missing_sender_is_an_error(server: MailServer, world: World) -> None:
    world.connections["smtp_default"] = _connection(server.port, from_email=None)
    assert "has no sender" in str(_run().reason)
    assert _run(from_email="{{ dag.dag_id }}@example.org").outcome is Outcome.SUCCESS
    assert server.mails[0][0] == "d@example.org"


def test_an_unreachable_server_is_an_error(world: World) -> None:
    world.connections["smtp_default"] = _connection(1)
    assert "cannot connect to the mail server 127.0.0.1:1" in str(_run().reason)


@pytest.mark.filterwarnings("ignore:Requiring AUTH")
def test_login_and_password_are_sent(world: World) -> None:
    def check(server: Any, session: Any, envelope: Any, mechanism: Any, data: Any) -> Any:
        from aiosmtpd.smtp import AuthResult

        return AuthResult(success=data.password == b"good", handled=False)  # the server answers a refusal itself

    with mail_server(authenticator=check, auth_required=True, auth_require_tls=False) as server:
        for password, outcome in (("bad", Outcome.FAILED), ("good", Outcome.SUCCESS)):
            world.connections["smtp_default"] = {**_connection(server.port), "login": "ada", "password": password}
            assert _run().outcome is outcome
        assert SmtpHook().test_connection() == (True, "the mail server responds")


@pytest.mark.spec("S114")
def test_settings_replace_a_missing_connection(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "AIRFLOW__SMTP__SMTP_HOST" in str(_run().reason)
    with mail_server() as server:
        for name, value in (("HOST", "127.0.0.1"), ("PORT", str(server.port)), ("MAIL_FROM", "us@example.org")):
            monkeypatch.setenv(f"AIRFLOW__SMTP__SMTP_{name}", value)
        monkeypatch.setenv("AIRFLOW__SMTP__SMTP_STARTTLS", "false")
        assert _run().outcome is Outcome.SUCCESS
        send_email("ada@example.org", "s", "x", dryrun=True)
        assert [mail[0] for mail in server.mails] == ["us@example.org"]


def test_addresses_are_split() -> None:
    assert addresses(None) == []
    assert addresses('a@x; "B, C" <b@x>') == ["a@x", '"B, C" <b@x>']
    with pytest.raises(AirflowException, match="not an email address"):
        addresses(["a@x", "b"])
