"""Tasks that send a request over HTTP. They need the extra `http` (httpx)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn

from tradewind.execution.call_arguments import arguments_for
from tradewind.hooks.http import HttpHook
from tradewind.model.errors import DefinitionError
from tradewind.sdk.conf import deferrable_or_default
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.operator import BaseOperator

MAX_PAGES = 10_000
"""Requests of one task: a pagination that never ends is an error."""


class HttpOperator(BaseOperator):
    """Sends a request to a server; the text of the answer is pushed as XCom. A status of 400 and more fails the task.

    Args:
        endpoint: path below the connection's host, or a whole URL; a template.
        method: `GET`, `POST` …
        data: query of a GET, otherwise the body; a template. A mapping is sent as a form, a text as it is.
        headers: a template.
        pagination_function: from a response to the arguments of the next request (`endpoint`, `data`, `headers`,
            `extra_options`), or None after the last one. The texts of all are then pushed as a list.
        response_check: function of the response (and of context variables, by name); false fails the task.
        response_filter: makes the XCom from the response (from all of them, with a pagination).
        extra_options: `timeout` (seconds), `verify`, `cert`, `allow_redirects`, `check_response` …
        request_kwargs: further arguments for httpx, such as `json`; a template.
        http_conn_id: the server's connection; a template.
        log_response: write the text into the log.
        auth_type, tcp_keep_alive…: see `HttpHook`.
        deferrable: wait for the answer without a process; `auth_type` must then be a class or function of a module.
            Unless given: the setting operators.default_deferrable.
    """

    template_fields: Collection[str] = ("endpoint", "data", "headers", "http_conn_id", "request_kwargs")
    template_fields_renderers: Mapping[str, str] = {"headers": "json", "data": "py", "request_kwargs": "py"}
    template_ext: Sequence[str] = (".json",)
    ui_color = "#f4a460"

    def __init__(
        self,
        *,
        endpoint: str | None = None,
        method: str = "POST",
        data: Any = None,
        headers: Mapping[str, str] | None = None,
        pagination_function: Callable[..., Any] | None = None,
        response_check: Callable[..., bool] | None = None,
        response_filter: Callable[..., Any] | None = None,
        extra_options: Mapping[str, Any] | None = None,
        request_kwargs: Mapping[str, Any] | None = None,
        http_conn_id: str = "http_default",
        log_response: bool = False,
        auth_type: Callable[..., Any] | None = None,
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
        self.method = method
        self.data = data if data is not None else {}
        self.headers = headers or {}
        self.pagination_function = pagination_function
        self.response_check = response_check
        self.response_filter = response_filter
        self.extra_options = extra_options or {}
        self.request_kwargs = request_kwargs or {}
        self.http_conn_id = http_conn_id
        self.log_response = log_response
        self.auth_type = auth_type
        self.keep_alive = {
            "tcp_keep_alive": tcp_keep_alive,
            "tcp_keep_alive_idle": tcp_keep_alive_idle,
            "tcp_keep_alive_count": tcp_keep_alive_count,
            "tcp_keep_alive_interval": tcp_keep_alive_interval,
        }

    @property
    def hook(self) -> HttpHook:
        return HttpHook(self.method, self.http_conn_id, self.auth_type, **self.keep_alive)  # type: ignore[arg-type]

    def execute(self, context: Any) -> Any:
        request: dict[str, Any] = {
            "endpoint": self.endpoint,
            "data": self.data,
            "headers": self.headers,
            "extra_options": self.extra_options,
        }
        if self.deferrable:
            self._ask_in_trigger(request, [])
        hook = self.hook
        responses = [self._checked(hook.run(**request, **self.request_kwargs), context)]
        while self.pagination_function is not None:
            following = self.pagination_function(responses[-1])
            if not following:
                break
            if len(responses) >= MAX_PAGES:
                raise AirflowException(f"pagination_function asked for more than {MAX_PAGES} pages")
            request = self._next(request, following)
            responses.append(self._checked(hook.run(**request, **self.request_kwargs), context))
        return self._result(responses, context)

    def _ask_in_trigger(self, request: dict[str, Any], before: list[dict[str, Any]]) -> NoReturn:
        """The next request is made by a trigger. `before`: the packed answers so far."""
        from tradewind.triggers.http import HttpTrigger  # lazy door: brings asyncio

        trigger = HttpTrigger(
            http_conn_id=self.http_conn_id,
            auth_type=self.auth_type,
            method=self.method,
            request_kwargs=self.request_kwargs,
            **request,
        )
        kwargs = {"request": {**request, "headers": dict(request["headers"])}, "before": before}
        self.defer(trigger=trigger, method_name="execute_complete", kwargs=kwargs)

    def execute_complete(
        self,
        context: Any,
        event: Mapping[str, Any],
        request: dict[str, Any] | None = None,
        before: Sequence[Mapping[str, Any]] = (),
    ) -> Any:
        """An answer came, or none."""
        from tradewind.triggers.http import response_of  # lazy door: brings asyncio

        if event["status"] != "success":
            raise AirflowException(f"the request failed: {event['message']}")
        packed = [*before, event["response"]]
        responses = [response_of(one) for one in packed]
        self._checked(responses[-1], context)
        following = self.pagination_function(responses[-1]) if self.pagination_function is not None else None
        if following:
            if len(packed) >= MAX_PAGES:
                raise AirflowException(f"pagination_function asked for more than {MAX_PAGES} pages")
            self._ask_in_trigger(self._next(request or {}, following), packed)
        return self._result(responses, context)

    def _result(self, responses: list[Any], context: Any) -> Any:
        found: Any = responses if self.pagination_function is not None else responses[0]
        if self.response_filter is not None:
            return self.response_filter(found, **arguments_for(self.response_filter, [found], {}, context))
        return [one.text for one in found] if isinstance(found, list) else found.text

    def _next(self, request: dict[str, Any], following: Any) -> dict[str, Any]:
        if not isinstance(following, Mapping) or not following.keys() <= request.keys():
            raise AirflowException(
                f"pagination_function returned {following!r}; it must be a dictionary with some of {', '.join(request)}"
            )
        merged = {**request, **following}
        for name in ("data", "headers", "extra_options"):
            if isinstance(request[name], Mapping) and isinstance(merged[name], Mapping):
                merged[name] = {**request[name], **merged[name]}
        return merged

    def _checked(self, response: Any, context: Any) -> Any:
        if self.log_response:
            self.log.info(response.text)
        check = self.response_check
        if check is not None and not check(response, **arguments_for(check, [response], {}, context)):
            raise AirflowException("response_check says that the answer is not as it should be")
        return response


class SimpleHttpOperator(HttpOperator):
    """Airflow 2's name."""

    def __init__(self, **kwargs: Any) -> None:
        if kwargs.get("pagination_function") is not None:
            raise DefinitionError(f"{self._name_in_errors()}: pagination_function belongs to HttpOperator")
        super().__init__(**kwargs)
