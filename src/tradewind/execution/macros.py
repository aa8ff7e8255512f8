"""The functions and modules that templates use as `macros`: `{{ macros.ds_add(ds, 7) }}`.

The functions are Airflow's. Functions of a plugin are found under the name of the plugin (`macros.ours.workdays_between`). The
modules `time`, `uuid`, `json`, `dateutil` and `yaml` are imported on first use.
"""

from __future__ import annotations

import importlib
from datetime import datetime, timedelta
from random import random
from typing import Any

from tradewind.sdk.exceptions import AirflowOptionalProviderFeatureException

__all__ = ["datetime", "datetime_diff_for_humans", "ds_add", "ds_format", "ds_format_locale", "random", "timedelta"]

_MODULES = {"time": "time", "uuid": "uuid", "json": "json", "dateutil": "dateutil", "yaml": "yaml"}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        # lazy import: plugins are loaded only if a template uses one
        from tradewind.sdk.plugins import macros_of

        macros = None if name.startswith("__") else macros_of(name)
        if macros is None:
            raise AttributeError(f"there is no macro {name!r}, and no plugin with this name that has macros")
        return macros
    try:
        found = importlib.import_module(module)
        if name == "dateutil":
            for part in ("parser", "relativedelta", "rrule", "tz"):
                importlib.import_module(f"dateutil.{part}")
    except ImportError as error:
        raise AirflowOptionalProviderFeatureException(
            f"macros.{name} needs the package {'PyYAML' if name == 'yaml' else module}, which is not installed ({error})"
        ) from error
    globals()[name] = found
    return found


def ds_add(ds: str, days: int) -> str:
    """The date `days` days after `ds` (YYYY-MM-DD). A negative number goes back in time."""
    return (datetime.strptime(str(ds), "%Y-%m-%d") + timedelta(days=days)).strftime("%Y-%m-%d")  # noqa: DTZ007 (a date only)


def ds_format(ds: str, input_format: str, output_format: str) -> str:
    """Convert a date string from one strftime format to another."""
    return datetime.strptime(str(ds), input_format).strftime(output_format)  # noqa: DTZ007 (the result has no time zone either)


def datetime_diff_for_humans(dt: Any, since: datetime | None = None) -> str:
    """The difference between `dt` and `since` (default: now) in words: `1 day before`."""
    import pendulum  # lazy import: takes 80 ms

    other = None if since is None else pendulum.instance(since)
    return str(pendulum.instance(dt).diff_for_humans(other))


def ds_format_locale(ds: str, input_format: str, output_format: str, locale: str | None = None) -> str:
    """Format a date in a language: `ds_format_locale("2024-07-09", "%Y-%m-%d", "EEEE dd MMMM yyyy", "fr")`.

    Args:
        input_format: a strptime format.
        output_format: a Unicode date pattern (CLDR).
        locale: such as `fr_FR`. Default: the locale of the environment.

    Raises:
        ValueError: an unknown field in the pattern, or an unknown language.
    """
    moment = datetime.strptime(str(ds), input_format)  # noqa: DTZ007 (the result has no time zone either)
    # lazy import: uses pendulum's names of days and months
    from tradewind.execution.localized_dates import format_pattern

    return format_pattern(moment, output_format, locale)
