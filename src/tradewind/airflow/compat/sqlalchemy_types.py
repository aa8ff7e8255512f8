"""`airflow.utils.sqlalchemy` and `airflow.models.base`: column types that provider packages use for their own tables."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import TIMESTAMP, DateTime, String
from sqlalchemy.types import TypeDecorator

__all__ = ["TIMESTAMP", "StringID", "UtcDateTime", "naming_convention"]

naming_convention = {
    "ix": "idx_%(column_0_N_label)s",
    "uq": "%(table_name)s_%(column_0_N_name)s_uq",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "%(table_name)s_%(column_0_name)s_fkey",
    "pk": "%(table_name)s_pkey",
}
"""The naming convention of constraints."""


class UtcDateTime(TypeDecorator[datetime]):
    """A column of moments: stored in UTC, read as timezone-aware values."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:
        """The moment in UTC.

        Raises:
            ValueError: the value has no time zone.
        """
        if value is not None and value.tzinfo is None:
            raise ValueError("naive datetime is disallowed")
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:
        """The moment as a timezone-aware value."""
        return value if value is None or value.tzinfo is not None else value.replace(tzinfo=UTC)


def StringID(*, length: int = 250, **kwargs: Any) -> String:
    """The type of ids."""
    return String(length=length, **kwargs)


def _get_schema() -> str | None:
    """Return None: Airflow's tables have no schema."""
    return None
