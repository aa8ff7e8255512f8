"""Operators that the provider package of Slack dropped, built on its present operators."""

from __future__ import annotations

from typing import Any

from airflow.providers.slack.transfers.sql_to_slack_webhook import (
    SqlToSlackWebhookOperator,
)

__all__ = ["SqlToSlackOperator"]


class SqlToSlackOperator(SqlToSlackWebhookOperator):  # type: ignore[misc]
    """Sends the result of a query to an incoming webhook.

    Args:
        slack_conn_id: the connection; the present operator calls it `slack_webhook_conn_id`.
    """

    def __init__(self, *, slack_conn_id: str | None = None, slack_webhook_conn_id: str | None = None, **kwargs: Any) -> None:
        super().__init__(slack_webhook_conn_id=slack_webhook_conn_id or slack_conn_id, **kwargs)
