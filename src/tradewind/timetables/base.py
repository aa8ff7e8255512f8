"""`Timetable`, the base class of custom timetables, and the types of its arguments and results. The names are Airflow's.

    class Workdays(Timetable):
        def infer_manual_data_interval(self, *, run_after): ...
        def next_dagrun_info(self, *, last_automated_data_interval, restriction): ...

A subclass is in a DAG file or in a plugin. The scheduler never calls it: its methods run in a child process without credentials and
with limits on time and memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from tradewind.model.dag_run_type import DagRunType
from tradewind.model.moments import from_micros


class DataInterval(NamedTuple):
    """The data interval of a run: from `start` (included) to `end` (excluded). Both are timezone-aware."""

    start: datetime
    end: datetime

    @classmethod
    def exact(cls, at: datetime) -> DataInterval:
        """An interval of length zero."""
        return cls(at, at)


class TimeRestriction(NamedTuple):
    """The first and the last date of a DAG's scheduled runs, and whether missed runs are created."""

    earliest: datetime | None
    latest: datetime | None
    catchup: bool


class DagRunInfo(NamedTuple):
    """One future run: it starts at `run_after`; the start of its `data_interval` is its logical date."""

    run_after: datetime
    data_interval: DataInterval | None
    partition_date: datetime | None = None
    partition_key: str | None = None

    @classmethod
    def exact(cls, at: datetime) -> DagRunInfo:
        """A run at `at`, with a data interval of length zero."""
        return cls(run_after=at, data_interval=DataInterval.exact(at))

    @classmethod
    def interval(cls, start: datetime, end: datetime) -> DagRunInfo:
        """A run that starts at the end of its data interval."""
        return cls(run_after=end, data_interval=DataInterval(start, end))

    @property
    def logical_date(self) -> datetime | None:
        return None if self.data_interval is None else self.data_interval.start


class Timetable:
    """Base class of custom timetables.

    Subclasses must define `next_dagrun_info` and `infer_manual_data_interval`. A timetable with arguments must also define
    `serialize`, which returns them as JSON values, and `deserialize`, which makes an equal timetable from them. Dates in arguments
    are pendulum datetimes in UTC.
    """

    description: str = ""
    """A sentence for people."""
    periodic: bool = True
    """True if the timetable schedules more than one run."""
    can_be_scheduled: bool = True
    """False if the timetable never schedules a run, so that all runs are triggered."""
    active_runs_limit: int | None = None
    """Maximum number of running runs, also if the DAG allows more."""
    run_ordering: Sequence[str] = ("data_interval_end", "logical_date")
    partitioned: bool = False
    """True if the scheduled runs have partition keys."""
    partitioned_at_runtime: bool = False
    """True if a triggered run may have a partition key, and its tasks set the partition keys of their asset events."""

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Timetable:
        """Make a timetable from the result of `serialize`."""
        return cls()

    def serialize(self) -> dict[str, Any]:
        """The arguments of the timetable, as JSON values."""
        return {}

    def validate(self) -> None:
        """Raise an exception if the timetable cannot work."""

    @property
    def summary(self) -> str:
        """A few words for a table."""
        return type(self).__name__

    def infer_manual_data_interval(self, *, run_after: datetime) -> DataInterval:
        """The data interval of a run that is triggered manually."""
        raise NotImplementedError(f"{type(self).__name__} has no infer_manual_data_interval(self, *, run_after)")

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """The scheduled run after the run with this data interval (None: there was no run yet). None: there are no more runs."""
        raise NotImplementedError(
            f"{type(self).__name__} has no next_dagrun_info(self, *, last_automated_data_interval, restriction)"
        )

    def next_dagrun_info_v2(self, *, last_dagrun_info: DagRunInfo | None, restriction: TimeRestriction) -> DagRunInfo | None:
        """Like `next_dagrun_info`, with all information about the last run."""
        last = None if last_dagrun_info is None else last_dagrun_info.data_interval
        return self.next_dagrun_info(last_automated_data_interval=last, restriction=restriction)

    def iter_partition_dagrun_infos(self, *, earliest: datetime, latest: datetime) -> Iterable[DagRunInfo]:
        """The runs of a backfill whose partition date is between two moments (both included). Only if `partitioned` is true."""
        raise NotImplementedError(f"{type(self).__name__} has no iter_partition_dagrun_infos(self, *, earliest, latest)")

    def generate_run_id(
        self, *, run_type: DagRunType, run_after: datetime, data_interval: DataInterval | None, **extra: Any
    ) -> str:
        """The id of a new run. A subclass that defines it names the scheduled, manual and backfill runs of its DAG.

        Args:
            data_interval: None for a run without one, and for a manual run without a logical date.
            extra: `partition_key` of the run.
        """
        return run_type.generate_run_id(suffix=run_after.isoformat())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.summary}>"


def to_pendulum(micros: int) -> Any:
    """A date for methods of custom timetables: a pendulum datetime in UTC."""
    import pendulum  # lazy import: takes 80 ms, needed only for custom timetables

    return pendulum.instance(from_micros(micros))
