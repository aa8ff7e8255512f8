"""Sending email over SMTP."""

from __future__ import annotations

import mimetypes
import os
import smtplib
import ssl
from collections.abc import Iterable, Mapping
from email.message import Message
from email.mime.application import MIMEApplication
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.utils import formataddr, formatdate, getaddresses, make_msgid
from pathlib import Path
from typing import Any, NamedTuple

from tradewind.sdk.conf import conf
from tradewind.sdk.exceptions import AirflowException, AirflowNotFoundException
from tradewind.sdk.variables import BaseHook, Connection

TIMEOUT = 30.0
"""Seconds to wait for the mail server."""

TRIES = 5
"""Default number of attempts to connect to the mail server."""

Addresses = str | Iterable[str] | None


class Server(NamedTuple):
    """Address and options of a mail server."""

    host: str
    port: int
    login: str | None
    password: str | None
    sender: str | None
    ssl: bool
    starttls: bool
    timeout: float
    tries: int


class SmtpHook(BaseHook):
    """Sends messages to a mail server.

    Args:
        smtp_conn_id: a connection with host, port, login and password. Keys of its extra: `from_email`, `disable_ssl` (default: TLS
            from the first byte, port 465), `disable_tls` (default: STARTTLS), `timeout` (seconds), `retry_limit`. If there is no
            such connection, the settings of Airflow's section `smtp` are used (`AIRFLOW__SMTP__SMTP_HOST` …).
    """

    conn_name_attr = "smtp_conn_id"
    default_conn_name = "smtp_default"
    conn_type = "smtp"
    hook_name = "SMTP"

    def __init__(self, smtp_conn_id: str | None = default_conn_name) -> None:
        super().__init__()
        self.smtp_conn_id = smtp_conn_id or self.default_conn_name
        self._server: Server | None = None

    @property
    def server(self) -> Server:
        """The mail server.

        Raises:
            AirflowNotFoundException: neither the connection nor the setting smtp_host exists.
        """
        if self._server is None:
            try:
                self._server = _server_from_connection(self.get_connection(self.smtp_conn_id))
            except AirflowNotFoundException as error:
                if self.smtp_conn_id != self.default_conn_name or not conf.is_set("smtp", "smtp_host"):
                    raise AirflowNotFoundException(f"{error} Or set AIRFLOW__SMTP__SMTP_HOST.") from None
                self._server = _server_from_settings()
        return self._server

    def get_conn(self) -> smtplib.SMTP:
        """A session with the server, logged in. The caller has to close it with `quit()`."""
        server = self.server
        context = ssl.create_default_context()
        for left in reversed(range(max(1, server.tries))):
            try:
                session = self._connect(server, context)
                break
            except (OSError, smtplib.SMTPServerDisconnected) as error:
                if left and not isinstance(error, ssl.SSLError):
                    self.log.warning("Cannot connect to the mail server %s:%s: %s", server.host, server.port, error)
                    continue
                raise AirflowException(f"cannot connect to the mail server {server.host}:{server.port}: {error}") from error
        try:
            if server.starttls and not server.ssl:
                session.starttls(context=context)
            if server.login:
                session.login(server.login, server.password or "")
        except BaseException:
            session.close()
            raise
        return session

    def _connect(self, server: Server, context: ssl.SSLContext) -> smtplib.SMTP:
        if server.ssl:
            return smtplib.SMTP_SSL(server.host, server.port, timeout=server.timeout, context=context)
        return smtplib.SMTP(server.host, server.port, timeout=server.timeout)

    def send(self, message: Message, recipients: list[str]) -> None:
        """Send one message."""
        session = self.get_conn()
        try:
            refused = session.send_message(message, str(message["From"]), recipients)
        finally:
            try:
                session.quit()
            except (OSError, smtplib.SMTPException):
                pass  # the server has accepted or refused the message already
        if refused:
            raise AirflowException(f"the mail server refused the recipients {', '.join(sorted(refused))}")

    def test_connection(self) -> tuple[bool, str]:
        """Test the connection and the login: (success, message)."""
        try:
            self.get_conn().quit()
        except Exception as error:
            return False, str(error)
        return True, "the mail server responds"


def _server_from_connection(connection: Connection) -> Server:
    extra = connection.extra_dejson
    with_ssl = not _is_true(extra.get("disable_ssl", False))
    return Server(
        connection.host or "localhost",
        connection.port or (465 if with_ssl else 25),
        connection.login,
        connection.password,
        extra.get("from_email"),
        with_ssl,
        not _is_true(extra.get("disable_tls", False)),
        float(extra.get("timeout", TIMEOUT)),
        int(extra.get("retry_limit", TRIES)),
    )


def _server_from_settings() -> Server:
    with_ssl = conf.getboolean("smtp", "smtp_ssl", fallback=False)
    return Server(
        conf.get("smtp", "smtp_host"),
        conf.getint("smtp", "smtp_port", fallback=25),
        conf.get("smtp", "smtp_user", fallback=None),
        conf.get("smtp", "smtp_password", fallback=None),
        conf.value_if_set("smtp", "smtp_mail_from"),
        with_ssl,
        conf.getboolean("smtp", "smtp_starttls", fallback=True),
        conf.getfloat("smtp", "smtp_timeout", fallback=TIMEOUT),
        conf.getint("smtp", "smtp_retry_limit", fallback=TRIES),
    )


def _is_true(value: Any) -> bool:
    return value.strip().lower() in ("true", "1", "yes", "t") if isinstance(value, str) else bool(value)


def send_email(
    to: Addresses,
    subject: str,
    html_content: str,
    files: Iterable[str | os.PathLike[str]] | None = None,
    cc: Addresses = None,
    bcc: Addresses = None,
    mime_subtype: str = "mixed",
    mime_charset: str = "utf-8",
    conn_id: str | None = None,
    custom_headers: Mapping[str, Any] | None = None,
    from_email: str | None = None,
    dryrun: bool = False,
) -> None:
    """Send an email.

    Args:
        to, cc, bcc: addresses, as one string separated by commas or semicolons, or as a list.
        html_content: the body as HTML.
        files: paths of attachments.
        mime_subtype: MIME subtype of the message (`mixed`, `alternative`, `related`).
        conn_id: the connection of the mail server. None: `smtp_default`.
        custom_headers: further headers.
        from_email: the sender. None: the sender in the connection's extra.
        dryrun: create the message, but do not send it.

    Raises:
        AirflowException: no recipient, no sender, a missing file, or the server refuses the message.
    """
    hook = SmtpHook(conn_id)
    sender = from_email or hook.server.sender
    if not sender:
        raise AirflowException(
            f"the email {subject!r} has no sender; give from_email, or set it in the extra of the connection"
        )
    lists = {"To": addresses(to), "Cc": addresses(cc), "Bcc": addresses(bcc)}
    recipients = [address for listed in lists.values() for address in listed]
    if not recipients:
        raise AirflowException(f"the email {subject!r} has no recipient; give to, cc or bcc")
    message = MIMEMultipart(mime_subtype)
    message["Subject"], message["From"] = subject, sender
    for name in ("To", "Cc"):  # a Bcc header would show these recipients to the others
        if lists[name]:
            message[name] = ", ".join(lists[name])
    message["Date"], message["Message-ID"] = formatdate(localtime=True), make_msgid(domain="tradewind.invalid")
    for name, value in (custom_headers or {}).items():
        message[name] = str(value)
    message.attach(MIMEText(html_content, "html", mime_charset))
    for file in files or ():
        message.attach(_attachment(Path(file)))
    if not dryrun:
        hook.send(message, recipients)


def _attachment(path: Path) -> MIMEApplication:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise AirflowException(f"cannot attach the file {str(path)!r}: {error}") from error
    part = MIMEApplication(data, Name=path.name)
    part.replace_header("Content-Type", mimetypes.guess_type(path.name)[0] or "application/octet-stream")
    part.set_param("name", path.name)
    part.add_header("Content-Disposition", "attachment", filename=path.name)
    return part


def addresses(given: Addresses) -> list[str]:
    """The single addresses of a string or list.

    Raises:
        AirflowException: a part is not an email address.
    """
    texts = [given] if isinstance(given, str) else list(given or ())
    found = []
    for text in texts:
        for name, address in getaddresses([str(text).replace(";", ",")]):
            if "@" not in address:
                raise AirflowException(f"{address or text!r} is not an email address")
            found.append(formataddr((name, address)))
    return found
