"""Import of runs that another orchestrator has executed, and of the positions of its schedules."""

from __future__ import annotations

from typing import Protocol

from tradewind.model.rows import RunImport


class ImportStore(Protocol):
    """Writes imported runs and positions. Existing rows are not changed."""

    def version_of_import(self, dag_id: str, definition: bytes, hash: str, at: int) -> int:
        """Return the number of the version of a DAG with this encoded definition. Create the version if it does not exist.

        The current version of the DAG does not change: only imported runs have this version.

        Raises:
            NotFound: there is no such DAG.
        """

    def import_run(self, run: RunImport) -> int | None:
        """Create a run with all its rows; its number. None: a run with its id or its logical date exists."""

    def advance_schedule(self, dag_id: str, last: tuple[int, int, int, int]) -> bool:
        """Move the position of a schedule forward. False: it already has this position or a later one.

        Args:
            last: logical date, start and end of the data interval, and start of the latest run that was created elsewhere.

        Raises:
            NotFound: there is no such DAG.
        """
