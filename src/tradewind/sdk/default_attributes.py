"""Default values of attributes that differ from task to task: an empty list, the own id.

A task stores only the arguments that its author gave. These defaults are made when somebody reads them, as Airflow has them:
`task.outlets.append(asset)` works on a task without outlets.
"""

from __future__ import annotations

from typing import Any


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
