"""Writes `reference/timetables.md`: every form of a schedule, with its next three runs as Tradewind works them out.

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
"""A Friday; on Sunday the 29th clocks go forward in Europe."""
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
    ("None", "Runs only when somebody triggers it. The same: `NullTimetable()`.", False),
    ('"@once"', "One run, at the start date. `OnceTimetable()`.", False),
    (
        '"@continuous"',
        "The next run as soon as the last one has ended; `max_active_runs` is 1, and another number is an error. "
        "`ContinuousTimetable()`. (Shown: as if each run ended at once.)",
        False,
    ),
    (
        '"@daily"',
        "A preset: `@hourly`, `@daily`, `@weekly`, `@monthly`, `@quarterly`, `@yearly` (`@midnight`, `@annually`).",
        False,
    ),
    ('"30 6 * * mon-fri"', "A cron expression, on the wall clock of the zone of `start_date`.", False),
    ("timedelta(hours=36)", "That long after the start date, again and again.", True),
    ("relativedelta(months=1)", "The same with months and years, counted on the calendar of UTC.", True),
    (
        'trigger.CronTriggerTimetable("30 2 * * *", timezone="Europe/Paris")',
        "Cron with a zone of its own. 02:30 does not exist in Paris on 29 March 2026: that day's run is an hour later on the wall "
        "clock.",
        False,
    ),
    (
        'trigger.CronTriggerTimetable("0 6 * * *", timezone="UTC", interval=timedelta(hours=6))',
        "The run stands for the 6 hours before its tick. With `run_immediately=True` (or a timedelta), a DAG without a start date "
        "and without an earlier run also runs for the tick just missed.",
        False,
    ),
    (
        'trigger.MultipleCronTriggerTimetable("0 6 * * *", "30 18 * * fri", timezone="UTC")',
        "Several expressions as one.",
        False,
    ),
    ("trigger.DeltaTriggerTimetable(timedelta(days=1), interval=timedelta(days=7))", "Each day, for the week before.", True),
    (
        'interval.CronDataIntervalTimetable("@daily", "UTC")',
        "The time between two ticks: the run starts at the end of its interval, its logical date is the start (Airflow 1 and 2).",
        False,
    ),
    ("interval.DeltaDataIntervalTimetable(timedelta(hours=12))", "The same for intervals of one length.", True),
    (
        "events.EventsTimetable([datetime(2026, 4, 1, tzinfo=UTC), datetime(2026, 7, 1, 12, tzinfo=UTC)])",
        "Listed moments. `restrict_to_events=True`: a run by hand stands for the latest event, not for its own moment. "
        "`presorted=True`: they are in order already, which is checked.",
        False,
    ),
    ("Workdays()", "A timetable of your own, below.", True),
)
"""(what is written, what it means, with catch-up): names are those of the page."""

HEAD = """\
# Timetables

<!-- Written by docs/generate_timetables.py. Edit that, then run `make docs`. -->

What may be given as `schedule=` (older: `schedule_interval=`, `timetable=`). Every example is asked on Friday, 27 March 2026,
10:00 UTC, for a DAG with `start_date=datetime(2026, 3, 1, tzinfo=UTC)` that has had no run; `catchup` where that is said. Each run
is shown as **when it starts** (its logical date; its data interval). All moments are UTC.

| schedule | meaning | next three runs |
|---|---|---|
"""

FOOT = """\

The classes are in `tradewind.timetables`, in modules of Airflow's names: `interval`, `trigger`, `events`, `simple`, `base`.

## Airflow 2 and Airflow 3

A bare cron expression, preset, timedelta or relativedelta means another thing in Airflow 3 than before:

| `core.schedule_meaning` | the run of `"@daily"` for 1 March | its logical date | a DAG without `schedule` |
|---|---|---|---|
| `airflow3` (default) | starts on 1 March, for an interval of no length | 1 March, when it starts | runs only when triggered |
| `airflow2` | starts on 2 March, for 1 to 2 March | 1 March, the start of its interval | runs daily |

`airflow2` makes them `CronDataIntervalTimetable` and `DeltaDataIntervalTimetable`, which is what
`AIRFLOW__SCHEDULER__CREATE_CRON_DATA_INTERVALS=True` does (it is read). As in Airflow 3, one setting decides for cron expressions
and for deltas; `create_delta_data_intervals` is read by nobody there, and not here.

Files of both kinds may lie in one DAG folder: `core.schedule_meaning_of_folders = "legacy=airflow2"` says it for everything below
`legacy/`, and the innermost folder's word counts. A timetable object says what it means and is not touched by either setting.

## Catch-up, start, end

Without `catchup` a DAG runs for the latest tick that is due, and from then on; what was missed while it was paused or nothing ran
is left out. With it, each tick since the start date has its run. `end_date` is the last logical date there is.

## Where clocks are changed

- The hour is `*`: the expression fires at each instant whose wall clock it names. An hour that comes twice has its ticks twice,
  one that is left out has none.
- Otherwise each wall-clock time fires once: one that comes twice at its second coming; those that are left out once together, as
  much later as the clock was moved.

Every zone of the tz database is held to this against a reference that looks at each minute (`tests/property/test_timetables.py`).

## Your own timetable

```python
# ~/.tradewind/plugins/our_calendars.py
{workdays}

class OurCalendars(AirflowPlugin):
    name = "our_calendars"
    timetables = [Workdays]
```

A DAG file says `from our_calendars import Workdays` and `schedule=Workdays()`. The class may also stand in the DAG file, or in a
module beside it. One with arguments has `serialize` (a dictionary of JSON values) and `deserialize` (a class method that makes an
equal one); both, `validate`, `summary`, `description`, `can_be_scheduled`, `active_runs_limit` and `next_dagrun_info_v2` are
Airflow's. Subclasses of the shipped ones may begin with `super().next_dagrun_info(...)`. `generate_run_id` is not asked, and runs
of partitions are refused with a sentence.

Your code never runs in the scheduler. Each question is put to a child process without credentials, with the limits of a DAG file
(`parser.timeout`, `parser.memory_limit_mb`). One that raises, hangs, kills its process or gives a run that is not after the last
one costs its own DAG the next run and nobody else anything. The reason stands among the import errors (`tradewind dags
list-import-errors`) and in `tradewind why`; it is asked again after 10 seconds, then later and later, up to 10 minutes, and at
once when its file or a plugin changes. A timetable that gives None is asked again after 10 minutes. What it answered is kept
while nothing changes; after a restart it is asked anew.
"""


def names() -> dict[str, Any]:
    """What the examples may refer to."""
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
    """`27 Mar 06:00`, the year where it is another one, seconds where there are any."""
    text = f"{moment:%-d %b %H:%M}" + (f":{moment:%S}" if moment.second else "")
    return text if moment.year == NOW.year else f"{text} {moment.year}"


def page() -> str:
    """The whole page."""
    rows = []
    for written, meaning, catchup in EXAMPLES:
        said = written.partition(".")[2] if written.startswith(("trigger.", "interval.", "events.")) else written
        following = "<br>".join(runs(written, catchup)) or "none"
        rows.append(f"| `{said}`{', `catchup=True`' if catchup else ''} | {meaning} | {following} |\n")
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
