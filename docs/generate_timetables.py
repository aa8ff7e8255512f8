"""Writes `reference/timetables.md`: every kind of schedule, with the next three runs that Tradewind computes for it.

python docs/generate_timetables.py
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dateutil.relativedelta import relativedelta

from tradewind.sdk.dag import DAG
from tradewind.testing.calendars import upcoming_runs
from tradewind.timetables import events, interval, simple, trigger
from tradewind.timetables.base import DagRunInfo, DataInterval, TimeRestriction, Timetable

PAGE = Path(__file__).parent / "reference" / "timetables.md"
NOW = datetime(2026, 3, 27, 10, tzinfo=UTC)
"""A Friday. On Sunday the 29th, clocks in Europe go forward."""
START = datetime(2026, 3, 1, tzinfo=UTC)


class Workdays(Timetable):
    """The custom timetable of the page."""

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        if last_automated_data_interval is not None:
            start = last_automated_data_interval.end
        elif restriction.earliest is not None:
            start = restriction.earliest
        else:
            return None
        while start.weekday() > 4:
            start += timedelta(days=1)
        return DagRunInfo.interval(start, start + timedelta(days=1))

    def infer_manual_data_interval(self, *, run_after: datetime) -> DataInterval:
        return DataInterval(run_after - timedelta(days=1), run_after)


EXAMPLES: tuple[tuple[str, str, bool], ...] = (
    ("None", "The DAG runs only when it is triggered. The same: `NullTimetable()`.", False),
    ('"@once"', "One run, at the start date. The same: `OnceTimetable()`.", False),
    (
        '"@continuous"',
        "A new run as soon as the previous run has ended. `max_active_runs` is 1; any other number is an error. "
        "The same: `ContinuousTimetable()`. (The runs on the right assume that each run ends at once.)",
        False,
    ),
    (
        '"@daily"',
        "A preset: `@hourly`, `@daily`, `@weekly`, `@monthly`, `@quarterly`, `@yearly`, `@midnight` and `@annually`.",
        False,
    ),
    ('"30 6 * * mon-fri"', "A cron expression, in the time zone of `start_date`.", False),
    ("timedelta(hours=36)", "A run at the start date, and then after each interval of this length.", True),
    ("relativedelta(months=1)", "The same, with months and years, which are counted in UTC.", True),
    (
        'trigger.CronTriggerTimetable("30 2 * * *", timezone="Europe/Paris")',
        "A cron expression with its own time zone. On 29 March 2026 the local time 02:30 does not exist in Paris: the run of that "
        "day starts at 03:30 local time.",
        False,
    ),
    (
        'trigger.CronTriggerTimetable("0 6 * * *", timezone="UTC", interval=timedelta(hours=6))',
        "The data interval of a run is the 6 hours before it starts. With `run_immediately=True` (or a timedelta), a DAG without a "
        "start date and without earlier runs also gets a run for the latest time that has passed.",
        False,
    ),
    (
        'trigger.MultipleCronTriggerTimetable("0 6 * * *", "30 18 * * fri", timezone="UTC")',
        "Several cron expressions: a run at each time that matches one of them.",
        False,
    ),
    (
        "trigger.DeltaTriggerTimetable(timedelta(days=1), interval=timedelta(days=7))",
        "A run each day, whose data interval is the week before.",
        True,
    ),
    (
        'interval.CronDataIntervalTimetable("@daily", "UTC")',
        "The data interval is the time between two times of the expression. The run starts at the end of its interval; its logical "
        "date is the start of the interval. (The rule of Airflow 1 and 2.)",
        False,
    ),
    ("interval.DeltaDataIntervalTimetable(timedelta(hours=12))", "The same, with intervals of a fixed length.", True),
    (
        "events.EventsTimetable([datetime(2026, 4, 1, tzinfo=UTC), datetime(2026, 7, 1, 12, tzinfo=UTC)])",
        "A list of times. `restrict_to_events=True`: the data interval of a manually triggered run is the time of the latest "
        "event, not the time when it was triggered. `presorted=True`: the list is already sorted, which is checked.",
        False,
    ),
    ("Workdays()", "A timetable of your own; its code is below.", True),
)
"""(source of the schedule, meaning, with catchup). The source may use the names of `names()`."""

HEAD = """\
# Timetables

<!-- Written by docs/generate_timetables.py. Edit that, then run `make docs`. -->

This page lists the values of the DAG argument `schedule=` (older names: `schedule_interval=`, `timetable=`). The examples assume
that it is Friday, 27 March 2026, 10:00 UTC, and that the DAG has `start_date=datetime(2026, 3, 1, tzinfo=UTC)` and no runs yet.
`catchup` is False unless the example sets it. Each run is shown as **its start time** (its logical date; its data interval). All
times are in UTC.

The id of a scheduled run names its start time, as in Airflow 3: `scheduled__2026-03-27T00:00:00+00:00`.

| schedule | meaning | next three runs |
|---|---|---|
"""

FOOT = """\

The classes are in `tradewind.timetables`, in modules with Airflow's names: `interval`, `trigger`, `events`, `simple` and `base`.

## Airflow 2 and Airflow 3

A cron expression, preset, timedelta or relativedelta has a different meaning in Airflow 3 than in Airflow 1 and 2. The setting
`core.schedule_meaning` chooses the meaning:

| `core.schedule_meaning` | the run of `"@daily"` for 1 March | its logical date | a DAG without `schedule` |
|---|---|---|---|
| `airflow3` | starts on 1 March; its data interval has no length | 1 March, when it starts | runs only when triggered |
| `airflow2` | starts on 2 March; its data interval is 1 to 2 March | 1 March, the start of its interval | runs daily |
| `auto` (default) | as `airflow2` in a file that was written for Airflow 1 or 2; as `airflow3` in every other file | | |

With `auto`, a file counts as written for Airflow 1 or 2 if it uses names that Airflow 3 removed, such as `schedule_interval` or
`airflow.operators.bash_operator`. In such a file `catchup` is True unless the DAG sets it, and the DAG carries a warning that
says so.

With `airflow2`, these values become `CronDataIntervalTimetable` and `DeltaDataIntervalTimetable`.
`AIRFLOW__SCHEDULER__CREATE_CRON_DATA_INTERVALS=True` has the same effect. As in Airflow 3, one setting decides for cron
expressions and for timedeltas: Airflow does not use its setting `create_delta_data_intervals`, and neither does Tradewind.

One DAG folder may contain files of both kinds: `core.schedule_meaning_of_folders = "legacy=airflow2"` sets the meaning for all
files below `legacy/`. If folders are nested, the innermost folder decides. A timetable object always has its own meaning; these
settings do not change it.

## Catchup, start date and end date

Without `catchup`, a DAG gets a run for the latest time that is due, and for every later time. Older runs, which were missed
because the DAG was paused or Tradewind was stopped, are not created. With `catchup`, every run since the start date is created.
`end_date` is the latest possible logical date.

## Daylight saving time

- If the hour field of a cron expression is `*`, a run starts whenever the local time matches. In an hour that occurs twice, the
  runs start twice; in an hour that does not exist, there are none.
- Otherwise each local time has one run. If a local time occurs twice, the run starts at the second occurrence. If local times do
  not exist, they have one run together, which starts later by the amount that the clock was moved.

A test compares the schedules in every zone of the tz database with a reference implementation that checks every minute
(`tests/property/test_timetables.py`).

## Your own timetable

```python
# ~/.tradewind/plugins/our_calendars.py
{workdays}

class OurCalendars(AirflowPlugin):
    name = "our_calendars"
    timetables = [Workdays]
```

The DAG file contains `from our_calendars import Workdays` and `schedule=Workdays()`. The class may also be defined in the DAG
file, or in a module beside it. A timetable with arguments defines `serialize` (returns a dictionary of JSON values) and
`deserialize` (a class method that creates an equal timetable from it). These methods, and `validate`, `summary`, `description`,
`can_be_scheduled`, `active_runs_limit` and `next_dagrun_info_v2`, are Airflow's. A subclass of a built-in timetable may call
`super().next_dagrun_info(...)`. If the class defines `generate_run_id`, it names the scheduled, manual and backfill runs of the
DAG. A backfill asks the timetable for all its runs at once, at most 10,000. A run may have a `partition_key` and a
`partition_date`; the backfill of a timetable with `partitioned = True` asks `iter_partition_dagrun_infos`.

Your code never runs in the scheduler. Each call runs in a child process without credentials, with the limits of a DAG file
(`parser.timeout`, `parser.memory_limit_mb`). If the code raises an exception, hangs, kills its process or returns a run that is
not later than the previous one, only its own DAG is affected: the DAG gets no next run for now. The reason is shown among the
import errors (`tradewind dags list-import-errors`) and by `tradewind why`. The timetable is called again after 10 seconds, then
at growing intervals of up to 10 minutes, and at once when its file or a plugin changes. A timetable that returns None is called
again after 10 minutes. Its results are kept until its file or a plugin changes, or Tradewind restarts.
"""


def names() -> dict[str, Any]:
    """The names that the sources of the examples may use."""
    known = {"timedelta": timedelta, "relativedelta": relativedelta, "datetime": datetime, "UTC": UTC, "Workdays": Workdays}
    return {**known, "simple": simple, "trigger": trigger, "interval": interval, "events": events}


def runs(written: str, catchup: bool) -> Iterator[str]:
    """The next three runs of an example."""
    dag = DAG("example", schedule=eval(written, names()), start_date=START, catchup=catchup)
    for run in upcoming_runs(dag, now=NOW, count=3, look_again_after=timedelta(seconds=1)):
        assert run.logical_date is not None
        assert run.data_interval_start is not None
        assert run.data_interval_end is not None
        span = "no length"
        if run.data_interval_start != run.data_interval_end:
            span = f"{shown(run.data_interval_start)} to {shown(run.data_interval_end)}"
        yield f"**{shown(run.run_after)}** ({shown(run.logical_date)}; {span})"


def shown(moment: datetime) -> str:
    """`27 Mar 06:00`, with the year if it is not that of `NOW`, and with the seconds if they are not 0."""
    text = f"{moment:%-d %b %H:%M}" + (f":{moment:%S}" if moment.second else "")
    return text if moment.year == NOW.year else f"{text} {moment.year}"


def page() -> str:
    """The whole page."""
    rows = []
    for written, meaning, catchup in EXAMPLES:
        source = written.partition(".")[2] if written.startswith(("trigger.", "interval.", "events.")) else written
        following = "<br>".join(runs(written, catchup)) or "none"
        rows.append(f"| `{source}`{', `catchup=True`' if catchup else ''} | {meaning} | {following} |\n")
    return HEAD + "".join(rows) + FOOT.replace("{workdays}", workdays())


_ON_ONE_LINE = "(self, *, last_automated_data_interval, restriction)"


def workdays() -> str:
    """The source of the example."""
    text = Path(__file__).read_text(encoding="utf-8")
    source = text[text.index("class Workdays") : text.index("EXAMPLES:")].strip()
    head = "from datetime import timedelta\n\nfrom tradewind import AirflowPlugin\nfrom tradewind.timetables.base import "
    source = source.replace(": DataInterval | None", "").replace(": TimeRestriction", "").replace(": datetime", "")
    source = source.replace(" -> DagRunInfo | None", "").replace(" -> DataInterval", "")
    source = source.replace("(\n        self, *, last_automated_data_interval, restriction\n    )", _ON_ONE_LINE)
    source = source.replace("The custom timetable of the page.", "Monday to Friday.")
    return f"{head}DagRunInfo, DataInterval, Timetable\n\n\n{source}\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
