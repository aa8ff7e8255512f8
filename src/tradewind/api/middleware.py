"""Middleware of all requests: security headers for browsers, and a maximum size of bodies. Plain ASGI: no extra task or queue."""

from __future__ import annotations

import json

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_NO_STORE = (b"cache-control", b"no-store")


class HeadersAndBodyLimit:
    """Adds security headers to every response and refuses large bodies. A header that the response has already is kept.

    Args:
        body_max_bytes: a longer body is refused with 413 before it is read completely.
    """

    def __init__(self, app: ASGIApp, body_max_bytes: int) -> None:
        self._app = app
        self._body_max_bytes = body_max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.setdefault("headers", [])
                present = {name.lower() for name, _ in headers}
                headers.extend(one for one in (*_HEADERS, _NO_STORE) if one[0] not in present)
            await send(message)

        for name, value in scope["headers"]:
            if name == b"content-length" and (not value.isdigit() or int(value) > self._body_max_bytes):
                await self._refuse(guarded_send)
                return
        seen, started, refused = 0, False, False

        async def bounded_receive() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > self._body_max_bytes:
                raise _TooLarge
            return message

        async def bounded_send(message: Message) -> None:
            """Send 413 in place of the response with which the application reacts to the interrupted body."""
            nonlocal started, refused
            if seen > self._body_max_bytes and not started:
                refused = True
            if not refused:
                started = True
                await guarded_send(message)

        try:
            await self._app(scope, bounded_receive, bounded_send)
        except _TooLarge:
            refused = not started
        if refused:
            await self._refuse(guarded_send)

    async def _refuse(self, send: Send) -> None:
        body = json.dumps({"detail": f"The body is larger than {self._body_max_bytes} bytes."}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class _TooLarge(Exception):
    pass
