"""The outbox: calls that a commit requires (callbacks, mails), and deadlines. Rows stay until the call is acknowledged."""

from __future__ import annotations

from typing import Protocol

from tradewind.model.rows import DeadlineMiss, OutboxItem


class OutboxReader(Protocol):
    """Reads the outbox and missed deadlines."""

    def due_outbox_items(
        self, at: int, at_most: int = 100, *, only: str | None = None, without: str | None = None
    ) -> list[OutboxItem]:
        """Due items without parked ones, the longest due first.

        Args:
            only, without: only items of this kind; only items of other kinds. The store itself writes the items of the kind
                `DEADLINE`, when a run is created or cleared; a clear replaces the items of the run.
        """

    def next_outbox_due(self, after: int) -> int | None:
        """The time when the first item after a moment becomes due; None: there is no such item."""

    def outbox_items(self, *, parked: bool | None = None, run: int | None = None, at_most: int = 1000) -> list[OutboxItem]:
        """Items in the order of their creation, without deadlines.

        Args:
            parked: True: only parked ones; False: only others.
            run: only items of this run.
        """

    def outbox_item(self, item: int) -> OutboxItem | None:
        """The item with this number."""

    def deadline_misses(self, dag_id: str | None = None, run: int | None = None, at_most: int = 1000) -> list[DeadlineMiss]:
        """Missed deadlines, the latest first. They are deleted with their run."""


class OutboxStore(Protocol):
    """Writes the outbox and missed deadlines."""

    def add_outbox_item(
        self, kind: str, identity: str, payload: bytes, at: int, due: int | None = None, run: int | None = None, slot: int = -1
    ) -> None:
        """Add an item, if there is none with this identity. `RunWrite.posts` are added together with the changes of their run."""

    def delete_outbox_item(self, item: int) -> None:
        """Delete an item that is done. Without effect if it is gone."""

    def postpone_outbox_item(self, item: int, due: int, parked: str | None = None, problem: str | None = None) -> None:
        """Record that a try failed: the next try is at `due`; or park the item with a reason until `retry_outbox_item`."""

    def settle_outbox_items(self, kind: str, beginning: str, due: int | None) -> int:
        """Delete all items of a kind whose identity begins with a text; with `due`, make them due then instead. How many."""

    def retry_outbox_item(self, item: int, due: int) -> None:
        """Let an item start its tries again. No effect if the item does not exist any more."""

    def record_deadline_miss(self, miss: DeadlineMiss) -> bool:
        """Record that a deadline was missed; False: it is already recorded."""
