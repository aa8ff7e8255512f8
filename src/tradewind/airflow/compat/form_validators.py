"""`airflow.www.validators`: checks of fields in forms, which hooks of provider packages use for the form of their connection."""

from __future__ import annotations

import json
from typing import Any

from tradewind.airflow.compat.helpers import validate_key

__all__ = ["GreaterEqualThan", "ReadOnly", "ValidJson", "ValidKey"]


class ValidJson:
    """The text of a field has to be JSON."""

    def __init__(self, message: str | None = None) -> None:
        self.message = message

    def __call__(self, form: Any, field: Any) -> None:
        """Check a field.

        Raises:
            ValueError: its text is not JSON. The forms show the message.
        """
        if field.data:
            try:
                json.loads(field.data)
            except ValueError as error:
                raise ValueError(self.message or f"JSON Validation Error: {error}") from error


class ValidKey:
    """The text of a field has to be an id: letters, digits, dashes, dots and underscores."""

    def __init__(self, max_length: int = 200) -> None:
        self.max_length = max_length

    def __call__(self, form: Any, field: Any) -> None:
        """Check a field. Raises ValueError."""
        if field.data:
            try:
                validate_key(field.data, self.max_length)
            except Exception as error:
                raise ValueError(str(error)) from error


class GreaterEqualThan:
    """The value of a field has to be at least the one of another field."""

    def __init__(self, fieldname: str, message: str | None = None) -> None:
        self.fieldname, self.message = fieldname, message

    def __call__(self, form: Any, field: Any) -> None:
        """Check a field. Raises ValueError."""
        other = form[self.fieldname]
        if field.data is not None and other.data is not None and field.data < other.data:
            raise ValueError(self.message or f"Field must be greater than or equal to {self.fieldname}.")


class ReadOnly:
    """The field cannot be changed."""

    def __call__(self, form: Any, field: Any) -> None:
        """Mark a field as read-only."""
        field.flags.readonly = True
