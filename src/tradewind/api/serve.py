"""The API process: `python -m tradewind.api.serve '<ApiConfig as JSON>'`, or `main(config)` from the command line.

When idle, it only reports progress every few seconds. Uvicorn would check ten times a second whether it has to end; here it
waits for the signal.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import socket
import sys
from collections.abc import Callable
from types import FrameType
from typing import cast

import msgspec
import uvicorn
from uvicorn._types import ASGIApplication

from tradewind.api.app import create_app
from tradewind.api.config import ApiConfig
from tradewind.model.errors import ConfigError
from tradewind.observe.log import Log, configure

Ready = Callable[[str], None]
Heartbeat = tuple[Callable[[], None], float]
"""(function that reports progress, seconds between two calls)"""

_GRACE_SECONDS = 2
"""Maximum time that running requests may take after SIGTERM."""

_M_MMAP_THRESHOLD = -3
"""Source: malloc.h of glibc."""

_log = Log("api")


class _Server(uvicorn.Server):
    """A server that waits for its end signal without polling."""

    def __init__(self, config: uvicorn.Config, heartbeat: Heartbeat | None, end_streams: Callable[[], None]) -> None:
        super().__init__(config)
        self._end_streams = end_streams
        self._heartbeat = heartbeat
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end = asyncio.Event()

    async def main_loop(self) -> None:
        self._loop = asyncio.get_running_loop()
        while not self.should_exit:
            if self._heartbeat is None:
                await self._end.wait()
                return
            report, interval = self._heartbeat
            report()
            try:
                await asyncio.wait_for(self._end.wait(), interval)
            except TimeoutError:
                pass

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal lets running requests finish, and the exit status is 0; the second signal ends at once."""
        self.force_exit = self.should_exit
        self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._end.set)
            self._loop.call_soon_threadsafe(self._end_streams)


def main(config: ApiConfig, ready: Ready | None = None, ready_fd: int | None = None, heartbeat: Heartbeat | None = None) -> int:
    """Serve until SIGTERM or SIGINT. Returns the exit status.

    Args:
        ready: called with the address ("http://127.0.0.1:8080") once the server accepts requests.
        ready_fd: a file descriptor to which the address and a newline are written; then it is closed.
        heartbeat: is called from the event loop.

    Raises:
        ConfigError: the server cannot listen on the address.
    """
    listener = _listen(config.host, config.port)
    host, port = listener.getsockname()[:2]
    address = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    app = create_app(config)
    server = _Server(
        uvicorn.Config(
            cast(ASGIApplication, app),
            loop="asyncio",
            http="auto",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=bool(config.trusted_proxies),
            forwarded_allow_ips=list(config.trusted_proxies),
            timeout_keep_alive=30,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        ),
        heartbeat,
        app.state.services.events.close,
    )
    _return_freed_memory()
    # from here on the listener queues requests; they are handled as soon as the loop runs
    _announce(address, ready, ready_fd)
    gc.collect()
    gc.freeze()
    server.run(sockets=[listener])
    return 0


def _return_freed_memory() -> None:
    """Have freed blocks of 256 KiB and more returned to the system.

    By default glibc raises this threshold when the 19 MiB of a password hash are freed: the process would then keep 20 MB after one
    login.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has no mallopt
        if mallopt is not None:
            mallopt(_M_MMAP_THRESHOLD, 256 * 1024)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sets TCP_NODELAY on each connection. Otherwise the second part of an answer waits until the
    # client has acknowledged the first part, for up to 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(512)
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"The API cannot listen on {host} port {port}: {error.strerror}. Choose another port with --port (0: any free port)"
        ) from error
    return listener


def _announce(address: str, ready: Ready | None, ready_fd: int | None) -> None:
    _log.info("the API accepts requests", address=address)
    if ready is not None:
        ready(address)
    if ready_fd is not None:
        os.write(ready_fd, f"{address}\n".encode())
        os.close(ready_fd)


class _Arguments(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    config: ApiConfig
    ready_fd: int | None = None
    log_level: str = "INFO"


if __name__ == "__main__":
    arguments = msgspec.json.decode(sys.argv[1], type=_Arguments)
    configure("api", arguments.log_level)
    sys.exit(main(arguments.config, ready_fd=arguments.ready_fd))
