"""Schedulers, worker hosts and other services: epochs, jobs, answers to commands, the audit log, ended logins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tradewind.model.rows import JobRow, NewJob


class ServiceReader(Protocol):
    """Reads what services have written about themselves."""

    def epoch(self) -> int:
        """The epoch of the newest scheduler; 0 before the first one."""

    def jobs(self, at_most: int) -> list[JobRow]:
        """Jobs (one for each time that a service ran), the latest first."""

    def command_result(self, op: str) -> bytes | None:
        """The answer of a command that was executed already, by the command's id."""

    def token_revoked(self, jti: str) -> bool:
        """Whether a login token was revoked."""


class ServiceStore(Protocol):
    """Writes what services do."""

    def write_audit(
        self, event: str, actor: str, at: int, *, dag_id: str | None = None, run_id: str | None = None, detail: object = None
    ) -> None:
        """Write an entry into the audit log. Methods that take an actor do so themselves."""

    def begin_epoch(self, hostname: str, pid: int, boot: str, at: int, epoch: int | None = None) -> int:
        """A scheduler starts: its epoch, higher than every earlier one. Writes under earlier epochs fail from now on.

        Args:
            epoch: the one that its lease has; None: the next one.

        Raises:
            Stale: the epoch of the lease is not the newest.
        """

    def record_worker_host(self, name: str, hostname: str, pid: int, slots: int, at: int) -> None:
        """A worker host has connected. It replaces what is known of this name and of this machine."""

    def begin_job(self, new: NewJob, at: int) -> None:
        """A service starts. If its job is known, it runs again, also if it was taken for lost."""

    def write_heartbeats(self, service_ids: Sequence[str], at: int) -> None:
        """Write the heartbeat of these jobs. A job that has ended stays ended."""

    def end_job(self, service_id: str, ok: bool, at: int, reason: str | None = None) -> bool:
        """A service ended, in order or not; False: its job was not running."""

    def end_lost_jobs(self, silent_since: int, at: int, reason: str, job_type: str | None = None) -> list[str]:
        """End the running jobs (of a type) with an older heartbeat as failed, at that heartbeat; which they were."""

    def save_command_result(self, op: str, answer: bytes, at: int) -> None:
        """Keep the answer of a command, for a day: the same command is not executed twice."""

    def revoke_token(self, jti: str, expires_at: int, at: int) -> bool:
        """Revoke a login token, until it would have expired; False: it was revoked already. Deletes expired entries."""
