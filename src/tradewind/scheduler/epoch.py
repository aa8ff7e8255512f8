"""Only the newest scheduler writes."""

from __future__ import annotations

from tradewind.model.errors import Stale
from tradewind.store.port import Store


def must_be_newest(store: Store, epoch: int) -> None:
    """First in a transaction of a scheduler's own; batches carry their epoch, and the store looks itself.

    Args:
        epoch: of the scheduler that writes; 0: not asked.

    Raises:
        Stale: a newer one has begun.
    """
    newest = store.epoch()
    if epoch and newest > epoch:
        raise Stale(f"scheduler epoch {epoch} was superseded by {newest}; nothing was written")
