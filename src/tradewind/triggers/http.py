"""Triggers that send HTTP requests, each in a thread. They need the extra `http` (httpx)."""

from __future__ import annotations

import asyncio
import base64
import importlib
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from tradewind.hooks.extras import import_library
from tradewind.hooks.http import HttpHook
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.trigger import BaseTrigger, TriggerEvent

_TRANSFER_HEADERS = frozenset({"content-encoding", "transfer-encoding", "content-length"})
"""Headers about the transfer of the body. They are left out, because the event contains the decoded body."""


class HttpTrigger(BaseTrigger):
    """Sends one request. Fires `{"status": "success", "response": …}` (see `decode_response`) or `{"status": "error", "message":
    …}`.

    Args:
        http_conn_id, method, auth_type: see `HttpHook`. `auth_type` must be a class or function of a module, or its import path.
        endpoint, headers, data, extra_options, request_kwargs: see `HttpHook.run`.
    """

    def __init__(
        self,
        http_conn_id: str = "http_default",
        auth_type: Callable[..., Any] | str | None = None,
        method: str = "POST",
        endpoint: str | None = None,
        headers: Mapping[str, str] | None = None,
        data: Any = None,
        extra_options: Mapping[str, Any] | None = None,
        request_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.http_conn_id = http_conn_id
        self.auth_type = import_path(auth_type) if callable(auth_type) else auth_type
        self.method = method
        self.endpoint = endpoint
        self.headers = dict(headers or {})
        self.data = data
        self.extra_options = dict(extra_options or {})
        self.request_kwargs = dict(request_kwargs or {})

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("http_conn_id", "auth_type", "method", "endpoint", "headers", "data", "extra_options", "request_kwargs")
        return "tradewind.triggers.http.HttpTrigger", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        try:
            response = await asyncio.to_thread(self.send)
        except Exception as error:
            yield TriggerEvent({"status": "error", "message": str(error) or type(error).__name__})
        else:
            yield TriggerEvent({"status": "success", "response": encode_response(response)})

    def send(self) -> Any:
        """Send one request with `HttpHook.run`."""
        hook = HttpHook(self.method, self.http_conn_id, None if self.auth_type is None else load_object(self.auth_type))
        return hook.run(self.endpoint, self.data, self.headers, self.extra_options, **self.request_kwargs)


class HttpSensorTrigger(HttpTrigger):
    """Sends requests until a response has a status below 400, then fires True.

    Args:
        poke_interval: seconds between two requests.
        response_error_codes_allowlist: prefixes of error responses after which it continues; any other error fails the wait.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        http_conn_id: str = "http_default",
        method: str = "GET",
        poke_interval: float = 5.0,
        response_error_codes_allowlist: tuple[str, ...] = ("404",),
        **request: Any,
    ) -> None:
        super().__init__(http_conn_id=http_conn_id, method=method, endpoint=endpoint, **request)
        self.poke_interval = poke_interval
        self.response_error_codes_allowlist = tuple(response_error_codes_allowlist)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        _, kwargs = super().serialize()
        kwargs["poke_interval"] = self.poke_interval
        kwargs["response_error_codes_allowlist"] = list(self.response_error_codes_allowlist)
        return "tradewind.triggers.http.HttpSensorTrigger", kwargs

    async def run(self) -> AsyncIterator[TriggerEvent]:
        while True:
            try:
                await asyncio.to_thread(self.send)
            except AirflowException as error:
                allowed = self.response_error_codes_allowlist
                if not (allowed and str(error).startswith(allowed)):
                    raise
                self.log.info("The server responded with %s: not yet", error)
            else:
                yield TriggerEvent(True)
                return
            await asyncio.sleep(self.poke_interval)


def encode_response(response: Any) -> dict[str, Any]:
    """A response as plain values for an event."""
    return {
        "status_code": response.status_code,
        "headers": [[name, value] for name, value in response.headers.multi_items() if name.lower() not in _TRANSFER_HEADERS],
        "content": base64.b64encode(response.content).decode(),
        "method": response.request.method,
        "url": str(response.request.url),
    }


def decode_response(found: Mapping[str, Any]) -> Any:
    """The `httpx.Response` from the result of `encode_response`."""
    httpx = import_library("httpx", "http")
    return httpx.Response(
        found["status_code"],
        headers=[(name, value) for name, value in found["headers"]],
        content=base64.b64decode(found["content"]),
        request=httpx.Request(found["method"], found["url"]),
    )


def import_path(auth_type: Any) -> str:
    """Import path of a class or function. Raises AirflowException if it has none, such as a lambda."""
    module, name = getattr(auth_type, "__module__", ""), getattr(auth_type, "__qualname__", "")
    if not module or not name.isidentifier():
        raise AirflowException(
            f"auth_type {auth_type!r} cannot be passed to a trigger; it must be a class or function of a module"
        )
    return f"{module}.{name}"


def load_object(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)
