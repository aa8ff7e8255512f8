"""Slack tokens that older DAG files give directly.

The tests use a made-up package of Slack that takes tokens only from connections, as the present one does.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.airflow import own_process

HOOKS = """
from airflow.hooks.base import BaseHook
sent = []


class SlackWebhookHook(BaseHook):
    def __init__(self, *, slack_webhook_conn_id, timeout=None, proxy=None, retry_handlers=None, **extra_client_args):
        super().__init__()
        self.slack_webhook_conn_id, self.timeout, self.proxy = slack_webhook_conn_id, timeout, proxy
        self.extra_client_args = extra_client_args

    def _get_conn_params(self):
        return {"url": "of the connection " + self.slack_webhook_conn_id}

    def send(self, *, text=None, **body):
        sent.append((self._get_conn_params()["url"], text, body))
"""
WEBHOOK_OPERATORS = """
from functools import cached_property
from airflow.models import BaseOperator
from airflow.providers.slack.hooks.slack_webhook import SlackWebhookHook


class SlackWebhookOperator(BaseOperator):
    template_fields = ("message",)

    proxy = timeout = retry_handlers = None

    def __init__(self, *, slack_webhook_conn_id, message="", username=None, **kwargs):
        super().__init__(**kwargs)
        self.slack_webhook_conn_id, self.message, self.username = slack_webhook_conn_id, message, username

    @cached_property
    def hook(self):
        return SlackWebhookHook(slack_webhook_conn_id=self.slack_webhook_conn_id)

    def execute(self, context):
        self.hook.send(text=self.message, username=self.username)
"""
API_OPERATORS = """
from functools import cached_property
from airflow.models import BaseOperator


class SlackHook:
    client = "client of the connection"


class SlackAPIOperator(BaseOperator):
    def __init__(self, *, slack_conn_id="slack_api_default", base_url=None, proxy=None, timeout=None, **kwargs):
        super().__init__(**kwargs)
        self.slack_conn_id, self.base_url, self.proxy, self.timeout = slack_conn_id, base_url, proxy, timeout

    @cached_property
    def hook(self):
        return SlackHook()


class SlackAPIPostOperator(SlackAPIOperator):
    def __init__(self, channel="#general", **kwargs):
        super().__init__(**kwargs)
        self.channel = channel
"""
FILES = {
    "airflow/providers/slack/hooks/slack_webhook.py": HOOKS,
    "airflow/providers/slack/operators/slack_webhook.py": WEBHOOK_OPERATORS,
    "airflow/providers/slack/operators/slack.py": API_OPERATORS,
    "slack_sdk.py": "class WebClient:\n    def __init__(self, **given):\n        self.given = given\n",
}


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    return own_process.install(tmp_path, FILES)


def run(packages: Path, code: str) -> None:
    head = "from tradewind.sdk.open_dags import collecting\nfile = collecting(1)\nfile.__enter__()\n"
    connection = '{"conn_type": "http", "host": "https://proxy.example/services"}'
    own_process.run(packages, code, head, {"AIRFLOW_CONN_SLACK": connection})


def test_the_webhook_operator_uses_the_token_that_it_is_given(packages: Path) -> None:
    run(
        packages,
        """
from airflow.contrib.operators.slack_webhook_operator import SlackWebhookOperator
from airflow.providers.slack.hooks.slack_webhook import sent
from airflow.providers.slack.operators import slack_webhook
assert SlackWebhookOperator is slack_webhook.SlackWebhookOperator
SlackWebhookOperator(task_id="a", http_conn_id="slack", webhook_token="/T/B/x", message="m", username="u").execute({})
SlackWebhookOperator(task_id="b", webhook_token="https://here/T", message="n", link_names=True).execute({})
SlackWebhookOperator(task_id="c", http_conn_id="slack", message="o").execute({})
SlackWebhookOperator(task_id="d", slack_webhook_conn_id="slack", message="p").execute({})
assert sent == [
    ("https://proxy.example/services/T/B/x", "m", {"username": "u"}),
    ("https://here/T", "n", {"username": None}),
    ("of the connection slack", "o", {"username": None}),
    ("of the connection slack", "p", {"username": None}),
], sent
assert "webhook_token" in SlackWebhookOperator(task_id="f", webhook_token="{{ var.value.x }}").template_fields
file.__exit__(None, None, None)
try: SlackWebhookOperator(task_id="g", slack_webhook_conn_id="slack", webhook_token="T")
except Exception as error: assert "webhook_token" in str(error)
else: raise SystemExit(1)
file.__enter__()
try: SlackWebhookOperator(task_id="e", message="q")
except TypeError as error: assert "slack_webhook_conn_id" in str(error)
else: raise SystemExit(1)
""",
    )


def test_the_webhook_hook_posts_the_message_that_it_is_given(packages: Path) -> None:
    run(
        packages,
        """
from airflow.contrib.hooks.slack_webhook_hook import SlackWebhookHook
from airflow.providers.slack.hooks.slack_webhook import sent
SlackWebhookHook(http_conn_id="slack", webhook_token="T/x", message="m", username="u", link_names=False).execute()
SlackWebhookHook(slack_webhook_conn_id="slack").send(text="new")
assert sent == [("https://proxy.example/services/T/x", "m", {"username": "u"}), ("of the connection slack", "new", {})], sent
""",
    )


def test_operators_of_the_api_use_the_token_that_they_are_given(packages: Path) -> None:
    run(
        packages,
        """
from airflow import DAG
from airflow.operators.slack_operator import SlackAPIOperator, SlackAPIPostOperator
with DAG("d", schedule=None, default_args={"slack_conn_id": "ours"}):
    task = SlackAPIPostOperator(task_id="a", token="xoxb", channel="#c", base_url="https://here")
    other = SlackAPIPostOperator(task_id="b")
assert isinstance(task, SlackAPIOperator) and (task.channel, task.slack_conn_id) == ("#c", "ours")
assert task.hook.client.given == {"token": "xoxb", "base_url": "https://here"}, task.hook.client.given
assert other.hook.client == "client of the connection"
""",
    )


def test_an_early_release_keeps_its_own_tokens(packages: Path) -> None:
    """Its hook has no `_get_conn_params`, which later releases have."""
    folder = packages / "airflow/providers/slack"
    (folder / "hooks/slack_webhook.py").write_text(
        "class SlackWebhookHook:\n    def __init__(self, http_conn_id=None, webhook_token=None):\n"
        "        self.given = webhook_token\n"
    )
    (folder / "operators/slack.py").write_text(
        "from airflow.models import BaseOperator\n\n\nclass SlackAPIOperator(BaseOperator):\n"
        "    def __init__(self, *, token=None, **kwargs):\n        super().__init__(**kwargs)\n        self.token = token\n"
    )
    run(
        packages,
        """
from airflow.providers.slack.hooks.slack_webhook import SlackWebhookHook
from airflow.providers.slack.operators.slack import SlackAPIOperator
assert SlackWebhookHook(webhook_token="t").given == "t"
assert SlackAPIOperator(task_id="a", token="t").token == "t"
""",
    )
