"""Running the trigger of an asset watcher, and streams that several triggers share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from typing import Any, ClassVar

import pytest

from tradewind.execution.run_trigger import watch
from tradewind.execution.shared_streams import SharedStreams
from tradewind.execution.xcom_codec import encode_xcom
from tradewind.model.waits import TriggerEnd, TriggerWait
from tradewind.sdk.trigger import BaseEventTrigger, BaseTrigger, TriggerEvent


class Fires(BaseEventTrigger):
    def __init__(self, *payloads: object, fails: bool = False) -> None:
        super().__init__()
        self.payloads = payloads
        self.fails = fails
        self.cleaned = False

    async def run(self) -> AsyncIterator[TriggerEvent]:
        for payload in self.payloads:
            yield TriggerEvent(payload)
        if self.fails:
            raise RuntimeError("the queue is gone")

    async def cleanup(self) -> None:
        self.cleaned = True


def watch_all(trigger: BaseTrigger, **more: Any) -> tuple[TriggerEnd, list[bytes]]:
    found: list[bytes] = []

    async def emit(payload: bytes) -> None:
        found.append(payload)

    return asyncio.run(watch(trigger, emit, **more)), found


def test_every_event_is_reported_and_an_end_is_no_error() -> None:
    trigger = Fires({"n": 1}, "two", None)
    assert watch_all(trigger) == (TriggerEnd(), [b'{"n":1}', b'"two"', b"null"])
    assert trigger.cleaned


def test_the_trigger_goes_on_when_its_event_is_taken() -> None:
    class Counts(Fires):
        asked = 0

        async def run(self) -> AsyncIterator[TriggerEvent]:
            for _ in range(2):
                self.asked += 1
                yield TriggerEvent(self.asked)

    async def scenario() -> None:
        trigger, taken, came = Counts(), asyncio.Event(), asyncio.Event()

        async def emit(payload: bytes) -> None:
            came.set()
            await taken.wait()

        task = asyncio.create_task(watch(trigger, emit))
        await came.wait()
        assert trigger.asked == 1
        taken.set()
        await task
        assert trigger.asked == 2

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("trigger", "message"),
    [
        (Fires(1, fails=True), "the queue is gone"),
        (Fires(object()), "JSON cannot hold"),
        (Fires("x" * 100), "more than core.xcom_max_bytes=50"),
    ],
)
def test_a_failure_is_the_end(trigger: Fires, message: str) -> None:
    end, _ = watch_all(trigger, event_max=50)
    assert message in (end.error or "")
    assert trigger.cleaned


class Folder(BaseEventTrigger):
    """Shares one stream of names with the others of the same folder."""

    opened: ClassVar[list[str]] = []
    closed: ClassVar[list[str]] = []

    def __init__(self, folder: str, name: str) -> None:
        super().__init__()
        self.folder = folder
        self.name = name

    def shared_stream_key(self) -> Hashable | None:
        return self.folder

    @classmethod
    async def open_shared_stream(cls, kwargs: dict[str, Any]) -> AsyncIterator[Any]:
        cls.opened.append(kwargs["folder"])
        try:
            while True:
                await asyncio.sleep(0)
                if kwargs["folder"] == "broken":
                    raise OSError("no such folder")
                yield {"a", "b"}
        finally:
            cls.closed.append(kwargs["folder"])

    async def filter_shared_stream(self, shared_stream: AsyncIterator[Any]) -> AsyncIterator[TriggerEvent]:
        async for names in shared_stream:
            if self.name in names:
                yield TriggerEvent(self.name)
                return


async def watch_together(*triggers: Folder) -> list[TriggerEnd]:
    streams = SharedStreams()

    async def one(trigger: Folder) -> TriggerEnd:
        async def emit(payload: bytes) -> None:
            pass

        wait = TriggerWait("x", encode_xcom({"folder": trigger.folder, "name": trigger.name}))
        return await watch(trigger, emit, events=lambda: streams.events(trigger, wait))

    return list(await asyncio.wait_for(asyncio.gather(*map(one, triggers)), 30))


def test_triggers_share_a_stream_that_ends_after_the_last() -> None:
    Folder.opened.clear()
    Folder.closed.clear()
    assert asyncio.run(watch_together(Folder("in", "a"), Folder("in", "b"), Folder("out", "a"))) == [TriggerEnd()] * 3
    assert sorted(Folder.opened) == sorted(Folder.closed) == ["in", "out"]


def test_all_triggers_of_a_stream_that_fails_fail() -> None:
    ends = asyncio.run(watch_together(Folder("broken", "a"), Folder("broken", "b")))
    assert all("no such folder" in (end.error or "") for end in ends)


def test_a_stream_with_acknowledgements_is_refused() -> None:
    class Acknowledged(Folder):
        @classmethod
        def create_shared_stream_producer(cls, kwargs: dict[str, Any]) -> Any:
            return object()

    (end,) = asyncio.run(watch_together(Acknowledged("in", "a")))
    assert "create_shared_stream_producer(), which is not supported" in (end.error or "")
