"""The mail that a task with `email` sends when it fails or is retried. Its text and its settings are Airflow's:

    AIRFLOW__EMAIL__SUBJECT_TEMPLATE, …__HTML_CONTENT_TEMPLATE   files with your own templates
    AIRFLOW__EMAIL__FROM_EMAIL, …__EMAIL_CONN_ID                 sender, and connection of the mail server
    AIRFLOW__EMAIL__EMAIL_BACKEND                                another function that sends the mail: `package.module.function`

Templates see the task's context, and in addition `exception`, `exception_html`, `try_number` and `max_tries`.
"""

from __future__ import annotations

import html
import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from tradewind.execution.templates import environment_for
from tradewind.hooks.smtp import send_email
from tradewind.sdk.conf import conf
from tradewind.sdk.exceptions import AirflowConfigException, AirflowException

log = logging.getLogger("tradewind.task")

SUBJECT = "Airflow alert: {{ ti }}"
BODY = (
    "Try {{ try_number }} out of {{ max_tries + 1 }}<br>"
    "Exception:<br>{{ exception_html }}<br>"
    'Log: <a href="{{ ti.log_url }}">Link</a><br>'
    "Host: {{ ti.hostname }}<br>"
    'Mark success: <a href="{{ ti.mark_success_url }}">Link</a><br>'
)
USUAL_BACKENDS = ("airflow.utils.email.send_email_smtp", "airflow.utils.email.send_email")


def send_alert(to: tuple[str, ...], context: Mapping[str, Any], exception: str) -> None:
    """Render the mail and send it.

    Args:
        to: addresses.
        context: the context of the task instance; it has at least `ti`.
        exception: why the task failed.

    Raises:
        Exception: the mail could not be sent. The error is also logged.
    """
    try:
        subject, body = rendered(context, exception)
    except Exception:
        log.error("Failed to send email to: %s", ", ".join(to))
        raise
    send(to, subject, body)


def send(to: tuple[str, ...], subject: str, body: str) -> None:
    """Send a mail with the function that the settings name.

    Raises:
        Exception: the mail could not be sent. The error is also logged.
    """
    try:
        _backend()(list(to), subject, body, **_sender())
    except Exception:
        log.error("Failed to send email to: %s", ", ".join(to))
        raise
    log.info("Sent an email to: %s", ", ".join(to))


def rendered(context: Mapping[str, Any], exception: str) -> tuple[str, str]:
    """Return subject and body, both as HTML."""
    ti = context["ti"]
    names = {
        "exception": AirflowException(exception),
        "exception_html": html.escape(exception, quote=False).replace("\n", "<br>"),
        "try_number": ti.try_number,
        "max_tries": ti.max_tries,
    }
    environment = environment_for(context.get("dag"), force_sandboxed=True)
    subject, body = (
        environment.from_string(_template(key, usual)).render({**context, **names})
        for key, usual in (("subject_template", SUBJECT), ("html_content_template", BODY))
    )
    return " ".join(subject.split()), body


def _template(key: str, usual: str) -> str:
    """Return the template from the file that the setting names, or `usual`. An unreadable file does not prevent the mail."""
    path = conf.value_if_set("email", key) or ""
    if not path:
        return usual
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        log.warning("The template %s (setting email.%s) cannot be read: %s", path, key, error)
        return usual


def _backend() -> Callable[..., object]:
    path = conf.value_if_set("email", "email_backend") or ""
    if not path or path in USUAL_BACKENDS:
        return send_email
    module, _, name = path.rpartition(".")
    try:
        found: Callable[..., object] = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise AirflowConfigException(
            f"the setting email.email_backend is {path!r}, which cannot be imported: {error}"
        ) from error
    return found


def _sender() -> dict[str, str]:
    given = {
        "conn_id": (conf.value_if_set("email", "email_conn_id") or ""),
        "from_email": (conf.value_if_set("email", "from_email") or ""),
    }
    return {name: value for name, value in given.items() if value}
