"""Settings for user code: Airflow's `conf.get("section", "key")`.

Lookup order: the environment variables `TRADEWIND__SECTION__KEY` and `AIRFLOW__SECTION__KEY`, then the settings that the
composition root installed in this process, also those of an airflow.cfg (never a secret of a service, because user code gets no
credentials), then both under the other names that the setting has or had, then the defaults of installed
provider packages and Airflow's own, then the fallback of the caller. A default is stronger than the fallback, as in Airflow.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Mapping
from datetime import timedelta
from enum import Enum
from functools import lru_cache
from typing import Any

from tradewind.model.errors import did_you_mean
from tradewind.provider_packages import offers
from tradewind.sdk.conf_defaults import CORE_SECTIONS, default_of, names_with_default
from tradewind.sdk.conf_renames import names_of
from tradewind.sdk.exceptions import AirflowConfigException
from tradewind.sdk.variables import NOTSET

_TRUE = frozenset({"t", "true", "1", "yes", "on"})
_FALSE = frozenset({"f", "false", "0", "no", "off"})


def _variables_of(prefix: str, section: str) -> str:
    """The start of the environment variables of a section. A dot becomes `_`: `providers.jdbc` → `AIRFLOW__PROVIDERS_JDBC__`."""
    return f"{prefix}__{section.replace('.', '_').upper()}__"


@lru_cache(maxsize=1024)
def _places_of(name: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Every name that a setting has or had (the given `section.key` first), each with its environment variables."""
    places = []
    for one in (name, *(other for other in names_of(name) if other != name)):
        section, _, option = one.rpartition(".")
        places.append((one, tuple(f"{_variables_of(prefix, section)}{option.upper()}" for prefix in ("TRADEWIND", "AIRFLOW"))))
    return tuple(places)


class SettingsReader:
    """The settings of a process by section and key. Values are strings, except from the typed methods."""

    def __init__(self, default_config: str | None = None, *_args: Any, **_options: Any) -> None:
        """Create settings of their own, as `AirflowConfigParser(default_config=…)` in tests and plugins.

        Args:
            default_config: values in the format of an airflow.cfg. None: only those of the environment and Airflow's defaults.
        """
        self._installed: dict[str, str] = {}
        if default_config is not None:
            self.read_string(default_config)

    def read_string(self, string: str, source: str = "<string>") -> None:
        """Add values in the format of an airflow.cfg. Raises configparser.Error: the text has another format."""
        import configparser  # lazy import: only where code reads such a text

        given = configparser.ConfigParser(interpolation=None, strict=False)
        given.read_string(string, source)
        for section in given.sections():
            self.read_dict({section: dict(given.items(section))})

    def read_dict(self, dictionary: Mapping[str, Mapping[str, Any]], source: str = "<dict>") -> None:
        """Add values: section → key → value."""
        for section, values in dictionary.items():
            self._installed.update({f"{section}.{key}".lower(): str(value) for key, value in values.items()})

    def sections(self) -> list[str]:
        """The sections of the settings that this process knows."""
        return list(self.as_dict())

    def options(self, section: str) -> list[str]:
        """The keys of a section."""
        return list(self.as_dict().get(section.lower(), ()))

    def install(self, values: Mapping[str, str]) -> None:
        """Install the settings for user code of this process: `section.key` → string."""
        self._installed = dict(values)

    def known(self) -> dict[str, str]:
        """The installed settings: `section.key` → string."""
        return dict(self._installed)

    def given(self, section: str, key: str) -> str | None:
        """The value that the operator gave for a setting, under any of its names; None: only a default applies."""
        return self._find(section, key)

    def _find(self, section: str, key: str) -> str | None:
        section, key = section.lower(), key.lower()
        for name, variables in _places_of(f"{section}.{key}"):
            for variable in variables:
                found = os.environ.get(variable)
                if found is not None:
                    return found
            found = self._installed.get(name)
            if found is not None:
                return found
        if section in CORE_SECTIONS:
            return None
        return offers.config_defaults().get((section, key))

    def get(self, section: str, key: str, fallback: Any = NOTSET, **_ignored: Any) -> Any:
        """The value of a setting, as a string. Airflow's other arguments (`suppress_warnings`, `team_name`) have no effect.

        Raises:
            AirflowConfigException: the setting is not set and no fallback was given.
        """
        found = self._find(section, key)
        if found is not None:
            return found
        default = default_of(section.lower(), key.lower())
        if default is not None:
            return default
        if fallback is not NOTSET:
            return fallback
        name = f"{section}.{key}".lower()
        raise AirflowConfigException(
            f"the setting {name} is not known in this process.{did_you_mean(name, self._installed)} "
            f"Set {f'TRADEWIND__{section}__{key}'.upper()}, or pass a fallback."
        )

    def set(self, section: str, option: str, value: str | None = None) -> None:
        """Set a setting for user code of this process. An environment variable overrides it."""
        self._installed[f"{section}.{option}".lower()] = str(value)

    @staticmethod
    def _env_var_name(section: str, key: str) -> str:
        """The environment variable of a setting, with Airflow's prefix. Test helpers of provider packages call it."""
        return f"{_variables_of('AIRFLOW', section)}{key.upper()}"

    def add_section(self, section: str) -> None:
        """Do nothing: a section exists if it has a setting."""

    def remove_option(self, section: str, option: str, remove_default: bool = True) -> None:
        """Unset a setting that was set or installed in this process."""
        self._installed.pop(f"{section}.{option}".lower(), None)

    def load_test_config(self) -> None:
        """Set core.unit_test_mode, as Airflow does; there are no other settings for tests."""
        self.set("core", "unit_test_mode", "True")

    def get_mandatory_value(self, section: str, key: str, **options: Any) -> str:
        """As `get`.

        Raises:
            ValueError: the setting is None.
        """
        found = self.get(section, key, **options)
        if found is None:
            raise ValueError(f"The value {section}/{key} should be set!")
        return str(found)

    def get_default_value(self, section: str, key: str, fallback: Any = None, **_ignored: Any) -> Any:
        """The default of a setting: that of an installed provider package, or Airflow's."""
        section, key = section.lower(), key.lower()
        found = offers.config_defaults().get((section, key)) or default_of(section, key)
        return fallback if found is None else found

    def value_if_set(self, section: str, key: str) -> str | None:
        """The value that the environment or the deployment gives, or None. Defaults do not count."""
        return self._find(section, key)

    def is_set(self, section: str, key: str) -> bool:
        """True if the setting is set, in the environment or by the deployment. Defaults do not count."""
        return self._find(section, key) is not None

    def has_option(self, section: str, key: str, **_ignored: Any) -> bool:
        """True if the setting is set or has a default."""
        return self._find(section, key) is not None or default_of(section.lower(), key.lower()) is not None

    def has_section(self, section: str) -> bool:
        """True if the section has a setting."""
        return bool(self.getsection(section))

    def getsection(self, section: str, **_ignored: Any) -> dict[str, Any] | None:
        """The settings of a section: key → value, numbers and booleans converted. None: there is no such section."""
        name = section.lower()
        found: dict[str, str] = {key: text for (where, key), text in offers.config_defaults().items() if where == name}
        found.update({key[len(name) + 1 :]: text for key, text in self._installed.items() if key.startswith(f"{name}.")})
        for prefix in ("AIRFLOW", "TRADEWIND"):
            start = _variables_of(prefix, section)
            found.update({key[len(start) :].lower(): text for key, text in os.environ.items() if key.startswith(start)})
        return {key: _typed(text) for key, text in found.items()} or None

    def as_dict(self, *_args: Any, **_options: Any) -> dict[str, dict[str, str]]:
        """All settings that this process knows, including the environment and the defaults: section → key → value."""
        names = {*names_with_default(), *offers.config_defaults()}
        names.update((section, key) for section, _, key in (name.partition(".") for name in self._installed))
        found: dict[str, dict[str, str]] = {}
        for section, key in sorted(names):
            value = self.get(section, key, None)
            if value is not None:
                found.setdefault(section, {})[key] = str(value)
        return found

    def getjson(self, section: str, key: str, fallback: Any = NOTSET, **_ignored: Any) -> Any:
        """The value of a setting that holds JSON.

        Raises:
            AirflowConfigException: the value is not valid JSON.
        """
        found = self.get(section, key, None if fallback is NOTSET else fallback)
        if not isinstance(found, str):
            return found
        if not found:
            return None if fallback is NOTSET else fallback
        try:
            return json.loads(found)
        except ValueError as error:
            raise AirflowConfigException(f"the setting {section}.{key} is not valid JSON: {error}") from error

    def getimport(self, section: str, key: str, **options: Any) -> Any:
        """The object whose full name a setting holds; None for an empty setting.

        Raises:
            AirflowConfigException: it cannot be imported.
        """
        path = self.get(section, key, **options)
        if not path:
            return None
        module, _, name = str(path).rpartition(".")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise AirflowConfigException(
                f"the object {path!r} of the setting {section}.{key} cannot be loaded: {error}"
            ) from error

    def getenum(self, section: str, key: str, enum_class: type[Enum], **options: Any) -> Any:
        """The member of an enumeration that a setting names.

        Raises:
            AirflowConfigException: there is no such member.
        """
        found = self.get(section, key, **options)
        names = [member.name for member in enum_class]
        if found not in names:
            raise AirflowConfigException(f"the setting {section}.{key} is {found!r}; it must be one of {', '.join(names)}")
        return enum_class[found]

    def gettimedelta(self, section: str, key: str, fallback: Any = None, **_ignored: Any) -> timedelta | None:
        """A number of seconds as a timedelta.

        Raises:
            AirflowConfigException: the value is not a number.
        """
        found = self.get(section, key, fallback=fallback)
        if found is None or found == "":
            return fallback if isinstance(fallback, timedelta) else None
        return found if isinstance(found, timedelta) else timedelta(seconds=self.getfloat(section, key))

    def getboolean(self, section: str, key: str, fallback: Any = NOTSET, **_ignored: Any) -> bool:
        found = self.get(section, key, fallback=fallback)
        if isinstance(found, bool):
            return found
        word = str(found).strip().lower()
        if word in _TRUE:
            return True
        if word in _FALSE:
            return False
        raise AirflowConfigException(f"the setting {section}.{key} is {found!r}; it must be true or false")

    def getint(self, section: str, key: str, fallback: Any = NOTSET, **_ignored: Any) -> int:
        return int(self._number(section, key, fallback, int))

    def getfloat(self, section: str, key: str, fallback: Any = NOTSET, **_ignored: Any) -> float:
        return float(self._number(section, key, fallback, float))

    def getlist(self, section: str, key: str, fallback: Any = NOTSET, delimiter: str = ",", **_ignored: Any) -> list[str]:
        found = self.get(section, key, fallback=fallback)
        return [part.strip() for part in found.split(delimiter) if part.strip()] if isinstance(found, str) else found

    def _number(self, section: str, key: str, fallback: Any, kind: type[Any]) -> Any:
        found = self.get(section, key, fallback=fallback)
        try:
            return kind(found)
        except (TypeError, ValueError):
            raise AirflowConfigException(f"the setting {section}.{key} is {found!r}; it must be a number") from None


def _typed(text: str) -> Any:
    """The value of a setting as an integer or a boolean if it is written as one; otherwise the string itself."""
    if text.isdigit():
        return int(text)
    lower = text.lower()
    return lower == "true" if lower in ("true", "false") else text


conf = SettingsReader()
"""The settings of this process."""


def deferrable_or_default(given: bool | None) -> bool:
    """The argument `deferrable` of an operator; without one, the setting operators.default_deferrable (default: False)."""
    return conf.getboolean("operators", "default_deferrable", fallback=False) if given is None else bool(given)
