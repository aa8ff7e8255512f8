"""Waits that follow from a task's definition, so that no attempt is needed to find out what the task waits for.

Each run computes its own wait from the plan (`scheduler.waits.planned`).
"""

from __future__ import annotations

from typing import Literal

import msgspec


class MomentPlan(msgspec.Struct, frozen=True, omit_defaults=True, tag="moment"):
    """A wait for a moment.

    `counted_from` says what `micros` means: `epoch`, the moment itself; `interval_end`, a duration after the end of the run's data
    interval (after `run_after`, in a run without one); `start`, a duration after the start of the try; `midnight`, a time of the
    day on which the try begins, on the clock of `timezone` (empty: the DAG's).
    """

    counted_from: Literal["epoch", "interval_end", "start", "midnight"]
    micros: int
    timezone: str = ""


class TasksPlan(msgspec.Struct, frozen=True, omit_defaults=True, tag="tasks"):
    """A wait until tasks, a task group or the run of another DAG are in given states, `earlier` than the run's logical date."""

    dag_id: str
    earlier: int = 0
    """Microseconds."""
    task_ids: tuple[str, ...] = ()
    group: str | None = None
    allowed: tuple[str, ...] = ("success",)
    skipped: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    failing_skips: bool = False


class WaitPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """The wait that replaces a task's attempt. When the wait ends, the task ends, too."""

    until: MomentPlan | TasksPlan
    timeout: int
    """Timeout in microseconds after the beginning of the try."""
    soft_fail: bool = False
    """After the timeout the task is skipped instead of failed."""

    @property
    def needs_a_date(self) -> bool:
        """Whether the plan needs a logical date. In a run without one, the task gets an attempt, which fails for this reason."""
        return isinstance(self.until, TasksPlan)
