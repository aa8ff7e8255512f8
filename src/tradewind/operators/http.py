"""Operators that send an HTTP request. They need the extra `http` (httpx)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NoReturn

from tradewind.execution.call_arguments import arguments_for
from tradewind.model.errors import DefinitionError
from tradewind.operators.http_request import HttpRequestOperator
from tradewind.sdk.exceptions import AirflowException

MAX_PAGES = 10_000
"""Maximum number of requests of one task: a pagination that does not end is an error."""


class HttpOperator(HttpRequestOperator):
    """Sends a request to a server. The text of the response is pushed as XCom. A status of 400 or more fails the task.

    Args:
        data: query parameters of a GET, otherwise the body; a template. A mapping is sent as a form, a string unchanged.
        pagination_function: function from a response to the arguments of the next request (`endpoint`, `data`, `headers`,
            `extra_options`), or None after the last page. The texts of all responses are then pushed as a list.
        response_check: function of the response (and of context variables, by name); a false result fails the task.
        response_filter: function from the response to the XCom (with a pagination, from the list of all responses).
        log_response: write the text of the response to the log.
        auth_type: see `HttpHook`.
        deferrable: wait for the response without a process. `auth_type` must then be a class or function of a module.
        others: see `HttpRequestOperator`.
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
        pagination_function: Callable[..., Any] | None = None,
        response_filter: Callable[..., Any] | None = None,
        log_response: bool = False,
        auth_type: Callable[..., Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(endpoint=endpoint, method=method, **kwargs)
        self.data = data if data is not None else {}
        self.pagination_function = pagination_function
        self.response_filter = response_filter
        self.log_response = log_response
        self.auth_type = auth_type

    def execute(self, context: Any) -> Any:
        request: dict[str, Any] = {
            "endpoint": self.endpoint,
            "data": self.data,
            "headers": self.headers,
            "extra_options": self.extra_options,
        }
        if self.deferrable:
            self._defer_request(request, [])
        hook = self.hook
        responses = [self._checked(hook.run(**request, **self.request_kwargs), context)]
        while self.pagination_function is not None:
            next_page = self.pagination_function(responses[-1])
            if not next_page:
                break
            self._check_page_count(len(responses))
            request = self._next_request(request, next_page)
            responses.append(self._checked(hook.run(**request, **self.request_kwargs), context))
        return self._result(responses, context)

    def _defer_request(self, request: dict[str, Any], before: list[dict[str, Any]]) -> NoReturn:
        """Let a trigger send the next request. `before`: the encoded responses so far."""
        from tradewind.triggers.http import HttpTrigger  # lazy import: needs asyncio

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
        """Continue when the trigger got a response or an error."""
        from tradewind.triggers.http import decode_response  # lazy import: needs asyncio

        if event["status"] != "success":
            raise AirflowException(f"the request failed: {event['message']}")
        encoded = [*before, event["response"]]
        responses = [decode_response(one) for one in encoded]
        self._checked(responses[-1], context)
        next_page = self.pagination_function(responses[-1]) if self.pagination_function is not None else None
        if next_page:
            self._check_page_count(len(encoded))
            self._defer_request(self._next_request(request or {}, next_page), encoded)
        return self._result(responses, context)

    def _result(self, responses: list[Any], context: Any) -> Any:
        found: Any = responses if self.pagination_function is not None else responses[0]
        if self.response_filter is not None:
            return self.response_filter(found, **arguments_for(self.response_filter, [found], {}, context))
        return [one.text for one in found] if isinstance(found, list) else found.text

    def _check_page_count(self, count: int) -> None:
        if count >= MAX_PAGES:
            raise AirflowException(f"pagination_function requested more than {MAX_PAGES} pages")

    def _next_request(self, request: dict[str, Any], next_page: Any) -> dict[str, Any]:
        if not isinstance(next_page, Mapping) or not next_page.keys() <= request.keys():
            raise AirflowException(
                f"pagination_function returned {next_page!r}; it must return a dictionary with some of the keys "
                f"{', '.join(request)}"
            )
        merged = {**request, **next_page}
        for name in ("data", "headers", "extra_options"):
            if isinstance(request[name], Mapping) and isinstance(merged[name], Mapping):
                merged[name] = {**request[name], **merged[name]}
        return merged

    def _checked(self, response: Any, context: Any) -> Any:
        if self.log_response:
            self.log.info(response.text)
        if not self.checked_by_author(response, context):
            raise AirflowException("response_check returned a false value for the response")
        return response


class SimpleHttpOperator(HttpOperator):
    """Airflow 2's name for `HttpOperator`."""

    def __init__(self, **kwargs: Any) -> None:
        if kwargs.get("pagination_function") is not None:
            raise DefinitionError(f"{self._name_in_errors()} takes no argument pagination_function; use HttpOperator")
        super().__init__(**kwargs)
