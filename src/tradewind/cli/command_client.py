"""How the command line changes something: through the live scheduler, or, with none alive, by itself.

The scheduler is the only writer while it lives. Without one the writer's lock is free: we take it, carry out the very same
command on the store, and release it. A scheduler that is just starting or ending holds the lock but does not answer, and while a
`standalone` lives another scheduler is about to come: both are waited for.
"""

from __future__ import annotations

import getpass
import os
import time
from typing import Any

from tradewind.cli.common import home_lock
from tradewind.cli.lock import HomeLock, WriterLock
from tradewind.client.control import ControlClient
from tradewind.model.errors import StoreBusy, Unreachable
from tradewind.settings import Settings

PATIENCE_SECONDS = 30.0
"""So long a command waits for others that write, or for a scheduler that is about to come, before it says so."""
_LOOK_AGAIN_SECONDS = 0.05


class CommandClient:
    """One for each command line. `offline` tells, after the first call, whether there was no scheduler."""

    def __init__(self, settings: Settings, patience: float = PATIENCE_SECONDS) -> None:
        self.settings = settings
        self.offline = False
        self._patience = patience

    def call(self, command: str, /, **args: Any) -> Any:
        """Have one command carried out; its committed result.

        Raises:
            NotFound, Conflict, …: what forbids it.
            StoreBusy: somebody writes and does not answer.
            Unreachable: the scheduler took the command and went away; it may have been carried out.
        """
        deadline = time.monotonic() + self._patience
        self.settings.paths.prepare()
        lock = WriterLock(self.settings.paths.lock)
        with ControlClient(self.settings.paths.scheduler_socket, "cli") as control:
            while True:
                if self._answers(control):
                    self.offline = False
                    try:
                        return control.call(command, actor=who(), **args)
                    except StoreBusy:  # nothing was written: somebody else holds the database
                        if time.monotonic() > deadline:
                            raise
                if time.monotonic() > deadline or not self._supervised():
                    try:
                        lock.take()
                        break
                    except StoreBusy:
                        if time.monotonic() > deadline:
                            raise
                time.sleep(_LOOK_AGAIN_SECONDS)
        try:
            self.offline = True
            return self._by_myself(command, {key: value for key, value in args.items() if value is not None})
        finally:
            lock.release()

    def _supervised(self) -> bool:
        """Does a `standalone` look after this home folder, so that its scheduler will be back?"""
        lock = HomeLock(home_lock(self.settings))
        try:
            lock.take()
        except StoreBusy:
            return True
        lock.release()
        return False

    @staticmethod
    def _answers(control: ControlClient) -> bool:
        try:
            control.call("ping")
        except Unreachable:
            return False
        return True

    def _by_myself(self, command: str, args: dict[str, Any]) -> Any:
        from tradewind.cli import compose  # lazy door: the store is loaded only where there is no scheduler to ask
        from tradewind.scheduler.commands.handler import raise_error
        from tradewind.wire.messages import Command

        store, commands = compose.open_commands(self.settings)
        try:
            result, _ = commands.run(Command(os.urandom(16).hex(), command, args, who()))
            return raise_error(result)
        finally:
            store.close()


def who() -> str:
    """On whose behalf: the name that the audit log keeps."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
