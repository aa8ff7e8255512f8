"""Import of runs that another orchestrator has executed, and of the positions of its schedules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tradewind.model.rows import NewAssetEvent, RunImport


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

    def import_asset_event(
        self, event: NewAssetEvent, waits: Sequence[tuple[str, str]], consumed: Sequence[tuple[str, str]]
    ) -> bool:
        """Create an event that another orchestrator has recorded. False: it exists (by its `origin`).

        Args:
            waits: (DAG id, partition key or an empty text) of the DAGs for which it waits. DAGs that do not exist, or whose
                schedule does not name the asset, are left out.
            consumed: (DAG id, run id) of the runs that have consumed it. Runs that do not exist are left out.
        """

    def advance_schedule(self, dag_id: str, last: tuple[int | None, int | None, int | None, int]) -> bool:
        """Move the position of a schedule forward. False: it already has this position or a later one.

        Args:
            last: logical date, start and end of the data interval, and start of the latest run that was created elsewhere. The
                first three are None for a schedule with partitions.

        Raises:
            NotFound: there is no such DAG.
        """
