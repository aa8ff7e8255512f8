"""`airflow.utils.json`: values as JSON."""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from tradewind.execution.xcom_codec import decode_xcom, encode_xcom

__all__ = ["AirflowJsonEncoder", "WebEncoder", "XComDecoder", "XComEncoder"]


class WebEncoder(json.JSONEncoder):
    """Writes dates as ISO 8601 and numbers of `decimal` as numbers."""

    def default(self, o: Any) -> Any:
        """Convert a value of a type that JSON does not have."""
        if isinstance(o, datetime | date):
            return o.isoformat()
        if isinstance(o, Decimal):
            return int(o) if o == o.to_integral_value() else float(o)
        if isinstance(o, bytes):
            return o.decode(errors="replace")
        if isinstance(o, set | frozenset):
            return sorted(o, key=str)
        for method in ("tolist", "item"):  # numpy
            if hasattr(o, method):
                return getattr(o, method)()
        return super().default(o)


AirflowJsonEncoder = WebEncoder


class XComEncoder(json.JSONEncoder):
    """Writes a value as XComs are written."""

    def encode(self, o: Any) -> str:
        """The text of a value."""
        return bytes(encode_xcom(o)).decode()


class XComDecoder(json.JSONDecoder):
    """Reads what `XComEncoder` has written."""

    def decode(self, s: str, *_args: Any) -> Any:
        """The value of a text."""
        return decode_xcom(s.encode())
