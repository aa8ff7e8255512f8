"""Schedulers, worker hosts, results of commands, revoked logins."""

from __future__ import annotations

from collections.abc import Collection

from tradewind.model.errors import Stale
from tradewind.store.port.services import STALE_GATEWAYS
from tradewind.store.sql.jobs import JobOperations


class ServiceOperations(JobOperations):
    """See `store.port` for the descriptions of the methods."""

    def epoch(self) -> int:
        row = self.engine.row("SELECT coalesce(max(epoch), 0) FROM scheduler")
        return int(row[0]) if row is not None else 0

    def begin_epoch(self, hostname: str, pid: int, boot: str, at: int, epoch: int | None = None) -> int:
        with self.engine.transaction():
            row = self.engine.row("SELECT coalesce(max(epoch), 0) + 1 FROM scheduler")
            assert row is not None
            if epoch is not None:
                if epoch < row[0]:
                    raise Stale(f"scheduler epoch {epoch} was superseded by {row[0] - 1}; this scheduler has to exit")
                row = (epoch,)
            self.engine.run(
                "INSERT INTO scheduler (epoch, hostname, pid, boot, started_at) VALUES (?, ?, ?, ?, ?)",
                (row[0], hostname, pid, boot, at),
            )
            self.engine.run("DELETE FROM scheduler WHERE epoch < ?", (row[0] - 100,))
        return int(row[0])

    def record_worker_host(self, name: str, hostname: str, pid: int, slots: int, at: int) -> None:
        with self.engine.transaction():
            self.engine.run("DELETE FROM worker_host WHERE hostname = ? OR name = ?", (hostname, name))
            self.engine.run(
                "INSERT INTO worker_host (name, hostname, pid, slots, seen_at) VALUES (?, ?, ?, ?, ?)",
                (name, hostname, pid, slots, at),
            )

    def worker_gateways(self) -> dict[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        for worker, gateway in self.engine.rows("SELECT worker, gateway FROM worker_gateway"):
            found[worker] = found.get(worker, frozenset()) | {gateway}
        return found

    def record_worker_gateways(self, worker: str, gateways: Collection[str], at: int, epoch: int) -> None:
        with self.engine.transaction():
            self._check_epoch(epoch)
            self.engine.run("DELETE FROM worker_gateway WHERE worker = ? OR at < ?", (worker, at - STALE_GATEWAYS))
            self.engine.many(
                "INSERT INTO worker_gateway (worker, gateway, at) VALUES (?, ?, ?)",
                [(worker, gateway, at) for gateway in sorted(gateways)],
            )

    # --- commands --------------------------------------------------------------------------------------------------

    def command_result(self, op: str) -> bytes | None:
        row = self.engine.row("SELECT answer FROM op WHERE op = ?", (op,))
        return None if row is None else bytes(row[0])

    def save_command_result(self, op: str, answer: bytes, at: int) -> None:
        with self.engine.transaction():
            self.engine.run("INSERT INTO op (op, answer, at) VALUES (?, ?, ?) ON CONFLICT (op) DO NOTHING", (op, answer, at))

    # --- logins ----------------------------------------------------------------------------------------------------

    def revoke_token(self, jti: str, expires_at: int, at: int) -> bool:
        with self.engine.transaction():
            self._forget_expired_tokens(at)
            return bool(
                self.engine.run(
                    "INSERT INTO revoked_token (jti, expires_at) VALUES (?, ?) ON CONFLICT (jti) DO NOTHING", (jti, expires_at)
                )
            )

    def token_revoked(self, jti: str) -> bool:
        return self.engine.row("SELECT 1 FROM revoked_token WHERE jti = ?", (jti,)) is not None

    def _forget_expired_tokens(self, at: int) -> None:
        self.engine.run("DELETE FROM revoked_token WHERE expires_at <= ?", (at,))
