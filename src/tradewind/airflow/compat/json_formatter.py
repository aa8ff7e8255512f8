"""`airflow.utils.log.json_formatter`: log records as JSON."""

from __future__ import annotations

import json
import logging
from typing import Any

__all__ = ["JSONFormatter"]


class JSONFormatter(logging.Formatter):
    """Writes some fields of a record, and constant ones, as one JSON object."""

    def __init__(
        self,
        fmt: str | None = None,
        datefmt: str | None = None,
        style: Any = "%",
        json_fields: list[str] | None = None,
        extras: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(fmt, datefmt, style)
        self.json_fields = json_fields or []
        self.extras = extras or {}

    def usesTime(self) -> bool:
        """Return True: the time is always written."""
        return True

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON."""
        super().format(record)
        found = {label: getattr(record, label, None) for label in self.json_fields}
        if "message" in found:
            parts = [record.message, record.exc_text, self.formatStack(record.stack_info) if record.stack_info else None]
            found["message"] = "\n".join(part for part in parts if part)
        return json.dumps({**found, **self.extras}, default=str)
