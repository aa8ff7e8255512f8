"""Waits that follow from a task's definition: then no attempt is needed to find out what to wait for, and none is made.

Each run makes its own wait of the plan (`scheduler.planned_waits`).
"""

from __future__ import annotations

from typing import Literal

import msgspec


class MomentPlan(msgspec.Struct, frozen=True, omit_defaults=True, tag="moment"):
    """Until a moment.

    `counted_from` says what `micros` are: `epoch`, the moment itself; `interval_end`, a span after the end of the run's data
    interval (after `run_after`, in a run without one); `start`, a span after the beginning of the try; `midnight`, a time of the
    day on which the try begins, on the clock of `timezone` (empty: the DAG's).
    """

    counted_from: Literal["epoch", "interval_end", "start", "midnight"]
    micros: int
    timezone: str = ""


class TasksPlan(msgspec.Struct, frozen=True, omit_defaults=True, tag="tasks"):
    """Until tasks, a task group or the run of another DAG are in given states, `earlier` than the run's logical date."""

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
    """What a task waits for in the place of an attempt. When the wait is over, so is the task."""

    until: MomentPlan | TasksPlan
    timeout: int
    """Microseconds after the beginning of the try."""
    soft_fail: bool = False
    """Skipped instead of failed when it takes too long."""

    @property
    def needs_a_date(self) -> bool:
        """In a run without a logical date it means nothing; then an attempt says so."""
        return isinstance(self.until, TasksPlan)
