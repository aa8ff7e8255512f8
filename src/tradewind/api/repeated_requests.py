"""The header `Idempotency-Key`: a client that got no answer may send its request again, and the request is executed once.

The scheduler executes each operation id once, and keeps the result for a day. The commands of a request with a key get
operation ids that are computed from the account, the path, the key and the command. So a repeated request with the same key
gets the result of the first request. A request with the same key and another body is another request.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, TypeVar

from fastapi import Depends, Header, Request

from tradewind.api.responses import Api, Caller
from tradewind.api.services import Control, Services
from tradewind.wire.commands import Command, request_for

R = TypeVar("R")

KEY_MAX = 200


class KeyedControl:
    """A connection to the scheduler that derives operation ids from a key."""

    def __init__(self, control: Control, key: str) -> None:
        self._control = control
        self._key = key

    def call(
        self, command: Command[R], /, *, actor: str | None = None, timeout: float | None = None, op: str | None = None
    ) -> R:
        if op is None:
            digest = hashlib.blake2b(self._key.encode("utf-8", "surrogatepass"), digest_size=16)
            digest.update(bytes(request_for("", command, "").body))
            op = digest.hexdigest()
        return self._control.call(command, actor=actor, timeout=timeout, op=op)

    def close(self) -> None: ...


async def _repeatable(
    request: Request,
    api: Api,
    caller: Caller,
    idempotency_key: Annotated[
        str | None,
        Header(
            min_length=1,
            max_length=KEY_MAX,
            description="Any text of your own. If the request is sent again with it within a day, nothing is created twice.",
        ),
    ] = None,
) -> Services:
    if idempotency_key is None:
        return api
    key = "\0".join((caller.name, request.method, request.url.path, idempotency_key))
    return api.with_control(lambda control: KeyedControl(control, key))


RepeatableApi = Annotated[Services, Depends(_repeatable)]
"""Used in place of `Api` by routes that create something new with each request."""
