"""HTTP requests to the server of a connection. Needs the extra `http` (httpx)."""

from __future__ import annotations

import base64
import socket
from collections.abc import Callable, Mapping
from typing import Any

from tradewind.hooks.extras import import_library
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.variables import BaseHook, Connection

TIMEOUT = 600.0
"""Seconds for one request, unless `timeout` is given, so that no request waits forever."""

OPTIONS = ("timeout", "verify", "cert", "allow_redirects", "max_redirects", "check_response", "trust_env", "proxies")
"""Keys of `extra_options`, and of the connection's extra. Other keys of the extra are request headers."""


class HttpHook(BaseHook):
    """Sends requests to the server of a connection.

    Args:
        method: `GET`, `POST` …
        http_conn_id: a connection with host (with or without `https://`), port, login, password. Its schema is `http` or `https`,
            its extra contains request headers and options (see `OPTIONS`).
        auth_type: function from login and password to httpx's `auth`. None: basic authentication if the connection has a login.
        tcp_keep_alive: send TCP keep-alive probes, to keep the connection open during a long request.
        tcp_keep_alive_idle: seconds without traffic before the first probe.
        tcp_keep_alive_count: number of unanswered probes before the connection is closed.
        tcp_keep_alive_interval: seconds between probes.
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
        """The URL to which endpoints are appended."""
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
        """An `httpx.Client`. The caller has to close it."""
        httpx = import_library("httpx", "http")
        extra = self.connection.extra_dejson
        options = {name: extra.pop(name) for name in OPTIONS if name in extra} | dict(extra_options or {})
        for name in options:
            if name not in OPTIONS:
                raise AirflowException(f"extra_options has the unknown key {name!r}; the keys are {', '.join(OPTIONS)}")
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
        credentials = base64.b64encode(f"{connection.login}:{connection.password or ''}".encode()).decode()

        def sign(request: Any) -> Any:
            request.headers.setdefault("Authorization", f"Basic {credentials}")
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
        """Send one request. Returns the `httpx.Response` with the complete body.

        Args:
            endpoint: path relative to the server, or a complete URL.
            data: query parameters of a GET or HEAD, otherwise the body. A mapping is sent as a form, a string or bytes unchanged.
            request_kwargs: further arguments for httpx, such as `json`.

        Raises:
            AirflowException: no response, or a response with a status of 400 or more (unless `check_response` is false).
        """
        httpx = import_library("httpx", "http")
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
        """Raises AirflowException for a status of 400 or more."""
        if response.status_code >= 400:
            self.log.error("HTTP error: %s; response: %.2000s", response.reason_phrase, response.text)
            raise AirflowException(f"{response.status_code}:{response.reason_phrase}")

    def test_connection(self) -> tuple[bool, str]:
        """Test the connection: (success, message)."""
        try:
            self.run(extra_options={"timeout": 30, "check_response": False})
        except Exception as error:
            return False, str(error)
        return True, "the server responds"


def _keep_alive(idle: int, count: int, interval: int) -> list[tuple[int, int, int]]:
    tcp = socket.IPPROTO_TCP
    names = (("TCP_KEEPIDLE", idle), ("TCP_KEEPCNT", count), ("TCP_KEEPINTVL", interval))
    known = [(tcp, getattr(socket, name), value) for name, value in names if hasattr(socket, name)]
    return [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1), *known]
