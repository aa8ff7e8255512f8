"""Guard: only the newest scheduler writes."""

from __future__ import annotations

from tradewind.model.errors import Stale
from tradewind.store.port import RowReader


def must_be_newest(store: RowReader, epoch: int) -> None:
    """Check, at the beginning of a transaction, that no newer scheduler has started. Batches carry their epoch instead.

    Args:
        epoch: epoch of the scheduler that writes; 0: do not check.

    Raises:
        Stale: a newer scheduler has started.
    """
    newest = store.epoch()
    if epoch and newest > epoch:
        raise Stale(f"scheduler epoch {epoch} was superseded by {newest}; nothing was written")
