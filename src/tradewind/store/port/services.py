"""Schedulers, worker hosts and other services: epochs, jobs, results of commands, the audit log, ended logins."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from tradewind.model.moments import DAY
from tradewind.model.rows import JobRow, NewJob

STALE_GATEWAYS = 90 * DAY
"""Age after which the gateways of a worker are forgotten, microseconds. A scheduler that does not know them waits longer."""


class ServiceReader(Protocol):
    """Reads rows that services have written."""

    def epoch(self) -> int:
        """The epoch of the newest scheduler; 0 before the first one."""

    def jobs(self, at_most: int) -> list[JobRow]:
        """Jobs (one for each process of a service), the latest first."""

    def worker_gateways(self) -> dict[str, frozenset[str]]:
        """Worker on another machine → the gateways that `record_worker_gateways` has stored for it."""

    def command_result(self, op: str) -> bytes | None:
        """The result of a command that was already executed, by the command's id."""

    def token_revoked(self, jti: str) -> bool:
        """Whether a login token was revoked."""


class ServiceStore(Protocol):
    """Writes rows of services."""

    def write_audit(
        self, event: str, actor: str, at: int, *, dag_id: str | None = None, run_id: str | None = None, detail: object = None
    ) -> None:
        """Write an entry into the audit log. Methods with an `actor` do this themselves."""

    def begin_epoch(self, hostname: str, pid: int, boot: str, at: int, epoch: int | None = None) -> int:
        """Start a new epoch for a scheduler, and return it. Writes under earlier epochs fail from now on.

        Args:
            epoch: the epoch of its lease; None: the next one.

        Raises:
            Stale: the epoch of the lease is not the newest.
        """

    def record_worker_host(self, name: str, hostname: str, pid: int, slots: int, at: int) -> None:
        """Record a worker host that has connected. It replaces earlier rows with this name and this machine."""

    def record_worker_gateways(self, worker: str, gateways: Collection[str], at: int, epoch: int) -> None:
        """Store at which gateways a worker on another machine may believe to be registered. Replaces what was stored for it, and
        forgets workers whose rows are older than `STALE_GATEWAYS`.

        Raises:
            Stale: the epoch is not the newest.
        """

    def begin_job(self, new: NewJob, at: int) -> None:
        """Record that a service starts. If its job exists, it runs again, even if it had been ended as lost."""

    def write_heartbeats(self, service_ids: Sequence[str], at: int) -> None:
        """Write the heartbeat of these jobs. A job that has ended stays ended."""

    def end_job(self, service_id: str, ok: bool, at: int, reason: str | None = None) -> bool:
        """Record that a service ended, normally or not; False: its job was not running."""

    def end_lost_jobs(self, silent_since: int, at: int, reason: str, job_type: str | None = None) -> list[str]:
        """End the running jobs (of a type) with an older heartbeat as failed, at the time of the heartbeat. Returns their ids."""

    def save_command_result(self, op: str, answer: bytes, at: int) -> None:
        """Store the result of a command for a day, so that the same command is not executed twice."""

    def revoke_token(self, jti: str, expires_at: int, at: int) -> bool:
        """Revoke a login token until its expiry; False: it was already revoked. Deletes expired entries."""
