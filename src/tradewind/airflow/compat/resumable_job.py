"""`airflow.sdk.ResumableJobMixin`: operators that find the remote job of an earlier try again, instead of submitting it twice."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import Any

__all__ = ["ResumableJobMixin"]


class ResumableJobMixin(ABC):
    """For an operator that submits one job and waits for it.

    The id of the job is stored in `task_state_store` of the context, if there is one. A retry first reads the status of this job.

    Args:
        durable: store the id.
    """

    external_id_key: str = "remote_job_id"
    log: logging.Logger

    def __init__(self, *, durable: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.durable = durable

    def execute_resumable(self, context: Any) -> Any:
        """Submit the job or find it again, wait for its end, and return its result."""
        store = context.get("task_state_store") if self.durable else None
        known = store.get(self.external_id_key) if store is not None else None
        if known:
            status = self.get_job_status(known, context)
            if self.is_job_active(status):
                self.log.info("Reconnecting to existing job %s (%s)", known, status)
                return self.poll_until_complete(known, context)
            if self.is_job_succeeded(status):
                self.log.info("Job %s already completed successfully, skipping resubmission", known)
                return self.get_job_result(known, context)
            self.log.warning("Prior job %s in terminal state %s, resubmitting fresh", known, status)
        external_id = self.submit_job(context)
        if store is not None and external_id is not None:
            store.set(self.external_id_key, external_id)
        self.poll_until_complete(external_id, context)
        return self.get_job_result(external_id, context)

    @abstractmethod
    def submit_job(self, context: Any) -> Any:
        """Submit the job and return its id."""

    @abstractmethod
    def get_job_status(self, external_id: Any, context: Any) -> str:
        """The job's status, in the words of the remote system."""

    @abstractmethod
    def is_job_active(self, status: str) -> bool:
        """Whether the job is still running."""

    @abstractmethod
    def is_job_succeeded(self, status: str) -> bool:
        """Whether the job has succeeded."""

    @abstractmethod
    def poll_until_complete(self, external_id: Any, context: Any) -> Any:
        """Wait for the job's end.

        Raises:
            AirflowException: the job failed.
        """

    @abstractmethod
    def get_job_result(self, external_id: Any, context: Any) -> Any:
        """The result of the task."""
