"""What a timetable is to a DAG author: `Timetable`, to be subclassed, and the values it takes and gives.

    class Workdays(Timetable):
        def infer_manual_data_interval(self, *, run_after): ...
        def next_dagrun_info(self, *, last_automated_data_interval, restriction): ...

The names are Airflow's. A subclass lives in a DAG file or in a plugin. It is never called by the scheduler: its questions are put
to it in a child process without credentials, with limits of time and memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from tradewind.model.errors import ScheduleError
from tradewind.model.moments import from_micros


class DataInterval(NamedTuple):
    """What a run is about: from `start` (included) to `end`. Both are aware."""

    start: datetime
    end: datetime

    @classmethod
    def exact(cls, at: datetime) -> DataInterval:
        """An interval without length."""
        return cls(at, at)


class TimeRestriction(NamedTuple):
    """Between which moments a DAG has scheduled runs, and whether missed ones are made up for."""

    earliest: datetime | None
    latest: datetime | None
    catchup: bool


class DagRunInfo(NamedTuple):
    """One run to come: it starts at `run_after`, for `data_interval`, whose start is its logical date."""

    run_after: datetime
    data_interval: DataInterval | None
    partition_date: datetime | None = None
    partition_key: str | None = None

    @classmethod
    def exact(cls, at: datetime) -> DagRunInfo:
        """A run at `at`, for no length of time."""
        return cls(run_after=at, data_interval=DataInterval.exact(at))

    @classmethod
    def interval(cls, start: datetime, end: datetime) -> DagRunInfo:
        """A run that starts at the end of its interval."""
        return cls(run_after=end, data_interval=DataInterval(start, end))

    @property
    def logical_date(self) -> datetime | None:
        return None if self.data_interval is None else self.data_interval.start


class Timetable:
    """Base of custom timetables.

    `next_dagrun_info` and `infer_manual_data_interval` have to be written. `serialize` gives everything that `deserialize` needs
    to make an equal timetable, as JSON values; a timetable without arguments needs neither. Moments that come in are pendulum's,
    in UTC.
    """

    periodic: bool = True
    """Does it fire again and again?"""
    can_be_scheduled: bool = True
    """False: only runs by hand."""
    active_runs_limit: int | None = None
    """At most so many runs at a time, whatever the DAG says."""
    run_ordering: Sequence[str] = ("data_interval_end", "logical_date")

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Timetable:
        """A timetable from what `serialize` gave."""
        return cls()

    def serialize(self) -> dict[str, Any]:
        """Its arguments, as JSON values."""
        return {}

    def validate(self) -> None:
        """Raise where the timetable cannot work."""

    @property
    def description(self) -> str:
        """A sentence for people. Subclasses may have a plain text instead."""
        return ""

    @property
    def summary(self) -> str:
        """A few words for a table."""
        return type(self).__name__

    def infer_manual_data_interval(self, *, run_after: datetime) -> DataInterval:
        """The data interval of a run triggered by hand."""
        raise NotImplementedError(f"{type(self).__name__} has no infer_manual_data_interval(self, *, run_after)")

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """The scheduled run after the one of that interval (None: there was none yet); None when there is no more."""
        raise NotImplementedError(
            f"{type(self).__name__} has no next_dagrun_info(self, *, last_automated_data_interval, restriction)"
        )

    def next_dagrun_info_v2(self, *, last_dagrun_info: DagRunInfo | None, restriction: TimeRestriction) -> DagRunInfo | None:
        """The same question, with the whole of the last run."""
        last = None if last_dagrun_info is None else last_dagrun_info.data_interval
        return self.next_dagrun_info(last_automated_data_interval=last, restriction=restriction)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.summary}>"


def author_moment(micros: int) -> Any:
    """A moment as timetables of authors know it: pendulum's, in UTC."""
    import pendulum  # lazy door: 80 ms that only users' timetables need

    return pendulum.instance(from_micros(micros))


def no_such_partition(info: DagRunInfo) -> None:
    """Raises ScheduleError for a run of a partition, which nothing here could carry out."""
    if info.partition_key is not None or info.partition_date is not None:
        raise ScheduleError("runs of partitions (partition_key, partition_date) are not built yet; give a data_interval")
