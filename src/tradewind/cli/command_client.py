"""The client with which commands change something: through the running scheduler, or directly if none runs.

A running scheduler is the only writer of the database. Without a scheduler the writer lock is free: the client acquires it,
executes the same command on the store, and releases the lock. The client waits in two cases: a scheduler that is starting or
stopping holds the lock but does not answer, and under a running `standalone` the scheduler will be restarted soon.
"""

from __future__ import annotations

import getpass
import os
import time
from typing import TypeVar

from tradewind.cli.locks import home_lock, writer_lock
from tradewind.client.control import ControlClient
from tradewind.model.errors import NotFound, StoreBusy, Unreachable
from tradewind.settings import Settings
from tradewind.wire.commands import Command, Ping, receive, request_for, result_of

R = TypeVar("R")

WRITER_TIMEOUT_SECONDS = 30.0
"""How long a command waits for another writer, or for a scheduler that is starting, before it fails."""
_LOOK_AGAIN_SECONDS = 0.05


class CommandClient:
    """Executes commands. After a call, `offline` says that no scheduler was running."""

    def __init__(self, settings: Settings, timeout_seconds: float = WRITER_TIMEOUT_SECONDS) -> None:
        self.settings = settings
        self.offline = False
        self._timeout_seconds = timeout_seconds

    def call(self, command: Command[R], /) -> R:
        """Execute one command and return its committed result.

        Raises:
            NotFound, Conflict, …: the command is refused.
            StoreBusy: another process holds the writer lock and does not answer.
            Unreachable: the scheduler received the command and stopped before it answered; the command may have been executed.
        """
        deadline = time.monotonic() + self._timeout_seconds
        self.settings.paths.prepare()
        lock = writer_lock(self.settings)
        with ControlClient(self.settings.paths.scheduler_socket, "cli") as control:
            while True:
                if self._answers(control):
                    self.offline = False
                    try:
                        return control.call(command, actor=current_user())
                    except StoreBusy:  # nothing was written: another process has locked the database
                        if time.monotonic() > deadline:
                            raise
                if time.monotonic() > deadline or not self._supervised():
                    try:
                        lock.acquire()
                        break
                    except StoreBusy:
                        if time.monotonic() > deadline:
                            raise
                time.sleep(_LOOK_AGAIN_SECONDS)
        try:
            self.offline = True
            return self._call_offline(command)
        finally:
            lock.release()

    def scheduler_runs(self) -> bool:
        """Return whether a scheduler of this home folder answers."""
        with ControlClient(self.settings.paths.scheduler_socket, "cli") as control:
            return self._answers(control)

    def _supervised(self) -> bool:
        """Whether a `standalone` runs on this home folder, which will start a scheduler again."""
        lock = home_lock(self.settings)
        try:
            lock.acquire()
        except StoreBusy:
            return True
        lock.release()
        return False

    @staticmethod
    def _answers(control: ControlClient) -> bool:
        try:
            control.call(Ping())
        except Unreachable:
            return False
        return True

    def _call_offline(self, command: Command[R]) -> R:
        # lazy import: the store is needed only without a scheduler
        from tradewind.cli.compose.commands_without_scheduler import open_commands

        incoming = receive(request_for(os.urandom(16).hex(), command, current_user()))
        store, commands = open_commands(self.settings)
        try:
            answer, _ = commands.run(incoming)
            return result_of(answer, command)
        except NotFound as error:
            dag_id = getattr(command, "dag_id", None)
            if dag_id is not None and store.dag(dag_id) is None:
                raise NotFound(str(error), kind="DAG") from None  # the answer does not contain the kind
            raise
        finally:
            store.close()


def current_user() -> str:
    """The user's name, for the audit log."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
