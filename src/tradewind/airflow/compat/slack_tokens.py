"""Slack tokens that DAG files for Airflow 1 and 2 give to operators and hooks directly: `token=`, `webhook_token=`.

The provider package of today takes tokens only from connections, and drops these arguments. `extend` is called when one of its
modules was imported. It changes the classes in place, so that there is one class of each name. Files for Airflow 3 see no
difference.
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
from tradewind.sdk.generation import CURRENT

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
    def init(self: Any, *args: Any, **more: Any) -> None:
        if open_dags.generation() >= CURRENT:
            present_init(self, *args, **more)
            return
        more.update(zip(("http_conn_id", "webhook_token", "message"), args, strict=False))
        connection = more.pop("http_conn_id", None)
        given = {name: more.pop(name) for name in ("webhook_token", "message", *_OF_MESSAGE) if name in more}
        more.setdefault("slack_webhook_conn_id", connection or "slack_default")
        present_init(self, **more)
        self.older_arguments = {name: value for name, value in given.items() if value not in (None, False)}

    def parameters(self: Any) -> dict[str, Any]:
        token = vars(self).get("older_arguments", {}).get("webhook_token")
        if not token:
            return dict(present_parameters(self))
        given = {"url": _address(self, token), "timeout": self.timeout, "proxy": self.proxy, **self.extra_client_args}
        return {name: value for name, value in given.items() if value is not None}

    def execute(self: Any) -> None:
        """Post the message that was given to the hook, as until Airflow 2.4."""
        given = vars(self).get("older_arguments", {})
        self.send(text=given.get("message", ""), **{name: given[name] for name in _OF_MESSAGE if name in given})

    cls.__init__, cls._get_conn_params, cls.execute = init, parameters, execute


def _address(hook: Any, token: str) -> str:
    """The address of the webhook: the token may be the whole address, or what follows the connection's host."""
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

    def init(self: Any, **more: Any) -> None:
        if open_dags.generation() >= CURRENT:
            present_init(self, **more)
            return
        token = more.pop("webhook_token", None)
        more.pop("link_names", None)
        if "http_conn_id" in more:
            message = "SlackWebhookOperator: http_conn_id was renamed to slack_webhook_conn_id in the provider package"
            open_dags.warn_author(message, DeprecationWarning)
            more.setdefault("slack_webhook_conn_id", more.pop("http_conn_id"))
        if token is not None:
            more["slack_webhook_conn_id"] = more.get("slack_webhook_conn_id") or "slack_default"
        present_init(self, **more)
        _keep(self, "webhook_token", token)

    def hook(self: Any) -> Any:
        token = vars(self).get("webhook_token")
        made = present_hook.func(self)
        if token:
            made.older_arguments = {"webhook_token": token}
        return made

    _replace(cls, init, hook)


def _api_operators(module: ModuleType) -> None:
    cls: Any = module.SlackAPIOperator
    present_init, present_hook = cls.__init__, cls.hook

    def init(self: Any, **more: Any) -> None:
        token = more.pop("token", None) if open_dags.generation() < CURRENT else None
        present_init(self, **more)
        _keep(self, "token", token)

    def hook(self: Any) -> Any:
        made = present_hook.func(self)
        token = vars(self).get("token")
        if token:
            given = {"base_url": self.base_url, "timeout": self.timeout, "proxy": self.proxy}
            client = importlib.import_module("slack_sdk").WebClient
            made.client = client(token=token, **{name: value for name, value in given.items() if value is not None})
        return made

    _replace(cls, init, hook)


def _keep(operator: Any, name: str, token: str | None) -> None:
    """Keep a token that an operator was given. It may be a template."""
    if token is None:
        return
    setattr(operator, name, token)
    operator.template_fields = (*operator.template_fields, name)
    open_dags.warn_author(f"{operator.operator_name}: {name} is visible in the DAG; put it into a connection")


def _replace(cls: Any, init: Callable[..., None], hook: Callable[[Any], Any]) -> None:
    """Give an operator class another `__init__` that also accepts what the present one does, and another hook."""
    replace_init(cls, init)
    cls.hook = functools.cached_property(hook)
    cls.hook.__set_name__(cls, "hook")


_EXTENSIONS: dict[str, tuple[str, str, Callable[[ModuleType], None]]] = {
    "airflow.providers.slack.hooks.slack_webhook": ("SlackWebhookHook", "webhook_token", _webhook_hook),
    "airflow.providers.slack.operators.slack_webhook": ("SlackWebhookOperator", "webhook_token", _webhook_operator),
    "airflow.providers.slack.operators.slack": ("SlackAPIOperator", "token", _api_operators),
}
"""Module → the class that tells early releases apart, the argument that they have, and what changes later releases."""
