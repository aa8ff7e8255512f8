"""Under which names and with which tags a measurement is sent. Pure.

Airflow 3.3 has a name without ids for each metric, and tags for the ids (`ti.finish` with dag_id, task_id and state). Before, the
ids were parts of the name (`ti.finish.DAG.TASK.STATE`). Both are sent unless `metrics.legacy_names_on` is false.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from tradewind.metrics.catalogue import legacy_names
from tradewind.metrics.config import MetricsConfig
from tradewind.metrics.measurement import Measurement

NAME_CHARACTERS_MAX = 250
_VALID_NAME = re.compile(r"[A-Za-z0-9_./-]+")
_INVALID_CHARACTER = re.compile(r"[^A-Za-z0-9_.-]")
_VARIABLE = re.compile(r"\{(\w+)\}")
_CACHED_NAMES = 4096

Named = tuple[str, dict[str, str]]
"""A full name without the prefix, and its tags."""


def normalized(name: str) -> str:
    """A name for a tag or a part of a metric's name: characters that StatsD servers do not accept become `_`."""
    return _INVALID_CHARACTER.sub("_", name)


class Names:
    """Decides the names of measurements. `invalid` counts those that were dropped because of their names.

    Raises:
        re.error: a regular expression of the settings is wrong.
    """

    def __init__(self, config: MetricsConfig) -> None:
        self.invalid = 0
        self._legacy = legacy_names() if config.legacy_names else {}
        self._allow = _patterns(config.allow)
        self._block = () if self._allow else _patterns(config.block)
        self._disabled_tags = _patterns(config.disabled_tags)
        self._is_sent = lru_cache(_CACHED_NAMES)(self._decide)

    def of(self, measurement: Measurement) -> list[Named]:
        """The names under which a measurement is sent; an empty list: it is not sent."""
        tags = {key: str(value) for key, value in measurement.tags.items() if value is not None}
        found: list[Named] = []
        pattern = self._legacy.get(measurement.name)
        if pattern is not None:
            used = _VARIABLE.findall(pattern)
            if all(key in tags for key in used):
                name = _VARIABLE.sub(lambda one: tags[one[1]].replace(".", "__"), pattern)
                self._add(found, name, {key: value for key, value in tags.items() if key not in used})
        self._add(found, measurement.name, tags)
        return found

    def _add(self, found: list[Named], name: str, tags: Mapping[str, str]) -> None:
        if len(name) > NAME_CHARACTERS_MAX or _VALID_NAME.fullmatch(name) is None:
            self.invalid += 1
        elif self._is_sent(name):
            found.append((name, {key: value for key, value in tags.items() if not _matches(self._disabled_tags, key)}))

    def _decide(self, name: str) -> bool:
        if self._allow:
            return _matches(self._allow, name)
        return not _matches(self._block, name)


def _patterns(text: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(one.strip().lower()) for one in text.split(",") if one.strip())


def _matches(patterns: tuple[re.Pattern[str], ...], name: str) -> bool:
    name = name.strip().lower()
    return any(pattern.search(name) for pattern in patterns)
