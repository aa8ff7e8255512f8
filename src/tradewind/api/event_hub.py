"""Sends the names of changed objects to all open pages: one connection to the scheduler, a bounded queue for each stream.

The hub connects when the first stream opens, and disconnects a while after the last one is closed; so a page that reloads continues
where it was. The latest events are kept: a stream that names the last event that it has seen gets the events after it. Where
events are lost (a slow reader, an event that is not kept any more, a scheduler that was restarted), the stream gets `resync`
instead.

All functions must be called from the event loop of the server.
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import unquote

import msgspec

from tradewind.model.errors import Unreachable, WireError
from tradewind.observe.log import Log
from tradewind.platform.backoff import Backoff
from tradewind.wire.frames import FrameReader, frame
from tradewind.wire.messages import Changed, ClientHello, Welcome, decode_from_scheduler, encode

log = Log("api")

KEPT_EVENTS = 1_000
"""How many events are kept for streams that reconnect. An event has at most a thousand names."""
QUEUE_MAX = 64
"""How many events may wait for one reader. A reader with more gets `resync`."""
STREAMS_MAX = 256
LINGER_SECONDS = 60.0
"""How long the hub stays connected after the last stream was closed."""
CONNECT_SECONDS = 2.0
HEARTBEAT_SECONDS = 15.0
STREAM_SECONDS = 300.0
"""Maximum duration of a stream. The page then opens it again, so a revoked login loses its stream."""

_FIRST_RETRY_US, _LONGEST_RETRY_US = 50_000, 2_000_000
_READ_SIZE = 64 * 1024

RESYNC, CHANGE, LIVE, HELLO = "resync", "change", "live", "hello"

_json = msgspec.json.Encoder().encode


class Event(NamedTuple):
    """One event of the stream."""

    number: int
    kind: str
    names: tuple[str, ...] = ()
    live: bool = True


class Stream:
    """One reader. `sees`: whether its user may read a DAG; None: all."""

    def __init__(self, sees: Callable[[str], bool] | None) -> None:
        self.queue: asyncio.Queue[Event | None] = asyncio.Queue(QUEUE_MAX)
        self.sees = sees

    def put(self, event: Event) -> None:
        """Add an event. If the reader is too slow, its waiting events are dropped and replaced by `resync`."""
        if self.queue.full():
            while not self.queue.empty():
                self.queue.get_nowait()
            event = Event(event.number, RESYNC)
        self.queue.put_nowait(event)

    def end(self) -> None:
        """Let the stream end after the events that wait for the reader."""
        if self.queue.full():
            self.queue.get_nowait()
        self.queue.put_nowait(None)


class OpenedStream(NamedTuple):
    """A stream that was opened, and the data of its first message."""

    stream: Stream
    version: int
    resumed: bool
    """Whether the stream gets all events since the last one that it has seen."""


class EventHub:
    """See the module.

    Args:
        socket_path: of the scheduler.
        linger: see `LINGER_SECONDS`.
        connect_within: seconds that a new stream waits for the scheduler.
    """

    def __init__(self, socket_path: str, linger: float = LINGER_SECONDS, connect_within: float = CONNECT_SECONDS) -> None:
        self._socket_path = socket_path
        self._connect_within = connect_within
        self._linger = linger
        self._streams: set[Stream] = set()
        self._events: deque[Event] = deque(maxlen=KEPT_EVENTS)
        self._number = 0
        self._epoch = secrets.token_hex(4)
        self._task: asyncio.Task[None] | None = None
        self._connected: asyncio.Event | None = None
        self._end: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def streams(self) -> int:
        """How many streams are open."""
        return len(self._streams)

    @property
    def following(self) -> bool:
        """Whether the hub is connected to the scheduler, or tries to be."""
        return self._task is not None

    async def open(self, last: str | None = None, sees: Callable[[str], bool] | None = None) -> OpenedStream:
        """Open a stream.

        Args:
            last: the id of the last event that the reader has seen.

        Raises:
            Unreachable: the scheduler does not answer, or there are too many streams.
        """
        if self._closed or len(self._streams) >= STREAMS_MAX:
            raise Unreachable(f"{len(self._streams)} pages are open, the most there can be; ask again in a few seconds.")
        if self._end is not None:
            self._end.cancel()
            self._end = None
        stream = Stream(sees)
        self._streams.add(stream)
        try:
            await self._need_connection()
        except BaseException:
            self.close_stream(stream)
            raise
        since = self._place_of(last)
        for event in self._events if since is not None else ():
            if since is not None and event.number > since:
                stream.put(event)
        return OpenedStream(stream, self._number, since is not None)

    def close_stream(self, stream: Stream) -> None:
        """Remove a stream: its reader has disconnected."""
        self._streams.discard(stream)
        if not self._streams and self._task is not None and self._end is None:
            self._end = asyncio.get_running_loop().call_later(self._linger, self._stop)

    def close(self) -> None:
        """End all streams and the connection: the server stops."""
        self._closed = True
        for stream in self._streams:
            stream.end()
        self._stop()

    def id_of(self, number: int) -> str:
        """The id of an event in the stream."""
        return f"{self._epoch}-{number}"

    def _place_of(self, last: str | None) -> int | None:
        """The number of the event with this id, if all later ones are kept."""
        epoch, _, number = (last or "").partition("-")
        if epoch != self._epoch or not (number.isascii() and number.isdigit() and len(number) < 19):
            return None
        place = int(number)
        oldest = self._events[0].number if self._events else self._number + 1
        return place if oldest - 1 <= place <= self._number else None

    async def _need_connection(self) -> None:
        if self._task is None:
            self._connected = asyncio.Event()
            self._epoch = secrets.token_hex(4)
            self._task = asyncio.create_task(self._follow(self._connected))
        assert self._connected is not None
        try:
            await asyncio.wait_for(self._connected.wait(), self._connect_within)
        except TimeoutError:
            raise Unreachable(
                f"The scheduler at {self._socket_path} does not answer, so changes are not known; ask again, or read every 10 s."
            ) from None

    def _stop(self) -> None:
        """Disconnect, and drop the kept events: later changes are not seen, so no stream can continue after them."""
        self._end = None
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._events.clear()

    # --- the scheduler ---------------------------------------------------------------------------------------------

    async def _follow(self, connected: asyncio.Event) -> None:
        """Stay connected to the scheduler. Connect again after growing delays while no scheduler answers."""
        waits = Backoff(_FIRST_RETRY_US, _LONGEST_RETRY_US, random.random)
        again = False
        while True:
            try:
                async for message in self._messages():
                    if isinstance(message, Welcome):
                        waits.succeeded()
                        if again:
                            self._publish(LIVE, live=True)
                            self._publish(RESYNC)
                        connected.set()
                    elif isinstance(message, Changed):
                        self._changed(message.names)
            except (OSError, WireError, msgspec.DecodeError) as error:
                if connected.is_set():
                    log.info("the connection for changes broke; it is opened again", reason=str(error))
            except Exception:
                log.exception("changes could not be read; the connection is opened again")
            if connected.is_set():
                connected.clear()
                again = True
                self._publish(LIVE, live=False)
            await asyncio.sleep(waits.failed() / 1e6)

    async def _messages(self) -> AsyncIterator[object]:
        """The messages of one connection, beginning with the scheduler's greeting. Ends when the connection is closed."""
        reader, writer = await asyncio.open_unix_connection(self._socket_path)
        try:
            writer.write(frame(encode(ClientHello("api", os.getpid(), watch=True))))
            frames = FrameReader()
            while data := await reader.read(_READ_SIZE):
                for document in frames.feed(data):
                    message = decode_from_scheduler(document)
                    if isinstance(message, Welcome) and message.refused:
                        raise WireError(message.refused)
                    yield message
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def _changed(self, names: list[str]) -> None:
        if RESYNC in names:
            self._publish(RESYNC)
        else:
            self._publish(CHANGE, tuple(names))

    def _publish(self, kind: str, names: tuple[str, ...] = (), *, live: bool = True) -> None:
        self._number += 1
        event = Event(self._number, kind, names, live)
        self._events.append(event)
        for stream in self._streams:
            stream.put(event)


async def lines(
    hub: EventHub, opened: OpenedStream, seconds: float, heartbeat: float = HEARTBEAT_SECONDS
) -> AsyncIterator[bytes]:
    """The stream as text. Ends after `seconds`, or when the hub is closed."""
    loop = asyncio.get_running_loop()
    end, stream = loop.time() + seconds, opened.stream
    try:
        first = {"version": opened.version, "resumed": opened.resumed}
        yield _text(HELLO, first, None if opened.resumed else hub.id_of(opened.version))
        while (left := end - loop.time()) > 0:
            try:
                event = await asyncio.wait_for(stream.queue.get(), min(left, heartbeat))
            except TimeoutError:
                yield b": nothing has changed\n\n"
                continue
            if event is None:
                return
            text = shown(hub, stream, event)
            if text is not None:
                yield text
    finally:
        hub.close_stream(stream)


def shown(hub: EventHub, stream: Stream, event: Event) -> bytes | None:
    """An event as its reader gets it. None: the reader may see nothing of it."""
    data: dict[str, object] = {"version": event.number}
    if event.kind == LIVE:
        data["live"] = event.live
    elif event.kind == CHANGE:
        names = [name for name in event.names if stream.sees is None or _is_seen(name, stream.sees)]
        if not names:
            return None
        data["changed"] = names
    return _text(event.kind, data, hub.id_of(event.number))


def _is_seen(name: str, sees: Callable[[str], bool]) -> bool:
    kind, _, place = name.partition(":")
    return kind not in ("dag", "run", "task") or sees(unquote(place.partition("/")[0]))


def _text(kind: str, data: object, number: str | None) -> bytes:
    place = b"" if number is None else b"id: " + number.encode() + b"\n"
    return place + b"event: " + kind.encode() + b"\ndata: " + _json(data) + b"\n\n"
