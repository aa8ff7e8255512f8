"""Slack tokens that DAG files for Airflow 1 and 2 give to operators and hooks directly: `token=`, `webhook_token=`.

The provider package of today takes tokens only from connections, and drops these arguments. `extend` is called when one of its
modules was imported. It changes the classes in place, so that there is one class of each name.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from tradewind.sdk import open_dags
from tradewind.sdk.default_args import replace_init
from tradewind.sdk.exceptions import AirflowNotFoundException

_SERVER = "https://hooks.slack.com/services"
_OF_MESSAGE = ("attachments", "blocks", "channel", "username", "icon_emoji", "icon_url", "link_names")
"""Arguments of the older webhook hook that describe its message."""


def extend(module: ModuleType) -> None:
    """Let the classes of a module of the provider package accept the older arguments. An early release accepts them itself."""
    name, argument, change = _EXTENSIONS[module.__name__]
    cls = vars(module)[name]
    known = getattr(cls, "_init_parameters", None)
    if argument not in (known.names if known is not None else inspect.signature(cls.__init__).parameters):
        change(module)


def _webhook_hook(module: ModuleType) -> None:
    cls: Any = module.SlackWebhookHook
    present_init, present_parameters = cls.__init__, cls._get_conn_params

    @functools.wraps(present_init)
    def init(
        self: Any,
        http_conn_id: str | None = None,
        webhook_token: str | None = None,
        message: str = "",
        *,
        slack_webhook_conn_id: str | None = None,
        **more: Any,
    ) -> None:
        of_message = {name: more.pop(name) for name in _OF_MESSAGE if name in more}
        present_init(self, slack_webhook_conn_id=slack_webhook_conn_id or http_conn_id or "slack_default", **more)
        self.webhook_token = webhook_token
        self.message = message
        self.of_message = {name: value for name, value in of_message.items() if value not in (None, False)}

    def parameters(self: Any) -> dict[str, Any]:
        if not self.webhook_token:
            return dict(present_parameters(self))
        given = {"url": _address(self), "timeout": self.timeout, "proxy": self.proxy, **self.extra_client_args}
        return {name: value for name, value in given.items() if value is not None}

    def execute(self: Any) -> None:
        """Post the message that was given to the hook, as until Airflow 2.4."""
        self.send(text=self.message, **self.of_message)

    cls.__init__, cls._get_conn_params, cls.execute = init, parameters, execute


def _address(hook: Any) -> str:
    """The address of the webhook: the token may be the whole address, or what follows the connection's host."""
    token = str(hook.webhook_token)
    if "://" in token:
        return token
    try:
        host = hook.get_connection(hook.slack_webhook_conn_id).host or _SERVER
    except AirflowNotFoundException:
        host = _SERVER
    server = host if "://" in host else f"https://{host}"
    return f"{server.rstrip('/')}/{token.lstrip('/')}"


def _webhook_operator(module: ModuleType) -> None:
    cls: Any = module.SlackWebhookOperator
    present_init, present_hook = cls.__init__, cls.hook

    def init(
        self: Any,
        *,
        slack_webhook_conn_id: str | None = None,
        http_conn_id: str | None = None,
        webhook_token: str | None = None,
        link_names: bool = False,
        **more: Any,
    ) -> None:
        connection = slack_webhook_conn_id or http_conn_id
        if connection is None and webhook_token is None:
            raise TypeError("SlackWebhookOperator needs the argument slack_webhook_conn_id")
        if http_conn_id is not None:
            _warn("SlackWebhookOperator: http_conn_id was renamed to slack_webhook_conn_id in the provider package")
        present_init(self, slack_webhook_conn_id=connection or "slack_default", **more)
        self.webhook_token, self.link_names = webhook_token, link_names
        if webhook_token is not None:
            _warn("SlackWebhookOperator: webhook_token is visible in the DAG; put it into a connection")

    def hook(self: Any) -> Any:
        if not self.webhook_token:
            return present_hook.func(self)
        return module.SlackWebhookHook(
            slack_webhook_conn_id=self.slack_webhook_conn_id,
            webhook_token=self.webhook_token,
            proxy=self.proxy,
            timeout=self.timeout,
            retry_handlers=self.retry_handlers,
        )

    _replace(cls, init, hook)
    cls.template_fields = (*cls.template_fields, "webhook_token")


def _api_operators(module: ModuleType) -> None:
    cls: Any = module.SlackAPIOperator
    present_init, present_hook = cls.__init__, cls.hook

    def init(self: Any, *, token: str | None = None, **more: Any) -> None:
        present_init(self, **more)
        self.token = token
        if token is not None:
            _warn(f"{type(self).__name__}: token is visible in the DAG; put it into a connection")

    def hook(self: Any) -> Any:
        made = present_hook.func(self)
        if self.token:
            given = {"base_url": self.base_url, "timeout": self.timeout, "proxy": self.proxy}
            client = importlib.import_module("slack_sdk").WebClient
            made.client = client(token=self.token, **{name: value for name, value in given.items() if value is not None})
        return made

    _replace(cls, init, hook)


def _replace(cls: Any, init: Callable[..., None], hook: Callable[[Any], Any]) -> None:
    """Give an operator class another `__init__` that also accepts what the present one does, and another hook."""
    replace_init(cls, init)
    cls.hook = property(hook)


def _warn(message: str) -> None:
    open_dags.warn_author(message, DeprecationWarning)


_EXTENSIONS: dict[str, tuple[str, str, Callable[[ModuleType], None]]] = {
    "airflow.providers.slack.hooks.slack_webhook": ("SlackWebhookHook", "webhook_token", _webhook_hook),
    "airflow.providers.slack.operators.slack_webhook": ("SlackWebhookOperator", "webhook_token", _webhook_operator),
    "airflow.providers.slack.operators.slack": ("SlackAPIOperator", "token", _api_operators),
}
"""Module → the class that tells early releases apart, the argument that they have, and what changes later releases."""
