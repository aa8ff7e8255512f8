"""Schedulers, worker hosts, results of commands, revoked logins."""

from __future__ import annotations

from tradewind.model.errors import Stale
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
