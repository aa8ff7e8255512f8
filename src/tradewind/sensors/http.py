"""A sensor that sends HTTP requests. It needs the extra `http` (httpx)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any, NoReturn

from tradewind.operators.http_request import HttpRequestOperator
from tradewind.sdk.exceptions import AirflowException
from tradewind.sensors.base import BaseSensorOperator, PokeReturnValue


class HttpSensor(HttpRequestOperator, BaseSensorOperator):
    """Waits until a server gives the expected response.

    Args:
        request_params: query parameters of a GET, otherwise the body; a template.
        response_error_codes_allowlist: prefixes of error responses (`404`, or `503:Service Unavailable`) after which the sensor
            continues to wait. Default: `["404"]`.
        response_check: function of the response (and of context variables, by name); a true result, or a `PokeReturnValue` that is
            done, ends the wait. None: any status below 400 ends the wait.
        deferrable: send one request, then wait without a process. With a `response_check` the sensor keeps its process, because the
            function cannot be passed to a trigger.
        others: see `HttpRequestOperator`.
    """

    template_fields: Collection[str] = ("endpoint", "request_params", "headers", "http_conn_id", "request_kwargs")

    def __init__(
        self,
        *,
        endpoint: str,
        method: str = "GET",
        request_params: Any = None,
        response_error_codes_allowlist: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(endpoint=endpoint, method=method, **kwargs)
        self.request_params = request_params or {}
        allowed = ("404",) if response_error_codes_allowlist is None else response_error_codes_allowlist
        self.response_error_codes_allowlist = tuple(str(code) for code in allowed)

    def poke(self, context: Any) -> bool | PokeReturnValue:
        try:
            response = self.hook.run(
                self.endpoint, self.request_params, self.headers, self.extra_options, **self.request_kwargs
            )
        except AirflowException as error:
            allowed = self.response_error_codes_allowlist
            if allowed and str(error).startswith(allowed):
                self.log.info("The server responded with %s: not yet", error)
                return False
            raise
        return self.checked_by_author(response, context)  # type: ignore[no-any-return]

    def execute(self, context: Any) -> Any:
        if not self.deferrable or self.response_check is not None:
            return super().execute(context)
        if not self._poke_once(context):
            self._wait_in_trigger()
        return None

    def _wait_in_trigger(self) -> NoReturn:
        from tradewind.triggers.http import HttpSensorTrigger  # lazy import: needs asyncio

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
        """Continue when the trigger got the expected response."""
        self.log.info("%s gave the expected response", self.endpoint)
