"""Version numbers and the conditions on them that requirements of Airflow use (PEP 440, plain releases)."""

from __future__ import annotations

import re
from typing import NamedTuple

CURRENT = "3.3.2"
"""The release of Airflow whose names and behaviour Tradewind serves if no other release is requested."""

KNOWN = (
    *("1.10.15", "2.0.2", "2.1.4", "2.2.5", "2.3.4", "2.4.3", "2.5.3", "2.6.3", "2.7.3", "2.8.4", "2.9.3", "2.10.5", "2.11.0"),
    *("3.0.6", "3.1.8", "3.2.2", CURRENT),
)
"""The last release of each series. A condition such as `>=2.7,<3` is checked with these releases."""

LOCAL = "tradewind"
"""Local part of a stand-in's version: `3.3.2+tradewind`."""

_CONDITION = re.compile(r"(===|==|~=|!=|<=|>=|<|>)\s*([^\s,;]+)")
_RELEASE = re.compile(r"v?(\d+(?:\.\d+)*)")


class Condition(NamedTuple):
    """One part of a version specifier."""

    operator: str
    version: str


def conditions(specifier: str) -> list[Condition]:
    """The parts of a specifier such as `>=2.7, <3`. A text that is not a condition is ignored."""
    return [Condition(*found) for found in _CONDITION.findall(specifier)]


def release(version: str) -> tuple[int, ...]:
    """`2.9.3rc1` → (2, 9, 3). Empty when the text does not begin with a number."""
    found = _RELEASE.match(version.strip())
    return tuple(int(part) for part in found.group(1).split(".")) if found else ()


def _compare(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    length = max(len(first), len(second))
    a, b = first + (0,) * (length - len(first)), second + (0,) * (length - len(second))
    return (a > b) - (a < b)


def satisfies(version: str, specifier: str) -> bool:
    """Whether a release satisfies every condition."""
    return all(_satisfies(release(version), condition) for condition in conditions(specifier))


def _satisfies(version: tuple[int, ...], condition: Condition) -> bool:
    wanted = release(condition.version)
    if condition.operator in ("==", "!=", "==="):
        prefix = condition.version.endswith(".*")
        equal = version[: len(wanted)] == wanted if prefix else _compare(version, wanted) == 0
        return equal == (condition.operator != "!=")
    order = _compare(version, wanted)
    if condition.operator == "~=":
        return order >= 0 and version[: len(wanted) - 1] == wanted[:-1]
    return {"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[condition.operator]


def choose(specifier: str) -> str | None:
    """The release of Airflow that a stand-in has for a specifier: the newest known release that fits, or the pinned release.

    Returns:
        None when no release satisfies the specifier.
    """
    for condition in conditions(specifier):
        pinned = condition.version.partition("+")[0]
        if condition.operator in ("==", "===") and not pinned.endswith(".*"):
            return pinned if satisfies(pinned, specifier) else None
    lower = [condition.version for condition in conditions(specifier) if condition.operator in (">=", "~=")]
    for version in (*reversed(KNOWN), *lower):
        if satisfies(version, specifier):
            return version
    return None


def stand_in_version(version: str) -> str:
    """`2.9.3` → `2.9.3+tradewind`."""
    return f"{version}+{LOCAL}"


def is_stand_in(version: str) -> bool:
    """Whether this version belongs to a stand-in."""
    return version.partition("+")[2] == LOCAL
