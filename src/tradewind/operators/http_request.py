"""The arguments of an HTTP request, which `HttpOperator` and `HttpSensor` share. Needs the extra `http` (httpx)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tradewind.execution.call_arguments import arguments_for
from tradewind.hooks.http import HttpHook
from tradewind.sdk.conf import deferrable_or_default
from tradewind.sdk.operator import BaseOperator


class HttpRequestOperator(BaseOperator):
    """Base class of operators and sensors that send HTTP requests.

    Args:
        endpoint: path relative to the connection's host, or a complete URL; a template.
        method: `GET`, `POST` …
        headers: request headers; a template.
        extra_options: `timeout` (seconds), `verify`, `cert`, `allow_redirects`, `check_response` …
        request_kwargs: further arguments for httpx, such as `json`; a template.
        response_check: function of the response (and of context variables, by name).
        http_conn_id: the connection of the server; a template.
        tcp_keep_alive, tcp_keep_alive_idle, tcp_keep_alive_count, tcp_keep_alive_interval: see `HttpHook`.
        deferrable: wait without a process. Default: the setting operators.default_deferrable.
    """

    auth_type: Callable[..., Any] | None = None

    def __init__(
        self,
        *,
        endpoint: str | None,
        method: str,
        headers: Mapping[str, str] | None = None,
        extra_options: Mapping[str, Any] | None = None,
        request_kwargs: Mapping[str, Any] | None = None,
        response_check: Callable[..., Any] | None = None,
        http_conn_id: str = "http_default",
        tcp_keep_alive: bool = True,
        tcp_keep_alive_idle: int = 120,
        tcp_keep_alive_count: int = 20,
        tcp_keep_alive_interval: int = 30,
        deferrable: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.endpoint = endpoint
        self.method = method
        self.headers = headers or {}
        self.extra_options = extra_options or {}
        self.request_kwargs = request_kwargs or {}
        self.response_check = response_check
        self.http_conn_id = http_conn_id
        self.keep_alive = (tcp_keep_alive, tcp_keep_alive_idle, tcp_keep_alive_count, tcp_keep_alive_interval)
        self.deferrable = deferrable_or_default(deferrable)

    @property
    def hook(self) -> HttpHook:
        return HttpHook(self.method, self.http_conn_id, self.auth_type, *self.keep_alive)

    def checked_by_author(self, response: Any, context: Any) -> Any:
        """The result of `response_check` for this response; True without a `response_check`."""
        check = self.response_check
        return True if check is None else check(response, **arguments_for(check, [response], {}, context))
