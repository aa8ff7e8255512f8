"""A client like the command line: sends commands over a connection, and repeats them until they are answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tradewind.model.moments import SECOND
from tradewind.simulation.network import End
from tradewind.simulation.timeline import Process
from tradewind.wire.commands import IncomingCommand, build, request_for
from tradewind.wire.messages import ClientHello, CommandResult, decode_from_scheduler, encode

if TYPE_CHECKING:
    from tradewind.simulation.world import World

PATIENCE = 10 * SECOND


class UserClient(Process):
    """Keeps every command until it is answered. `asked` contains the unanswered commands."""

    def __init__(self, world: World, name: str) -> None:
        super().__init__(world.timeline, name, world.clock)
        self.world = world
        self.end: End | None = None
        self.asked: dict[str, tuple[IncomingCommand, Callable[[CommandResult], None] | None]] = {}
        self._count = 0

    def send(self, command: str, then: Callable[[CommandResult], None] | None = None, **args: Any) -> None:
        self._count += 1
        op = f"{self.name}/{self._count}"
        given = {key: value for key, value in args.items() if value is not None}
        self.asked[op] = (IncomingCommand(op, build(command, given), self.name), then)
        self._connect()
        self._send(op)

    def _send(self, op: str) -> None:
        """Send a command now, and again until there is an answer."""
        if op not in self.asked:
            return
        self._connect()
        if self.end is not None:
            self.end.send(encode(request_for(*self.asked[op][0])))
        self.timeline.after(PATIENCE, self, lambda: self._send(op))

    def _connect(self) -> None:
        if self.end is not None and not self.end.closed:
            return
        self.end = self.world.connect_to_scheduler(self)
        if self.end is not None:
            self.end.listen(self._on_document, lambda: None)
            self.end.send(encode(ClientHello(self.name, 0)))

    def _on_document(self, document: bytes) -> None:
        message = decode_from_scheduler(document)
        if not isinstance(message, CommandResult):
            return
        waiting = self.asked.get(message.op)
        if waiting is None:
            return
        _, then = waiting
        if message.error in ("StoreError", "StoreBusy", "StoreFull", "Stale"):
            return  # the command is sent again
        del self.asked[message.op]
        if then is not None:
            then(message)
