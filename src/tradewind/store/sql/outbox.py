"""The outbox: calls that a commit requires outside of the database. A row stays until its call is done."""

from __future__ import annotations

from tradewind.model.rows import DEADLINE, NewCallbackRequest, OutboxItem
from tradewind.store.sql.run_changes import OUTBOX_ITEM, outbox_parameters
from tradewind.store.sql.runs import RunOperations

_COLUMNS = "id, kind, identity, payload, tries, run, slot, created_at, due_at, parked, problem"


class OutboxOperations(RunOperations):
    """See `store.port` for the descriptions of the methods."""

    def add_outbox_item(
        self, kind: str, identity: str, payload: bytes, at: int, due: int | None = None, run: int | None = None, slot: int = -1
    ) -> None:
        with self.engine.transaction():
            item = NewCallbackRequest(kind, identity, payload, at, due, slot)
            self.engine.run(OUTBOX_ITEM, outbox_parameters(item, run))

    def due_outbox_items(
        self, at: int, at_most: int = 100, *, only: str | None = None, without: str | None = None
    ) -> list[OutboxItem]:
        kinds, parameters = "", list[object]()
        for sign, kind in (("=", only), ("<>", without)):
            if kind is not None:
                kinds += f" AND kind {sign} ?"
                parameters.append(kind)
        return [
            OutboxItem(*row)
            for row in self.engine.rows(
                f"SELECT {_COLUMNS} FROM outbox WHERE due_at <= ? AND parked IS NULL {kinds} ORDER BY due_at, id LIMIT ?",
                (at, *parameters, at_most),
            )
        ]

    def next_outbox_due(self, after: int) -> int | None:
        row = self.engine.row("SELECT min(due_at) FROM outbox WHERE due_at > ? AND parked IS NULL", (after,))
        return None if row is None else row[0]

    def outbox_items(self, *, parked: bool | None = None, run: int | None = None, at_most: int = 1000) -> list[OutboxItem]:
        wanted = {None: "", True: "AND parked IS NOT NULL", False: "AND parked IS NULL"}[parked]
        only, parameters = ("", ()) if run is None else ("AND run = ?", (run,))
        return [
            OutboxItem(*row)
            for row in self.engine.rows(
                f"SELECT {_COLUMNS} FROM outbox WHERE kind <> ? {wanted} {only} ORDER BY id LIMIT ?",
                (DEADLINE, *parameters, at_most),
            )
        ]

    def outbox_item(self, item: int) -> OutboxItem | None:
        row = self.engine.row(f"SELECT {_COLUMNS} FROM outbox WHERE id = ?", (item,))
        return None if row is None else OutboxItem(*row)

    def delete_outbox_item(self, item: int) -> None:
        with self.engine.transaction():
            self.engine.run("DELETE FROM outbox WHERE id = ?", (item,))

    def postpone_outbox_item(self, item: int, due: int, parked: str | None = None, problem: str | None = None) -> None:
        with self.engine.transaction():
            self.engine.run(
                "UPDATE outbox SET tries = tries + 1, due_at = ?, parked = ?, problem = ? WHERE id = ?",
                (due, parked, problem, item),
            )

    def settle_outbox_items(self, kind: str, beginning: str, due: int | None) -> int:
        where, parameters = "kind = ? AND identity >= ? AND identity < ?", (kind, beginning, f"{beginning}\U0010ffff")
        with self.engine.transaction():
            if due is None:
                return self.engine.run(f"DELETE FROM outbox WHERE {where}", parameters)
            return self.engine.run(
                f"UPDATE outbox SET due_at = CASE WHEN due_at < ? THEN due_at ELSE ? END WHERE {where}", (due, due, *parameters)
            )

    def retry_outbox_item(self, item: int, due: int) -> None:
        with self.engine.transaction():
            self.engine.run("UPDATE outbox SET tries = 0, due_at = ?, parked = NULL WHERE id = ?", (due, item))
