"""Requests over HTTP, by a connection. Needs the extra `http` (httpx)."""

from __future__ import annotations

import base64
import socket
from collections.abc import Callable, Mapping
from typing import Any

from tradewind.hooks.extras import library
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.variables import BaseHook, Connection

TIMEOUT = 600.0
"""Seconds for one request, unless its options say otherwise: no wait is without an end."""

OPTIONS = ("timeout", "verify", "cert", "allow_redirects", "max_redirects", "check_response", "trust_env", "proxies")
"""Keys of `extra_options`, and of the connection's extra; others of the extra are headers."""


class HttpHook(BaseHook):
    """Sends requests to the server of a connection.

    Args:
        method: `GET`, `POST` …
        http_conn_id: host (with or without `https://`), port, login, password; the schema is `http` or `https`; the extra has
            headers, and options as in `OPTIONS`.
        auth_type: makes httpx's `auth` from login and password; None: basic authentication, where there is a login.
        tcp_keep_alive, tcp_keep_alive_idle, tcp_keep_alive_count, tcp_keep_alive_interval: of the socket; seconds, a number of
            probes, and seconds.
    """

    conn_name_attr = "http_conn_id"
    default_conn_name = "http_default"
    conn_type = "http"
    hook_name = "HTTP"

    def __init__(
        self,
        method: str = "POST",
        http_conn_id: str = default_conn_name,
        auth_type: Callable[..., Any] | None = None,
        tcp_keep_alive: bool = True,
        tcp_keep_alive_idle: int = 120,
        tcp_keep_alive_count: int = 20,
        tcp_keep_alive_interval: int = 30,
    ) -> None:
        super().__init__()
        self.method = method.upper()
        self.http_conn_id = http_conn_id
        self.auth_type = auth_type
        self.keep_alive = (tcp_keep_alive_idle, tcp_keep_alive_count, tcp_keep_alive_interval) if tcp_keep_alive else None
        self._connection: Connection | None = None

    @property
    def connection(self) -> Connection:
        if self._connection is None:
            self._connection = self.get_connection(self.http_conn_id)
        return self._connection

    @property
    def base_url(self) -> str:
        """What endpoints are appended to."""
        connection = self.connection
        host = connection.host or ""
        url = host if "://" in host else f"{connection.schema or 'http'}://{host}"
        return f"{url}:{connection.port}" if connection.port else url

    def url_from_endpoint(self, endpoint: str | None) -> str:
        if endpoint and "://" in endpoint:
            return endpoint
        base = self.base_url
        if base.endswith("://"):
            raise AirflowException(f"connection {self.http_conn_id!r} has no host")
        return base if not endpoint else f"{base.rstrip('/')}/{endpoint.lstrip('/')}"

    def get_conn(self, headers: Mapping[str, str] | None = None, extra_options: Mapping[str, Any] | None = None) -> Any:
        """An `httpx.Client`; close it."""
        httpx = library("httpx", "http")
        extra = self.connection.extra_dejson
        options = {name: extra.pop(name) for name in OPTIONS if name in extra} | dict(extra_options or {})
        for name in options:
            if name not in OPTIONS:
                raise AirflowException(f"extra_options has {name!r}; known are {', '.join(OPTIONS)}")
        transport = None
        proxies = options.get("proxies")
        if self.keep_alive is not None and not proxies:
            transport = httpx.HTTPTransport(
                verify=options.get("verify", True),
                cert=options.get("cert"),
                trust_env=options.get("trust_env", True),
                socket_options=_keep_alive(*self.keep_alive),
            )
        return httpx.Client(
            headers={**{name: str(value) for name, value in extra.items()}, **(headers or {})},
            auth=self._auth(),
            timeout=options.get("timeout") or TIMEOUT,
            follow_redirects=options.get("allow_redirects", True),
            max_redirects=options.get("max_redirects", 30),
            verify=options.get("verify", True),
            cert=options.get("cert"),
            trust_env=options.get("trust_env", True),
            mounts={f"{name}://": httpx.HTTPTransport(proxy=url) for name, url in (proxies or {}).items()} or None,
            transport=transport,
        )

    def _auth(self) -> Any:
        connection = self.connection
        if self.auth_type is not None:
            return self.auth_type(connection.login, connection.password) if connection.login else self.auth_type()
        if not connection.login:
            return None
        word = base64.b64encode(f"{connection.login}:{connection.password or ''}".encode()).decode()

        def sign(request: Any) -> Any:
            request.headers.setdefault("Authorization", f"Basic {word}")
            return request

        return sign

    def run(
        self,
        endpoint: str | None = None,
        data: Any = None,
        headers: Mapping[str, str] | None = None,
        extra_options: Mapping[str, Any] | None = None,
        **request_kwargs: Any,
    ) -> Any:
        """One request; returns the `httpx.Response`, read to its end.

        Args:
            endpoint: path below the server, or a whole URL.
            data: query of a GET or HEAD; otherwise the body: a mapping is sent as a form, a text or bytes as they are.
            request_kwargs: for httpx, such as `json`.

        Raises:
            AirflowException: no answer, or one with a status of 400 and more (unless `check_response` is false).
        """
        httpx = library("httpx", "http")
        sent = dict(request_kwargs)
        if data:
            in_query = self.method in ("GET", "HEAD", "DELETE") and isinstance(data, Mapping | str)
            sent["params" if in_query else "content" if isinstance(data, str | bytes) else "data"] = data
        url = self.url_from_endpoint(endpoint)
        self.log.info("%s %s", self.method, url)
        with self.get_conn(headers, extra_options) as client:
            try:
                response = client.request(self.method, url, **sent)
            except httpx.HTTPError as error:
                raise AirflowException(f"{self.method} {url}: {type(error).__name__}: {error}") from error
        check = dict(extra_options or {}).get("check_response", self.connection.extra_dejson.get("check_response", True))
        if check:
            self.check_response(response)
        return response

    def check_response(self, response: Any) -> None:
        """Raises AirflowException for a status of 400 and more."""
        if response.status_code >= 400:
            self.log.error("HTTP error: %s; the answer: %.2000s", response.reason_phrase, response.text)
            raise AirflowException(f"{response.status_code}:{response.reason_phrase}")

    def test_connection(self) -> tuple[bool, str]:
        """Does the server answer?"""
        try:
            self.run(extra_options={"timeout": 30, "check_response": False})
        except Exception as error:
            return False, str(error)
        return True, "the server answers"


def _keep_alive(idle: int, count: int, interval: int) -> list[tuple[int, int, int]]:
    tcp = socket.IPPROTO_TCP
    names = (("TCP_KEEPIDLE", idle), ("TCP_KEEPCNT", count), ("TCP_KEEPINTVL", interval))
    known = [(tcp, getattr(socket, name), value) for name, value in names if hasattr(socket, name)]
    return [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *known]
