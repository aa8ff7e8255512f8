"""The jobs of the in-memory store; see `store.sql.jobs`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tradewind.model.rows import JobRow, NewJob
from tradewind.store.sql.jobs import KEPT_JOBS, about


class MemoryJobs:
    """Mixed into `MemoryStore`, which has the table, the transaction and the audit log."""

    _jobs: Any
    transaction: Any
    _next: Any
    _note: Any

    def begin_job(self, new: NewJob, at: int) -> None:
        with self.transaction():
            known = self._jobs.get(new.life)
            if known is not None:
                self._jobs[new.life] = known._replace(state="running", heartbeat_at=at, ended_at=None, reason=None)
                return
            number = self._next("job")
            self._jobs[new.life] = JobRow(
                number,
                new.life,
                new.job_type,
                "running",
                new.hostname,
                new.unixname,
                new.pid,
                new.executor_class,
                at,
                at,
                None,
                None,
            )
            for old in [job for job in self._jobs.values() if job.id <= number - KEPT_JOBS and job.state != "running"]:
                del self._jobs[old.life]
            self._note("service started", new.unixname, at, detail=about(new))

    def beat_jobs(self, lives: Sequence[str], at: int) -> None:
        with self.transaction():
            for life in lives:
                job = self._jobs.get(life)
                if job is not None and job.state == "running":
                    self._jobs[life] = job._replace(heartbeat_at=at)

    def end_job(self, life: str, ok: bool, at: int, reason: str | None = None) -> bool:
        with self.transaction():
            job = self._jobs.get(life)
            if job is None or job.state != "running":
                return False
            self._end_job(job, ok, at, reason, at)
        return True

    def end_lost_jobs(self, silent_since: int, at: int, reason: str, job_type: str | None = None) -> list[str]:
        with self.transaction():
            lost = [
                job
                for job in sorted(self._jobs.values(), key=lambda one: one.id)
                if job.state == "running" and job.heartbeat_at < silent_since and job_type in (None, job.job_type)
            ]
            for job in lost:
                self._end_job(job, False, job.heartbeat_at, reason, at)
        return [job.life for job in lost]

    def jobs(self, at_most: int) -> list[JobRow]:
        return sorted(self._jobs.values(), key=lambda one: -one.id)[:at_most]

    def _end_job(self, job: JobRow, ok: bool, ended: int, reason: str | None, noticed_at: int) -> None:
        state = "success" if ok else "failed"
        self._jobs[job.life] = job._replace(state=state, ended_at=ended, reason=reason)
        self._note("service ended", job.unixname, noticed_at, detail={**about(job), "state": state, "reason": reason})
