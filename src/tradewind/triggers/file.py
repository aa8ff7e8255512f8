"""Triggers that wait for a file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
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


def _delete(path: str) -> bool:
    """Delete the file. Returns False if it does not exist."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True
