"""Deletion of old runs, and of the files that belong to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tradewind.model.rows import Removed, RetiredLog


class RetentionReader(Protocol):
    """Reads rows that are to be deleted."""

    def count_deletable_runs(self, ended_before: int, keep: int, dag_id: str) -> int:
        """Number of runs of a DAG that `delete_old_runs` would delete in all its steps."""

    def logs_to_delete(self, at_most: int) -> list[RetiredLog]:
        """Deleted runs whose logs may still exist, the earliest deletion first. Written with the deletion of the run."""

    def used_spills(self, names: list[str]) -> set[str]:
        """The names among these spill files that an XCom refers to."""


class RetentionStore(Protocol):
    """Deletes old runs."""

    def delete_old_runs(
        self, ended_before: int, keep_per_dag: int, at: int, at_most: int = 20, dag_id: str | None = None
    ) -> Removed:
        """Delete up to `at_most` finished runs that ended before a moment, except the newest `keep_per_dag` of each DAG.

        The caller repeats until a step deletes fewer. The result also names the spill files that no other run refers to. The run
        with the highest number stays, so that no number is used twice.

        Args:
            dag_id: only runs of this DAG.
        """

    def delete_run(self, run: int, actor: str, at: int) -> Removed:
        """Delete one run that has ended. Its number is not used again. Raises NotFound: there is no such run that has ended."""

    def delete_log_entries(self, gone: Sequence[RetiredLog]) -> None:
        """Delete the entries of runs whose logs are deleted. An entry whose run was deleted again since then stays."""
