"""Triggers that wait for a file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Hashable
from typing import Any

from tradewind.hooks.files import find_file
from tradewind.sdk.trigger import BaseEventTrigger, BaseTrigger, TriggerEvent


class FileTrigger(BaseTrigger):
    """Fires True when a file exists, or a folder that contains a file at any depth.

    Args:
        filepath: a path or glob pattern.
        recursive: `**` in the pattern matches folders of any depth.
        poke_interval: seconds between two checks.
    """

    def __init__(self, filepath: str, recursive: bool = False, poke_interval: float = 5.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.filepath = os.fspath(filepath)
        self.recursive = recursive
        self.poke_interval = poke_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        kwargs = {"filepath": self.filepath, "recursive": self.recursive, "poke_interval": self.poke_interval}
        return "tradewind.triggers.file.FileTrigger", kwargs

    async def run(self) -> AsyncIterator[TriggerEvent]:
        while (found := await asyncio.to_thread(find_file, self.filepath, self.recursive)) is None:
            await asyncio.sleep(self.poke_interval)
        self.log.info("%s", found)
        yield TriggerEvent(True)


class FileDeleteTrigger(BaseEventTrigger):
    """Deletes a file as soon as it exists, then fires True.

    Args:
        filepath: path of a file.
        poke_interval: seconds between two checks.
    """

    def __init__(self, filepath: str, poke_interval: float = 5.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.filepath = os.fspath(filepath)
        self.poke_interval = poke_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        kwargs = {"filepath": self.filepath, "poke_interval": self.poke_interval}
        return "tradewind.triggers.file.FileDeleteTrigger", kwargs

    async def run(self) -> AsyncIterator[TriggerEvent]:
        while not await asyncio.to_thread(_delete, self.filepath):
            await asyncio.sleep(self.poke_interval)
        self.log.info("Found and deleted file %s", self.filepath)
        yield TriggerEvent(True)


class DirectoryFileDeleteTrigger(BaseEventTrigger):
    """Deletes a file in a folder as soon as it exists, then fires its path: `{"filepath": …}`.

    As an asset watcher it shares the listing of the folder with the other triggers of the folder that have the same interval.

    Args:
        directory: path of the folder.
        filename: name of the file in it.
        poke_interval: seconds between two listings.
    """

    def __init__(self, *, directory: str, filename: str, poke_interval: float = 5.0) -> None:
        super().__init__()
        self.directory = os.fspath(directory)
        self.filename = filename
        self.poke_interval = poke_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        kwargs = {"directory": self.directory, "filename": self.filename, "poke_interval": self.poke_interval}
        return "tradewind.triggers.file.DirectoryFileDeleteTrigger", kwargs

    def shared_stream_key(self) -> Hashable | None:
        return "folder", os.path.realpath(self.directory), self.poke_interval

    @classmethod
    async def open_shared_stream(cls, kwargs: dict[str, Any]) -> AsyncIterator[frozenset[str]]:
        """The names in the folder, again and again. A folder that does not exist has none."""
        while True:
            try:
                names = frozenset(await asyncio.to_thread(os.listdir, kwargs["directory"]))
            except FileNotFoundError:
                names = frozenset()
            yield names
            await asyncio.sleep(kwargs["poke_interval"])

    async def filter_shared_stream(self, shared_stream: AsyncIterator[Any]) -> AsyncIterator[TriggerEvent]:
        path = os.path.join(self.directory, self.filename)
        async for names in shared_stream:
            if self.filename in names and await asyncio.to_thread(_delete, path):
                self.log.info("Found and deleted file %s", path)
                yield TriggerEvent({"filepath": path})
                return

    async def run(self) -> AsyncIterator[TriggerEvent]:
        async for event in self.filter_shared_stream(self.open_shared_stream(self.serialize()[1])):
            yield event


def _delete(path: str) -> bool:
    """Delete the file. Returns False if it does not exist."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True
