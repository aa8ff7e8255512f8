"""Branching by time of day or date."""

from __future__ import annotations

import datetime
from typing import Any

from tradewind.model.errors import DefinitionError
from tradewind.operators.branch import BaseBranchOperator, Choice
from tradewind.sdk import open_dags

__all__ = ["BranchDateTimeOperator", "target_times_as_dates"]

Target = datetime.datetime | datetime.time | None


class BranchDateTimeOperator(BaseBranchOperator):
    """Chooses one of two branches: is the current time between two times?

    Args:
        follow_task_ids_if_true, follow_task_ids_if_false: ids of direct downstream tasks or task groups.
        target_lower, target_upper: the bounds, both included. A `datetime.time` is a time on the current day, `None` means no
            bound. A value without a time zone is in the DAG's time zone. If the upper time is before the lower time, it is a time
            on the next day.
        use_task_logical_date: compare the logical date of the run (or `run_after`, if it has none) instead of the current time.
        use_task_execution_date: Airflow 2's name of `use_task_logical_date`.
    """

    def __init__(
        self,
        *,
        follow_task_ids_if_true: Choice,
        follow_task_ids_if_false: Choice,
        target_lower: Target,
        target_upper: Target,
        use_task_logical_date: bool = False,
        use_task_execution_date: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if target_lower is None and target_upper is None:
            raise DefinitionError(
                f"{self._name_in_errors()}: target_lower and target_upper are both None; at least one of them is needed"
            )
        for name, target in (("target_lower", target_lower), ("target_upper", target_upper)):
            if target is not None and not isinstance(target, datetime.datetime | datetime.time):
                raise DefinitionError(f"{self._name_in_errors()}: {name} is {target!r}; it must be a datetime or a time")
        if use_task_execution_date:
            open_dags.warn_author(
                f"{self._name_in_errors()}: use_task_execution_date was renamed to use_task_logical_date in Airflow 3",
                DeprecationWarning,
            )
        self.target_lower = target_lower
        self.target_upper = target_upper
        self.follow_task_ids_if_true = follow_task_ids_if_true
        self.follow_task_ids_if_false = follow_task_ids_if_false
        self.use_task_logical_date = use_task_logical_date or use_task_execution_date

    def choose_branch(self, context: Any) -> Choice:
        now = self._compared_time(context)
        lower, upper = target_times_as_dates(now, self.target_lower, self.target_upper)
        inside = (lower is None or lower <= now) and (upper is None or now <= upper)
        self.log.info("%s is %s the range from %s to %s", now, "in" if inside else "outside", lower or "any", upper or "any")
        return self.follow_task_ids_if_true if inside else self.follow_task_ids_if_false

    def _compared_time(self, context: Any) -> datetime.datetime:
        """The current time or the date of the run, in the DAG's time zone, which also applies to bounds without a time zone."""
        zone = self.dag.zone_in_use
        if not self.use_task_logical_date:
            return datetime.datetime.now(zone)
        run = context["dag_run"]
        found = run.logical_date or run.run_after
        return datetime.datetime.fromisoformat(found.isoformat()).astimezone(zone)


def target_times_as_dates(
    base_date: datetime.datetime, lower: Target, upper: Target
) -> tuple[datetime.datetime | None, datetime.datetime | None]:
    """Both bounds as datetimes. `base_date` gives the day of a time of day, and the zone of a value without a time zone."""
    dates = [_at(base_date, target) for target in (lower, upper)]
    both_dates = isinstance(lower, datetime.datetime) and isinstance(upper, datetime.datetime)
    if dates[0] is not None and dates[1] is not None and dates[1] < dates[0] and not both_dates:
        dates[1] += datetime.timedelta(days=1)
    return dates[0], dates[1]


def _at(base_date: datetime.datetime, target: Target) -> datetime.datetime | None:
    if target is None:
        return None
    if not isinstance(target, datetime.datetime):
        target = datetime.datetime.combine(base_date.date(), target)
    return target if target.tzinfo is not None else target.replace(tzinfo=base_date.tzinfo)
