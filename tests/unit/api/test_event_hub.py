"""The stream of changes: its connection to the scheduler, lost events, and what each reader gets."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tradewind.api import event_hub
from tradewind.api.event_hub import EventHub, OpenedStream, lines
from tradewind.model.errors import Unreachable
from tradewind.wire.frames import FrameReader, frame
from tradewind.wire.messages import Changed, ClientHello, Welcome, decode_to_scheduler, encode

LONG = 30.0


class FakeScheduler:
    """Accepts the hub's connection and sends what a test wants."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.hellos: asyncio.Queue[ClientHello] = asyncio.Queue()
        self.writers: list[asyncio.StreamWriter] = []
        self.server: asyncio.Server | None = None

    async def start(self) -> None:
        self.server = await asyncio.start_unix_server(self._serve, self.path)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = FrameReader()
        while data := await reader.read(1000):
            for document in frames.feed(data):
                message = decode_to_scheduler(document)
                assert isinstance(message, ClientHello)
                writer.write(frame(encode(Welcome(1))))
                self.writers.append(writer)
                await self.hellos.put(message)
        writer.close()

    def change(self, *names: str) -> None:
        self.writers[-1].write(frame(encode(Changed(list(names)))))

    def stop(self) -> None:
        if self.server is not None:
            self.server.close()
        for writer in self.writers:
            writer.close()


def run(story: Callable[[FakeScheduler, EventHub], Awaitable[None]], linger: float = LONG) -> None:
    async def scenario(folder: str) -> None:
        scheduler = FakeScheduler(f"{folder}/s.sock")
        await scheduler.start()
        hub = EventHub(scheduler.path, linger)
        try:
            await asyncio.wait_for(story(scheduler, hub), LONG)
        finally:
            hub.close()
            scheduler.stop()

    with tempfile.TemporaryDirectory(prefix="tw-") as folder:  # the path of a socket must be short
        asyncio.run(scenario(folder))


class Reader:
    """Reads the messages of a stream."""

    def __init__(self, hub: EventHub, opening: OpenedStream, seconds: float = LONG, heartbeat: float = LONG) -> None:
        self.text = lines(hub, opening, seconds, heartbeat)

    async def next(self) -> tuple[str, str, dict[str, Any]]:
        """(kind, id, data) of the next message."""
        fields = dict(line.split(": ", 1) for line in (await anext(self.text)).decode().strip().split("\n"))
        return fields["event"], fields.get("id", ""), json.loads(fields["data"])


def test_all_streams_share_one_connection_and_get_every_change() -> None:
    async def story(scheduler: FakeScheduler, hub: EventHub) -> None:
        first, second = Reader(hub, await hub.open()), Reader(hub, await hub.open())
        assert (await scheduler.hellos.get()).watch is True
        assert scheduler.hellos.empty()
        assert (await first.next())[2] == {"version": 0, "resumed": False}
        await second.next()
        scheduler.change("dag:sales", "triage")
        for reader in (first, second):
            kind, _, data = await reader.next()
            assert (kind, data) == ("change", {"version": 1, "changed": ["dag:sales", "triage"]})

    run(story)


def test_a_stream_continues_after_the_last_event_that_it_has_seen() -> None:
    async def story(scheduler: FakeScheduler, hub: EventHub) -> None:
        reader = Reader(hub, await hub.open())
        await reader.next()
        scheduler.change("dag:a")
        _, seen, _ = await reader.next()
        scheduler.change("dag:b")
        await reader.next()
        await reader.text.aclose()  # type: ignore[attr-defined]
        assert (hub.streams, hub.following) == (0, True), "it lingers"
        again = Reader(hub, await hub.open(seen))
        assert (await again.next())[2]["resumed"] is True
        assert (await again.next())[2]["changed"] == ["dag:b"]
        for unknown in ("0000-1", seen.split("-")[0] + "-999", "x", "-", seen + "9" * 30):
            assert (await hub.open(unknown)).resumed is False, unknown

    run(story)


def test_without_streams_the_hub_disconnects() -> None:
    async def story(scheduler: FakeScheduler, hub: EventHub) -> None:
        opening = await hub.open()
        last = hub.id_of(opening.version)
        await scheduler.hellos.get()
        hub.close_stream(opening.stream)
        while hub.following:
            await asyncio.sleep(0)
        assert (await hub.open(last)).resumed is False, "what happened meanwhile is not known"
        await scheduler.hellos.get()

    run(story, linger=0.0)


def test_a_slow_reader_gets_resync_and_no_memory_is_used_for_it() -> None:
    async def story(scheduler: FakeScheduler, hub: EventHub) -> None:
        slow, quick = await hub.open(), Reader(hub, await hub.open())
        await quick.next()
        for number in range(event_hub.QUEUE_MAX + 5):
            scheduler.change(f"dag:{number}")
            await quick.next()
        assert slow.stream.queue.qsize() <= event_hub.QUEUE_MAX
        reader = Reader(hub, slow)
        await reader.next()
        assert (await reader.next())[0] == "resync"
        assert (await reader.next())[2]["changed"] == [f"dag:{event_hub.QUEUE_MAX + 1}"]

    run(story)


def test_a_scheduler_that_comes_back_makes_readers_read_again() -> None:
    async def story(scheduler: FakeScheduler, hub: EventHub) -> None:
        reader = Reader(hub, await hub.open())
        await reader.next()
        scheduler.writers[-1].close()
        assert (await reader.next())[2]["live"] is False
        assert (await reader.next())[2]["live"] is True
        assert (await reader.next())[0] == "resync"
        scheduler.change("resync")
        assert (await reader.next())[0] == "resync"

    run(story)


def test_a_message_that_cannot_be_read_opens_the_connection_again() -> None:
    async def story(scheduler: FakeScheduler, hub: EventHub) -> None:
        reader = Reader(hub, await hub.open())
        await reader.next()
        scheduler.writers[-1].write(frame(b"\xc1"))
        assert [(await reader.next())[0] for _ in range(3)] == ["live", "live", "resync"]

    run(story)


def test_readers_get_only_names_of_dags_that_they_may_see() -> None:
    async def story(scheduler: FakeScheduler, hub: EventHub) -> None:
        reader = Reader(hub, await hub.open(sees=lambda dag_id: dag_id == "my dag/1"))
        await reader.next()
        scheduler.change("dag:other", "run:other/r")
        scheduler.change("dag:my%20dag%2F1", "task:other/r/t/-1", "run:my%20dag%2F1/r", "pool:p", "triage")
        _, _, data = await reader.next()
        assert data == {"version": 2, "changed": ["dag:my%20dag%2F1", "run:my%20dag%2F1/r", "pool:p", "triage"]}

    run(story)


def test_a_quiet_stream_has_heartbeats_and_ends() -> None:
    async def story(scheduler: FakeScheduler, hub: EventHub) -> None:
        opening = await hub.open()
        reader = Reader(hub, opening, heartbeat=0.001)
        await reader.next()
        assert await anext(reader.text) == b": nothing has changed\n\n"
        hub.close()
        assert [text async for text in reader.text if not text.startswith(b":")] == []
        assert hub.streams == 0
        with pytest.raises(Unreachable):
            await hub.open()

    run(story)


def test_a_stream_ends_after_its_time() -> None:
    async def story(scheduler: FakeScheduler, hub: EventHub) -> None:
        assert len([text async for text in lines(hub, await hub.open(), 0.0)]) == 1

    run(story)


def test_without_a_scheduler_no_stream_opens() -> None:
    async def scenario() -> None:
        hub = EventHub("/nowhere/s.sock", 0.0, connect_within=0.05)
        with pytest.raises(Unreachable, match="does not answer"):
            await hub.open()
        assert hub.streams == 0
        hub.close()

    asyncio.run(scenario())


def test_the_number_of_streams_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_hub, "STREAMS_MAX", 2)

    async def story(scheduler: FakeScheduler, hub: EventHub) -> None:
        await hub.open()
        await hub.open()
        with pytest.raises(Unreachable, match="2 pages"):
            await hub.open()

    run(story)
