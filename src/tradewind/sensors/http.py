"""A sensor that asks a server over HTTP. It needs the extra `http` (httpx)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, NoReturn

from tradewind.execution.call_arguments import arguments_for
from tradewind.hooks.http import HttpHook
from tradewind.sdk.conf import deferrable_or_default
from tradewind.sdk.exceptions import AirflowException
from tradewind.sensors.base import BaseSensorOperator, PokeReturnValue


class HttpSensor(BaseSensorOperator):
    """Waits until a server answers as it should.

    Args:
        endpoint: path below the connection's host, or a whole URL; a template.
        method: `GET`, `POST` …
        request_params: query of a GET, otherwise the body; a template.
        request_kwargs: further arguments for httpx, such as `json`; a template.
        headers: a template.
        response_error_codes_allowlist: beginnings of a failed answer (`404`, or `503:Service Unavailable`) that mean "not yet".
        response_check: function of the response (and of context variables, by name): is the wait over? It may return a
            `PokeReturnValue`. None: any answer below 400 ends it.
        extra_options: `timeout` (seconds), `verify`, `check_response` …
        http_conn_id: the server's connection; a template.
        tcp_keep_alive…: see `HttpHook`.
        deferrable: look once, then wait without a process. With a `response_check`, a function that cannot be handed over,
            the wait keeps its process. Unless given: the setting operators.default_deferrable.
    """

    template_fields: Collection[str] = ("endpoint", "request_params", "headers", "http_conn_id", "request_kwargs")

    def __init__(
        self,
        *,
        endpoint: str,
        http_conn_id: str = "http_default",
        method: str = "GET",
        request_params: Any = None,
        request_kwargs: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        response_error_codes_allowlist: Sequence[str] | None = None,
        response_check: Callable[..., bool | PokeReturnValue] | None = None,
        extra_options: Mapping[str, Any] | None = None,
        tcp_keep_alive: bool = True,
        tcp_keep_alive_idle: int = 120,
        tcp_keep_alive_count: int = 20,
        tcp_keep_alive_interval: int = 30,
        deferrable: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.deferrable = deferrable_or_default(deferrable)
        self.endpoint = endpoint
        self.http_conn_id = http_conn_id
        self.method = method
        self.request_params = request_params or {}
        self.request_kwargs = request_kwargs or {}
        self.headers = headers or {}
        allowed = ("404",) if response_error_codes_allowlist is None else response_error_codes_allowlist
        self.response_error_codes_allowlist = tuple(str(code) for code in allowed)
        self.response_check = response_check
        self.extra_options = extra_options or {}
        self.keep_alive = (tcp_keep_alive, tcp_keep_alive_idle, tcp_keep_alive_count, tcp_keep_alive_interval)

    def poke(self, context: Any) -> bool | PokeReturnValue:
        hook = HttpHook(self.method, self.http_conn_id, None, *self.keep_alive)
        try:
            response = hook.run(self.endpoint, self.request_params, self.headers, self.extra_options, **self.request_kwargs)
        except AirflowException as error:
            allowed = self.response_error_codes_allowlist
            if allowed and str(error).startswith(allowed):
                self.log.info("The server answered %s: not yet", error)
                return False
            raise
        check = self.response_check
        return True if check is None else check(response, **arguments_for(check, [response], {}, context))

    def execute(self, context: Any) -> Any:
        if not self.deferrable or self.response_check is not None:
            return super().execute(context)
        if not self._look(context):
            self._wait_in_trigger()
        return None

    def _wait_in_trigger(self) -> NoReturn:
        from tradewind.triggers.http import HttpSensorTrigger  # lazy door: brings asyncio

        trigger = HttpSensorTrigger(
            endpoint=self.endpoint,
            http_conn_id=self.http_conn_id,
            method=self.method,
            poke_interval=self.poke_interval,
            response_error_codes_allowlist=self.response_error_codes_allowlist,
            headers=self.headers,
            data=self.request_params,
            extra_options=self.extra_options,
            request_kwargs=self.request_kwargs,
        )
        self.defer(trigger=trigger, method_name="execute_complete", timeout=timedelta(seconds=self.timeout))

    def execute_complete(self, context: Any, event: Any = None) -> None:
        """The server answered."""
        self.log.info("%s answered as it should.", self.endpoint)
