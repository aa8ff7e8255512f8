"""Responses of aiohttp without a server."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL


class MockAiohttpClientResponse(aiohttp.ClientResponse):
    """A response with a status, headers and a body."""

    def __init__(
        self,
        *,
        method: str = "GET",
        url: str = "http://localhost",
        status: int = 200,
        reason: str = "",
        payload: Any = None,
        body: bytes | str | None = None,
        headers: Any = None,
        **_more: Any,
    ) -> None:
        self.method = method
        self.status = status
        self.reason = reason
        self._cache = {}
        self._headers = CIMultiDictProxy(CIMultiDict(headers or {"Content-Type": "application/json"}))
        self._real_url = self._url = URL(url)
        self._request_info = aiohttp.RequestInfo(URL(url), method, self._headers, URL(url))
        self._history = ()
        text = json.dumps(payload) if body is None else body
        self._body = text if isinstance(text, bytes) else text.encode()
        self._in_context = False
        self._closed = True
        self._released = True

    def get_encoding(self) -> str:
        return "utf-8"

    def release(self) -> Any:
        """Do nothing: no connection is open."""

    def __del__(self, *_args: Any) -> None:
        """Do nothing: no connection is open."""
