"""Older methods of `DAG` (Airflow 1 and 2) that the schedule or a request to the scheduler can answer: `following_schedule` …

Methods about runs ask the scheduler through the channel of the running task, so they work in tasks, callbacks and templates.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradewind import timetables
from tradewind.execution.run_queries import find_runs, get_last_dagrun, is_paused
from tradewind.execution.task_instance import DagRun, to_pendulum
from tradewind.model.definition import CustomSchedule, DeltaSchedule, Schedule
from tradewind.model.errors import NotYetSupported
from tradewind.model.moments import to_micros
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.generation import CURRENT
from tradewind.sdk.params import NOTSET
from tradewind.sdk.variables import request_value
from tradewind.wire.messages import ChangeRows, RowChange

if TYPE_CHECKING:
    from pendulum import DateTime

    from tradewind.sdk.dag import DAG

_FAR = to_micros(datetime(2200, 1, 1, tzinfo=UTC))
RUN_DATES_MAX = 100_000
"""Maximum number of dates that `get_run_dates` returns."""


class OlderDagMethods:
    """The older methods of a DAG, which its `__getattr__` finds here."""

    def __init__(self, dag: DAG) -> None:
        self._dag = dag

    # --- checks that tests of DAG files call ----------------------------------------------------------------------------

    def test_cycle(self) -> bool:
        """Check that the dependencies have no cycle. Returns False: there is none.

        Raises:
            CycleError: the message names the tasks of the cycle.
        """
        self._dag.topological_sort()
        return False

    def validate_schedule_and_params(self) -> None:
        """Check the complete DAG, as each reading of its file does.

        Raises:
            CycleError: the dependencies contain a cycle.
            DefinitionError: the message names what is not valid.
        """
        self._dag.validate()

    def get_doc_md(self, doc_md: str | None) -> str | None:
        """The text of a documentation: of the file that it names (`doc.md`, in the folder of the DAG file), otherwise itself."""
        if doc_md is None or not doc_md.endswith(".md"):
            return doc_md
        return (Path(self._dag.fileloc).parent / doc_md).read_text(encoding="utf-8")

    # --- dates of the schedule ------------------------------------------------------------------------------------------

    def following_schedule(self, dttm: datetime) -> DateTime | None:
        """The first time of the schedule after a date; None if the schedule has no times."""
        return to_pendulum(timetables.following(self._times(), _micros(dttm)))

    def previous_schedule(self, dttm: datetime) -> DateTime | None:
        """The last time of the schedule before a date; None if the schedule has no times."""
        return to_pendulum(timetables.preceding(self._times(), _micros(dttm)))

    def get_run_dates(self, start_date: datetime, end_date: datetime | None = None) -> list[DateTime]:
        """The times of the schedule from `start_date` to `end_date` (default: now), at most `RUN_DATES_MAX`."""
        return list(self._dates(_micros(start_date), _micros(end_date or datetime.now(UTC))))

    def date_range(self, start_date: datetime, num: int | None = None, end_date: datetime | None = None) -> list[DateTime]:
        """The times of the schedule from `start_date`: `num` of them, or all until `end_date` (default: now)."""
        if num is None:
            return self.get_run_dates(start_date, end_date)
        return [date for moment in islice(self._from(_micros(start_date)), num) if (date := to_pendulum(moment)) is not None]

    def _dates(self, start: int, end: int) -> Iterator[DateTime]:
        for moment in takewhile(lambda moment: moment <= end, self._from(start)):
            date = to_pendulum(moment)
            if date is not None:
                yield date

    def _from(self, start: int) -> Iterator[int]:
        """The times of the schedule, from `start` on. A schedule with equal intervals counts them from `start`."""
        schedule = self._times()
        if isinstance(schedule, DeltaSchedule):
            yield start
            yield from timetables.upcoming(schedule, start, RUN_DATES_MAX - 1)
        else:
            yield from timetables.upcoming(schedule, start - 1, RUN_DATES_MAX)

    def _times(self) -> Schedule:
        """The schedule as it would be in a folder of DAG files for Airflow 1 or 2.

        Raises:
            NotYetSupported: it is a timetable of the author.
        """
        written = self._dag.time_schedule
        if self._dag.given("schedule") is NOTSET:
            written = timedelta(days=1) if self._dag.generation < CURRENT else None
        schedule = timetables.parse_schedule(written, timezone=self._dag.timezone_name or "UTC", defaults="data")
        if isinstance(schedule, CustomSchedule):
            raise NotYetSupported(f"the times of the timetable {schedule.name} are not known here; call its methods")
        return schedule

    def normalize_schedule(self, dttm: datetime) -> DateTime | None:
        """A time of the schedule: the date itself, or the first one after it."""
        return to_pendulum(next(self._from(_micros(dttm)), None))

    def is_fixed_time_schedule(self) -> bool:
        """Whether the runs have the same time of each day."""
        days = {date.time() for date in islice(self._dates(_micros(datetime.now(UTC)), _FAR), 3)}
        return len(days) == 1

    # --- runs -----------------------------------------------------------------------------------------------------------

    def get_last_dagrun(self, session: Any = None, include_externally_triggered: bool = False) -> DagRun | None:
        """The latest run of the DAG, without those that a person, the API or a task has triggered; None if there is none.

        Raises:
            DatabaseNotReachable: no task is running.
        """
        return get_last_dagrun(self._dag.dag_id, session, include_externally_triggered)

    def get_dagrun(self, execution_date: datetime | None = None, run_id: str | None = None, **_more: Any) -> DagRun | None:
        """The run of a logical date or with a run id; None if there is none. Raises as `get_last_dagrun`."""
        found = find_runs(self._dag.dag_id, run_id=run_id, execution_date=execution_date)
        return found[-1] if found else None

    def get_active_runs(self) -> list[DateTime | None]:
        """The logical dates of the running runs. Raises as `get_last_dagrun`."""
        return [run.logical_date for run in find_runs(self._dag.dag_id, state="running")]

    def get_num_active_runs(self, external_trigger: bool | None = None, **_more: Any) -> int:
        """The number of running runs. Raises as `get_last_dagrun`."""
        return len(find_runs(self._dag.dag_id, state="running", external_trigger=external_trigger))

    def has_dag_runs(self, session: Any = None, include_externally_triggered: bool = True) -> bool:
        """Whether the DAG has runs. Raises as `get_last_dagrun`."""
        return self.get_last_dagrun(session, include_externally_triggered) is not None

    def get_latest_execution_date(self, session: Any = None) -> DateTime | None:
        """The logical date of the latest run of any kind; None if there is none. Raises as `get_last_dagrun`."""
        found = self.get_last_dagrun(session, include_externally_triggered=True)
        return None if found is None else found.logical_date

    @property
    def latest_execution_date(self) -> DateTime | None:
        """See `get_latest_execution_date`."""
        return self.get_latest_execution_date()

    def get_is_paused(self, *_args: Any, **_more: Any) -> bool:
        """Whether the DAG is paused. Raises as `get_last_dagrun`."""
        return is_paused(self._dag.dag_id)

    def set_is_paused(self, is_paused: bool = True, *_args: Any, **_more: Any) -> None:
        """Pause or unpause the DAG at once.

        Raises:
            AirflowException: the scheduler has no such DAG, or the deployment does not allow it.
            DatabaseNotReachable: no task is running.
        """
        dag_id = self._dag.dag_id
        change = RowChange("dag", dag_id, "change", {"is_paused": bool(is_paused)})
        if not request_value(ChangeRows(0, (change,)), f"cannot pause DAG {dag_id!r}").found:
            raise AirflowException(f"there is no DAG {dag_id!r}, so it cannot be paused")

    def get_concurrency_reached(self, session: Any = None) -> bool:
        """Whether as many tasks run as `max_active_tasks` allows. The scheduler does not tell it; the answer is no."""
        return False

    @property
    def concurrency_reached(self) -> bool:
        """See `get_concurrency_reached`."""
        return self.get_concurrency_reached()

    @property
    def is_paused(self) -> bool:
        """See `get_is_paused`."""
        return self.get_is_paused()


def _micros(moment: datetime) -> int:
    return to_micros(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))
