"""Default values of attributes that differ from object to object: an empty list, the own id, a setting.

A task stores only the arguments that its author gave. These defaults are made when somebody reads them, as Airflow has them:
`task.outlets.append(asset)` works on a task without outlets.
"""

from __future__ import annotations

from typing import Any

from tradewind.sdk.generation import CURRENT


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
