"""Changes of runs and task instances by people: clear, mark, notes, and the feed that tells the scheduler about them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from tradewind.model.rows import FeedEntry, Marked, RunRow
from tradewind.model.states import RunState, TaskState


class EditReader(Protocol):
    """Reads the rows that an edit would change."""

    def clearable(
        self, run: RunRow, task_ids: Collection[str], *, only_failed: bool = False, only_running: bool = False
    ) -> list[tuple[int, str, int, TaskState]]:
        """The task instances that a clear would reset: (slot, task id, map index, state). Both options: failed or running."""

    def task_instances_of(self, run: RunRow, task_ids: Collection[str] | None) -> list[tuple[int, str, int, TaskState]]:
        """The task instances of these tasks, None: of all tasks, also of those that the DAG has no more.

        Returns:
            (slot, task id, map index, state), ordered by slot.
        """

    def feed(self, run: int, after: int = 0) -> list[FeedEntry]:
        """Entries of a run's feed with a number above `after`, in order."""


class EditStore(Protocol):
    """Writes changes by people. Each edit increases the run's revision, so that the scheduler loads the run again."""

    def clear(
        self,
        run_id: int,
        slots: Collection[int],
        actor: str,
        at: int,
        reason: str = "",
        *,
        reset_run: bool = True,
        to_latest: bool = False,
    ) -> RunRow:
        """Reset task instances; a run that has ended is queued again, except without `reset_run`.

        With `to_latest`, a run that keeps a version of its bundle keeps it no longer: it follows the newest version of its DAG,
        which the scheduler assigns to it with its next step. A run of a DAG that is not active keeps its version.

        A task instance with a live attempt becomes `restarting`: the attempt is stopped before the task may start again. Each task
        instance gets its retries again. A pool that a person chose for a task instance counts until the live attempt ends.

        Raises:
            NotFound: there is no such run.
            Changed: somebody else changed the rows at the same time; nothing was written.
        """

    def mark(
        self,
        run_id: int,
        slots: Collection[int],
        state: TaskState,
        actor: str,
        at: int,
        reason: str = "",
        *,
        executors: Mapping[int, str] = {},
    ) -> Marked:
        """Set task instances to a finished state, under new fences. The caller stops the attempts that were live.

        Args:
            executors: slot → name of its executor, recorded with attempts that are stopped before their start.

        Task instances that already have the state, and removed ones, do not change. The state of the run does not change either.

        Raises:
            NotFound: there is no such run.
            Changed: somebody else changed the rows at the same time; nothing was written.
        """

    def set_run_state(self, run_id: int, state: RunState, actor: str, at: int, reason: str = "") -> RunRow:
        """Set the state of a run; its task instances do not change.

        A run that is set to `running` continues with its unfinished task instances, and fails when they have ended.
        """

    def set_run_note(self, run_id: int, note: str | None, actor: str, at: int) -> RunRow:
        """Set the note of a run; None removes it. Raises NotFound."""

    def set_task_notes(self, run_id: int, slots: Collection[int], note: str | None, actor: str, at: int) -> None:
        """Set the note of task instances; None removes it. Raises NotFound."""

    def append_feed(self, run: int, kind: str, payload: bytes, actor: str, at: int) -> int:
        """Append an entry to a run's feed. Returns its number. Only the scheduler moves the cursor. Raises NotFound."""

    def consume_feed(self, run: int, upto: int) -> None:
        """Move the cursor of a run's feed forward. It never moves back."""
