"""An operator that sends an email."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tradewind.hooks.smtp import Addresses, send_email
from tradewind.sdk.operator import BaseOperator

__all__ = ["EmailOperator", "send_email"]


class EmailOperator(BaseOperator):
    """Sends an email.

    Args:
        to, cc, bcc: addresses, as one string separated by commas or semicolons, or as a list; templates.
        subject: a template.
        html_content: the body as HTML, or the name of a `.html` file; a template.
        files: paths of attachments; a template.
        mime_subtype: MIME subtype of the message (`mixed`, `alternative`, `related`).
        mime_charset: character set of the body.
        conn_id: the connection of the mail server; a template. None: `smtp_default`.
        custom_headers: further headers; a template.
        from_email: the sender; a template. None: the sender in the connection's extra.
    """

    template_fields: Collection[str] = (
        "to",
        "subject",
        "html_content",
        "files",
        "cc",
        "bcc",
        "conn_id",
        "custom_headers",
        "from_email",
    )
    template_fields_renderers: Mapping[str, str] = {"html_content": "html"}
    template_ext: Sequence[str] = (".html",)
    ui_color = "#e6faf9"

    def __init__(
        self,
        *,
        to: Addresses,
        subject: str,
        html_content: str,
        files: Sequence[Any] | None = None,
        cc: Addresses = None,
        bcc: Addresses = None,
        mime_subtype: str = "mixed",
        mime_charset: str = "utf-8",
        conn_id: str | None = None,
        custom_headers: Mapping[str, Any] | None = None,
        from_email: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.to = to
        self.subject = subject
        self.html_content = html_content
        self.files = files or []
        self.cc = cc
        self.bcc = bcc
        self.mime_subtype = mime_subtype
        self.mime_charset = mime_charset
        self.conn_id = conn_id
        self.custom_headers = custom_headers
        self.from_email = from_email

    def execute(self, context: Any) -> None:
        send_email(
            self.to,
            self.subject,
            self.html_content,
            self.files,
            self.cc,
            self.bcc,
            self.mime_subtype,
            self.mime_charset,
            self.conn_id,
            self.custom_headers,
            self.from_email,
        )
        self.log.info("Sent the email %r", self.subject)
