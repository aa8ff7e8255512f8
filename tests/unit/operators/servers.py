"""Real servers for tests of operators: one for HTTP, one for mail."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from aiosmtpd.controller import Controller


class Asked(dict[str, Any]):
    """One received request: method, path, query, headers, body."""


class HttpServer:
    """A server that records its requests.

    `/status/503` responds with that status, `/page?n=2` with one of three pages, and `/moved` redirects to `/here`. The response to
    any other path describes the request.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[Asked] = []
        self.statuses: list[int] = []
        """Statuses of the next responses; afterwards 200."""


def _handler(server: HttpServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            parts = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            asked = Asked(method=self.command, path=parts.path, query=query, headers=dict(self.headers), body=body)
            server.asked.append(asked)
            status = server.statuses.pop(0) if server.statuses else 200
            text = json.dumps({"method": asked["method"], "path": asked["path"], "query": query, "body": body})
            if parts.path.startswith("/status/"):
                status = int(parts.path.rpartition("/")[2])
            elif parts.path == "/page":
                page = int(query.get("n", 1))
                text = json.dumps({"rows": [page], "next": page + 1 if page < 3 else None})
            elif parts.path == "/moved":
                status = 302
            self.send_response(status)
            if status == 302:
                self.send_header("Location", "/here")
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text.encode())

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = answer

        def log_message(self, *args: Any) -> None:
            """Write nothing to stderr."""

    return Handler


def free_port() -> int:
    """A port of this machine on which no process listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class MailServer(NamedTuple):
    """The received mails: (sender, recipients, message)."""

    port: int
    mails: list[tuple[str, list[str], Message]]


@contextmanager
def mail_server(port: int | None = None, **options: Any) -> Iterator[MailServer]:
    """A mail server on a port of this machine (None: a free port). It rejects recipients whose address begins with `refused@`.

    Args:
        options: arguments of aiosmtpd's Controller.
    """
    mails: list[tuple[str, list[str], Message]] = []

    class Handler:
        async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
            if address.startswith("refused"):
                return "550 nobody of that name"
            envelope.rcpt_tos.append(address)
            return "250 OK"

        async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
            mails.append((envelope.mail_from, envelope.rcpt_tos, message_from_bytes(envelope.content)))
            return "250 OK"

    port = port or free_port()
    controller = Controller(Handler(), hostname="127.0.0.1", port=port, **options)
    controller.start()
    try:
        yield MailServer(port, mails)
    finally:
        controller.stop()


@contextmanager
def http_server() -> Iterator[HttpServer]:
    """An HTTP server on a free port of this machine."""
    listening = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server = HttpServer(f"http://127.0.0.1:{listening.server_port}")
    listening.RequestHandlerClass = _handler(server)
    listening.daemon_threads = True
    thread = threading.Thread(daemon=True, target=listening.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()
