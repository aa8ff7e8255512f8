"""Streams of raw events that the triggers of several asset watchers share.

Triggers with the same `shared_stream_key` get the same raw events from one generator, `open_shared_stream`. The generator is
opened for the first of them and closed after the last. Each trigger has a queue of bounded length; the generator waits while one
of the queues is full, so no raw event is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Hashable
from typing import Any

from tradewind.execution.xcom_codec import decode_xcom
from tradewind.model.waits import TriggerWait
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.trigger import BaseEventTrigger, BaseTrigger

QUEUE_MAX = 1000
"""Maximum number of raw events that wait for one trigger. If a trigger has so many, the generator waits."""
CLOSE_SECONDS = 30.0


class _End:
    """The stream has ended. `error` None: without an exception."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class _Stream:
    """One generator of raw events and the queues of the triggers that share it."""

    def __init__(self, opened: AsyncIterator[Any]) -> None:
        self.queues: list[asyncio.Queue[Any]] = []
        self.ended: _End | None = None
        self._opened = opened
        self._task = asyncio.create_task(self._read())

    def join(self) -> asyncio.Queue[Any]:
        queue: asyncio.Queue[Any] = asyncio.Queue(QUEUE_MAX)
        self.queues.append(queue)
        return queue

    async def _read(self) -> None:
        end = _End(None)
        try:
            async for raw in self._opened:
                await self._give(raw)
        except Exception as error:
            end = _End(error)
        self.ended = end
        await self._give(end)

    async def _give(self, raw: Any) -> None:
        for queue in list(self.queues):
            while queue in self.queues:  # a trigger that has left the stream is not waited for
                try:
                    await asyncio.wait_for(queue.put(raw), 1.0)
                    break
                except TimeoutError:
                    continue

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task], timeout=CLOSE_SECONDS)
        if isinstance(self._opened, AsyncGenerator):
            with contextlib.suppress(Exception):
                await asyncio.wait_for(self._opened.aclose(), CLOSE_SECONDS)


class SharedStreams:
    """All shared streams of a process."""

    def __init__(self) -> None:
        self._streams: dict[Hashable, _Stream] = {}

    def events(self, trigger: BaseTrigger, wait: TriggerWait) -> Any:
        """The events of an asset watcher's trigger: from its own `run`, or from a shared stream.

        Raises:
            AirflowException: the class of the trigger requires a stream with acknowledgements.
            Exception: any exception of the author's code.
        """
        key = trigger.shared_stream_key() if isinstance(trigger, BaseEventTrigger) else None
        if key is None:
            return trigger.run()
        assert isinstance(trigger, BaseEventTrigger)
        cls = type(trigger)
        if getattr(cls.create_shared_stream_producer, "__func__", None) is not _NO_PRODUCER:
            raise AirflowException(
                f"{cls.__name__} defines create_shared_stream_producer(), which is not supported; "
                "define open_shared_stream(), or return None in shared_stream_key()"
            )
        return trigger.filter_shared_stream(self._raw(key, cls, decode_xcom(wait.kwargs)))

    async def _raw(self, key: Hashable, cls: type[BaseEventTrigger], kwargs: dict[str, Any]) -> AsyncIterator[Any]:
        stream = self._streams.get(key)
        if stream is None or stream.ended is not None:
            stream = self._streams[key] = _Stream(cls.open_shared_stream(kwargs))
        queue = stream.join()
        try:
            while True:
                raw = await queue.get()
                if isinstance(raw, _End):
                    if raw.error is not None:
                        raise raw.error
                    return
                yield raw
        finally:
            stream.queues.remove(queue)
            if not stream.queues:
                if self._streams.get(key) is stream:
                    del self._streams[key]
                await stream.close()


_NO_PRODUCER = getattr(BaseEventTrigger.create_shared_stream_producer, "__func__", None)
