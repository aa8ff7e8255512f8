"""The result of a command that failed."""

from __future__ import annotations

import secrets

from tradewind.model.errors import InternalError, TradewindError
from tradewind.observe.log import Log
from tradewind.wire.messages import CommandResult

log = Log("commands")


def refusal(op: str, name: str, error: Exception) -> CommandResult:
    """Return the result with the error. Call it in the `except` block: a bug in Tradewind is logged here."""
    if isinstance(error, InternalError) or not isinstance(error, TradewindError):
        error = _as_internal_error(name, error)
    return CommandResult(op, error=type(error).__name__, message=str(error))


def _as_internal_error(name: str, error: Exception) -> InternalError:
    """Log the exception with its traceback under an id. The sentence names the id."""
    fault = secrets.token_hex(4)
    log.exception("a command failed by a bug in Tradewind; nothing of it was written", command=name, fault=fault)
    return InternalError(
        f"{name}: this is a bug in Tradewind, and nothing was changed ({type(error).__name__}: {error}). "
        f"The scheduler's log has the traceback under the id {fault}"
    )
