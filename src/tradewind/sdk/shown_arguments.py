"""Arguments of DAG authors as JSON values for people and API clients, in the form in which Airflow shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tradewind.model.moments import duration_micros, iso, iso_duration, to_micros
from tradewind.model.secret_names import masked

TEXT_MAX = 4096
"""Maximum length of one text, characters; the rest is cut off."""
DEPTH_MAX = 8
"""Maximum depth of nested containers; deeper ones are shown as text."""

_CODE = re.compile(r"on_\w+_callback|retry_policy|sla_miss_callback")
"""Arguments whose values are code. Callbacks have their own field in the definition."""


def shown_text(value: Any) -> str:
    """The text of an object, without memory addresses: with them each parse would make a new version of the DAG."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))[:TEXT_MAX]


def shown_config(config: Any) -> str:
    """The text of an `executor_config`; empty: none was given."""
    if not config:
        return ""
    return shown_text(dict(config) if isinstance(config, Mapping) else config)


def shown_default_args(given: Mapping[str, Any]) -> dict[str, Any]:
    """The `default_args` of a DAG. As in Airflow, code is replaced by a flag (`has_on_failure_callback`); secrets are masked."""
    found = {str(name): _shown(value, 0) for name, value in given.items() if not _CODE.fullmatch(str(name))}
    flags = {f"has_{name}": True for name, value in given.items() if value and _CODE.fullmatch(str(name))}
    shown: dict[str, Any] = masked({**found, **flags})
    return shown


def _shown(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool) or type(value) in (int, float):
        return value
    if isinstance(value, timedelta):
        return iso_duration(duration_micros(value))
    if isinstance(value, datetime):
        return iso(to_micros(value if value.tzinfo is not None else value.replace(tzinfo=UTC)))
    if isinstance(value, str) or depth >= DEPTH_MAX:
        return shown_text(value)
    if isinstance(value, Mapping):
        return {shown_text(name): _shown(item, depth + 1) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(item, depth + 1) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(map(shown_text, value))
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return shown_text(value)
