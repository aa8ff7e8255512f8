"""Default values of attributes that differ from object to object: an empty list, the own id, a setting.

A task stores only the arguments that its author gave. These defaults are made when somebody reads them, as Airflow has them:
`task.outlets.append(asset)` works on a task without outlets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from tradewind.sdk.generation import CURRENT
from tradewind.sdk.params import NOTSET


class OwnList:
    """An empty list, which belongs to the object from its first use on. The class itself has none."""

    name = ""

    def __set_name__(self, _owner: type, name: str) -> None:
        self.name = name

    def __get__(self, one: Any, _owner: type) -> Any:
        if one is None:
            return ()
        made: list[Any] = []
        one.__dict__[self.name] = made
        return made


class OwnId:
    """The id of the object, where nothing else is given. The class itself has None."""

    def __init__(self, attribute: str) -> None:
        self.attribute = attribute

    def __get__(self, one: Any, _owner: type) -> Any:
        return None if one is None else one.__dict__.get(self.attribute)


class IsGiven:
    """Whether another attribute has a value: `has_on_failure_callback`. Read-only; the class itself has False."""

    def __init__(self, attribute: str) -> None:
        self.attribute = attribute

    def __get__(self, one: Any, _owner: type) -> bool:
        return one is not None and bool(getattr(one, self.attribute))

    def __set__(self, one: Any, value: Any) -> None:
        raise AttributeError(f"it cannot be set: it says whether {self.attribute} has a value")


class FromSetting:
    """An integer, by default that of a setting: `dag.max_active_runs` is 16 where nothing else is given, as in Airflow.

    Tests of DAG files and policies read such attributes. What the author gave is in the object's `__dict__`.
    """

    name = ""

    def __init__(self, section: str, key: str) -> None:
        self.section, self.key = section, key

    def __set_name__(self, _owner: type, name: str) -> None:
        self.name = name

    def __get__(self, one: Any, _owner: type) -> Any:
        if one is None:
            return None
        given = one.__dict__.get(self.name)
        return self._default(one) if given is None else given

    def __set__(self, one: Any, value: Any) -> None:
        one.__dict__[self.name] = value

    def _default(self, one: Any) -> Any:
        from tradewind.sdk.conf import conf  # lazy import: few files read a default

        return conf.getint(self.section, self.key)


class CatchupFromSetting(FromSetting):
    """`dag.catchup`: the setting, or without one whether the file was written for Airflow 1 or 2."""

    def _default(self, one: Any) -> bool:
        from tradewind.sdk.conf import conf  # lazy import: few files read a default

        setting = (conf.given(self.section, self.key) or "none").strip().lower()
        return one.generation < CURRENT if setting == "none" else conf.getboolean(self.section, self.key)


class FlagFromSetting(FromSetting):
    """A flag, by default that of a setting."""

    def _default(self, one: Any) -> bool:
        from tradewind.sdk.conf import conf  # lazy import: few files read a default

        return conf.getboolean(self.section, self.key)


class ScheduleAsGiven(FromSetting):
    """`dag.schedule`: without a value None, in files for Airflow 1 and 2 one day. `dag.given("schedule")` is NOTSET then."""

    def __init__(self) -> None:
        super().__init__("", "")

    def __get__(self, one: Any, _owner: type) -> Any:
        if one is None:
            return None
        given = one.__dict__.get(self.name)
        if given is not NOTSET:
            return given
        return timedelta(days=1) if one.generation < CURRENT else None


class UndefinedOfTemplates(FromSetting):
    """`dag.template_undefined`: a class of jinja2, which is imported when somebody reads it."""

    def __init__(self) -> None:
        super().__init__("", "")

    def _default(self, one: Any) -> type:
        import jinja2  # lazy import: takes 75 ms, and few files read it

        # until Airflow 2, a name that is not there was an empty text
        return jinja2.Undefined if one.generation == 1 else jinja2.StrictUndefined


class UtcDate(FromSetting):
    """A date of a DAG or task in UTC, as Airflow has it. What the author gave is in the object's `__dict__`.

    Args:
        others: dates from elsewhere that apply too, such as those of the DAG.
        choose: chooses between several dates.
    """

    def __init__(self, others: Callable[[Any, str], Iterable[Any]], choose: Callable[[Iterable[Any]], Any]) -> None:
        super().__init__("", "")
        self.others, self.choose = others, choose

    def __get__(self, one: Any, _owner: type) -> Any:
        if one is None:
            return None
        dates = [one.__dict__.get(self.name), *self.others(one, self.name)]
        given = [utc_date(date) for date in dates if isinstance(date, datetime)]
        return self.choose(given) if given else None


def utc_date(value: datetime) -> Any:
    """The moment as a `pendulum.DateTime` in UTC. A value without a time zone is in the default time zone."""
    import pendulum  # lazy import: 80 ms, and few files read such a date

    zoned = value if value.tzinfo is not None else value.replace(tzinfo=default_zone())
    return pendulum.instance(zoned).in_timezone("UTC")


def default_zone() -> tzinfo:
    """The default time zone of the configuration."""
    from tradewind.sdk.conf import conf  # lazy import: most files name a zone, or do not need it

    name = str(conf.get("core", "default_timezone", fallback="UTC"))
    if name == "system":
        return datetime.now().astimezone().tzinfo or ZoneInfo("UTC")
    return ZoneInfo("UTC" if name.lower() == "utc" else name)
