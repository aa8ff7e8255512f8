"""Jobs: one row for each process of a service, with its last heartbeat and its end."""

from __future__ import annotations

from collections.abc import Sequence

from tradewind.model.rows import JobRow, NewJob
from tradewind.store.sql.outbox import OutboxOperations

KEPT_JOBS = 1000
"""Number of newest jobs that are kept."""

_JOB = "id, life, job_type, state, hostname, unixname, pid, executor_class, started_at, heartbeat_at, ended_at, reason"


class JobOperations(OutboxOperations):
    """See `store.port` for the descriptions of the methods."""

    def begin_job(self, new: NewJob, at: int) -> None:
        with self.engine.transaction():
            known = self.engine.row("SELECT state FROM job WHERE life = ?", (new.service_id,))
            if known is not None:
                self.engine.run(
                    "UPDATE job SET state = 'running', heartbeat_at = ?, ended_at = NULL, reason = NULL WHERE life = ?",
                    (at, new.service_id),
                )
                return
            number = self.engine.insert(
                """INSERT INTO job (life, job_type, state, hostname, unixname, pid, executor_class, started_at, heartbeat_at)
                   VALUES (?, ?, 'running', ?, ?, ?, ?, ?, ?)""",
                (*new, at, at),
            )
            self.engine.run("DELETE FROM job WHERE id <= ? AND state <> 'running'", (number - KEPT_JOBS,))
            self._audit("service started", new.unixname, at, detail=about(new))

    def write_heartbeats(self, service_ids: Sequence[str], at: int) -> None:
        with self.engine.transaction():
            self.engine.many(
                "UPDATE job SET heartbeat_at = ? WHERE life = ? AND state = 'running'", [(at, one) for one in service_ids]
            )

    def end_job(self, service_id: str, ok: bool, at: int, reason: str | None = None) -> bool:
        with self.engine.transaction():
            found = self.engine.row(f"SELECT {_JOB} FROM job WHERE life = ? AND state = 'running'", (service_id,))
            if found is None:
                return False
            self._end_job(JobRow(*found), ok, at, reason)
        return True

    def end_lost_jobs(self, silent_since: int, at: int, reason: str, job_type: str | None = None) -> list[str]:
        with self.engine.transaction():
            rows = self.engine.rows(
                f"""SELECT {_JOB} FROM job WHERE state = 'running' AND heartbeat_at < ? AND coalesce(?, job_type) = job_type
                    ORDER BY id""",
                (silent_since, job_type),
            )
            lost = [JobRow(*row) for row in rows]
            for job in lost:
                self._end_job(job, False, job.heartbeat_at, reason, noticed_at=at)
        return [job.service_id for job in lost]

    def jobs(self, at_most: int) -> list[JobRow]:
        rows = self.engine.rows(f"SELECT {_JOB} FROM job ORDER BY id DESC LIMIT ?", (at_most,))
        return [JobRow(*row) for row in rows]

    def _end_job(self, job: JobRow, ok: bool, ended: int, reason: str | None, noticed_at: int | None = None) -> None:
        state = "success" if ok else "failed"
        changed = self.engine.run(
            "UPDATE job SET state = ?, ended_at = ?, reason = ? WHERE id = ? AND state = 'running'",
            (state, ended, reason, job.id),
        )
        if changed:
            detail = {**about(job), "state": state, "reason": reason}
            self._audit("service ended", job.unixname, ended if noticed_at is None else noticed_at, detail=detail)


def about(job: NewJob | JobRow) -> dict[str, object]:
    """Return the entry about a service for the audit log."""
    return {"job_type": job.job_type, "hostname": job.hostname, "pid": job.pid}
