"""Settings for user code: Airflow's `conf.get("section", "key")`.

Lookup order: the environment variables `TRADEWIND__SECTION__KEY` and `AIRFLOW__SECTION__KEY`, then the settings that the
    composition
root installed in this process (never a secret, because user code gets no credentials), then the fallback of the caller.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tradewind.model.errors import did_you_mean
from tradewind.sdk.exceptions import AirflowConfigException
from tradewind.sdk.variables import NOTSET

_TRUE = frozenset({"t", "true", "1", "yes", "on"})
_FALSE = frozenset({"f", "false", "0", "no", "off"})


class SettingsReader:
    """A read-only view of settings by section and key. Values are strings, except from the typed methods."""

    def __init__(self) -> None:
        self._installed: dict[str, str] = {}

    def install(self, values: Mapping[str, str]) -> None:
        """Install the settings for user code of this process: `section.key` → string."""
        self._installed = dict(values)

    def known(self) -> dict[str, str]:
        """The installed settings: `section.key` → string."""
        return dict(self._installed)

    def _find(self, section: str, key: str) -> str | None:
        for prefix in ("TRADEWIND", "AIRFLOW"):
            found = os.environ.get(f"{prefix}__{section.upper()}__{key.upper()}")
            if found is not None:
                return found
        return self._installed.get(f"{section.lower()}.{key.lower()}")

    def get(self, section: str, key: str, fallback: Any = NOTSET) -> Any:
        """The value of a setting, as a string.

        Raises:
            AirflowConfigException: the setting is not set and no fallback was given.
        """
        found = self._find(section, key)
        if found is not None:
            return found
        if fallback is not NOTSET:
            return fallback
        name = f"{section}.{key}".lower()
        raise AirflowConfigException(
            f"the setting {name} is not known in this process.{did_you_mean(name, self._installed)} "
            f"Set {f'TRADEWIND__{section}__{key}'.upper()}, or pass a fallback."
        )

    def has_option(self, section: str, key: str) -> bool:
        return self._find(section, key) is not None

    def getboolean(self, section: str, key: str, fallback: Any = NOTSET) -> bool:
        found = self.get(section, key, fallback)
        if isinstance(found, bool):
            return found
        word = str(found).strip().lower()
        if word in _TRUE:
            return True
        if word in _FALSE:
            return False
        raise AirflowConfigException(f"the setting {section}.{key} is {found!r}; it must be true or false")

    def getint(self, section: str, key: str, fallback: Any = NOTSET) -> int:
        return int(self._number(section, key, fallback, int))

    def getfloat(self, section: str, key: str, fallback: Any = NOTSET) -> float:
        return float(self._number(section, key, fallback, float))

    def getlist(self, section: str, key: str, fallback: Any = NOTSET, delimiter: str = ",") -> list[str]:
        found = self.get(section, key, fallback)
        return [part.strip() for part in found.split(delimiter) if part.strip()] if isinstance(found, str) else found

    def _number(self, section: str, key: str, fallback: Any, kind: type[Any]) -> Any:
        found = self.get(section, key, fallback)
        try:
            return kind(found)
        except (TypeError, ValueError):
            raise AirflowConfigException(f"the setting {section}.{key} is {found!r}; it must be a number") from None


conf = SettingsReader()
"""The settings of this process."""


def deferrable_or_default(given: bool | None) -> bool:
    """The argument `deferrable` of an operator; without one, the setting operators.default_deferrable (default: False)."""
    return conf.getboolean("operators", "default_deferrable", fallback=False) if given is None else bool(given)
