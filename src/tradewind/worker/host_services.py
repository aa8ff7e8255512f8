"""The interface of the worker host for its own parts, so that they need not import its module."""

from __future__ import annotations

from typing import Protocol

from tradewind.platform.clock import Clock
from tradewind.platform.loop import Loop
from tradewind.worker.config import HostConfig
from tradewind.worker.final_log_lines import FinalLogLines
from tradewind.worker.templates import Templates


class HostServices(Protocol):
    """The interface of `WorkerHost` for `TriggerManager` and `CallbackProcesses`."""

    config: HostConfig
    clock: Clock
    loop: Loop
    templates: Templates
    final_lines: FinalLogLines
    stopping: bool
    """The worker host is stopping its tasks and will end."""

    def send(self, message: object) -> None:
        """Send a message to the scheduler. Without a connection the message is dropped."""
