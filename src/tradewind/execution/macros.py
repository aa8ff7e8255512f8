"""What templates find under `macros`: `{{ macros.ds_add(ds, 7) }}`.

The functions are Airflow's; those of a plugin stand under its name (`macros.ours.workdays_between`).
The modules `time`, `uuid`, `json`, `dateutil` and `yaml` are imported when they are touched.
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
        # lazy door: plugins are loaded where a template names one
        from tradewind.sdk.plugins import macros_of

        macros = None if name.startswith("__") else macros_of(name)
        if macros is None:
            raise AttributeError(f"there is no macro {name!r}, and no plugin of that name with macros")
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
    """The day `days` after `ds` (YYYY-MM-DD); before it, when negative."""
    return (datetime.strptime(str(ds), "%Y-%m-%d") + timedelta(days=days)).strftime("%Y-%m-%d")  # noqa: DTZ007 (a day)


def ds_format(ds: str, input_format: str, output_format: str) -> str:
    """A date written another way. Formats are those of strftime."""
    return datetime.strptime(str(ds), input_format).strftime(output_format)  # noqa: DTZ007 (written as it was read)


def datetime_diff_for_humans(dt: Any, since: datetime | None = None) -> str:
    """How far `dt` lies from `since` (default: now), in words: `1 day before`."""
    import pendulum  # lazy door: costs 80 ms

    other = None if since is None else pendulum.instance(since)
    return str(pendulum.instance(dt).diff_for_humans(other))


def ds_format_locale(ds: str, input_format: str, output_format: str, locale: str | None = None) -> str:
    """A date written in a language: `ds_format_locale("2024-07-09", "%Y-%m-%d", "EEEE dd MMMM yyyy", "fr")`.

    `input_format` is strptime's; `output_format` is a Unicode date pattern (CLDR); `locale` such as `fr_FR`, default: the
    environment's.

    Raises:
        ValueError: a pattern letter or a language that is not known.
    """
    moment = datetime.strptime(str(ds), input_format)  # noqa: DTZ007 (written as it was read)
    # lazy door: pendulum carries the languages' names
    from tradewind.execution.localized_dates import format_pattern

    return format_pattern(moment, output_format, locale)
