"""Commands by name and plain values, for tests that have many of them."""

from __future__ import annotations

from typing import Any

import msgspec

from tradewind.client.control import ControlClient
from tradewind.wire.commands import Command, IncomingCommand, PingResult, build, result_of
from tradewind.wire.messages import CommandRequest, CommandResult


def incoming(op: str, name: str, args: dict[str, Any], actor: str = "ann") -> IncomingCommand:
    """A command as the scheduler receives it. Arguments that are None are left out. Raises WrongArgument."""
    given = {key: value for key, value in args.items() if value is not None}
    return IncomingCommand(op, build(name, given), actor)


def request(op: str, name: str, args: dict[str, Any], actor: str = "ann") -> CommandRequest:
    """A command as it is sent, with any arguments."""
    return CommandRequest(op, msgspec.Raw(msgspec.msgpack.encode({"command": name, **args})), actor)


def plain(answer: CommandResult, command: Command[Any]) -> Any:
    """The result as plain values. Raises its error."""
    return msgspec.to_builtins(result_of(answer, command))


def as_dict(answer: msgspec.Struct) -> dict[str, Any]:
    """The answer of a question as dicts and lists, as `tradewind why -o json` prints it."""
    found: dict[str, Any] = msgspec.to_builtins(answer)
    return found


def arguments(command: Command[Any]) -> dict[str, Any]:
    """The arguments that are not at their defaults."""
    found: dict[str, Any] = msgspec.to_builtins(command)
    del found["command"]
    return found


def answer_with(op: str, value: Any = None, error: str | None = None, message: str | None = None) -> CommandResult:
    """An answer with plain values as its result."""
    return CommandResult(op, msgspec.Raw(msgspec.msgpack.encode(value)), error, message)


WORKER = {
    "worker": "w1",
    "host": "w1.a",
    "hostname": "box",
    "pid": 7,
    "queues": [],
    "slots": 4,
    "attempts": 0,
    "draining": False,
}
"""An idle, connected worker host."""


def ping_result(**given: Any) -> PingResult:
    """The state of an idle scheduler; `given` changes some fields."""
    usual = {"epoch": 1, "pid": 1, "now": 7, "executor": "local", "trouble": None, "log_trouble": ""}
    rest: dict[str, Any] = {name: [] if name == "workers" else 0 for name in PingResult.__struct_fields__ if name not in usual}
    return msgspec.convert({**rest, **usual, **given}, PingResult)


class PlainClient(ControlClient):
    """Sends commands by name and plain values, and returns plain results. Arguments that are None are left out."""

    def call(  # type: ignore[override]
        self, command: str, /, *, actor: str | None = None, timeout: float | None = None, **args: Any
    ) -> Any:
        typed = build(command, {key: value for key, value in args.items() if value is not None})
        return msgspec.to_builtins(super().call(typed, actor=actor, timeout=timeout))
