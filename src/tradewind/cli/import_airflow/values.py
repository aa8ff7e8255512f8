"""Converts what Airflow stores: moments, encrypted texts, confs of runs and XComs. Pure; loads no class that the data names."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from tradewind.model.moments import to_micros


class Unreadable(Exception):
    """A value cannot be converted. The text is the reason, without the value."""


# --- moments ----------------------------------------------------------------------------------------------------------


def micros(value: Any) -> int | None:
    """Convert a moment of a driver into microseconds: a datetime or a text, in UTC if it has no time zone.

    Raises:
        Unreadable: the value is something else.
    """
    if value is None:
        return None
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        return to_micros(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise Unreadable(f"{value!r} is not a date") from None


# --- encrypted texts --------------------------------------------------------------------------------------------------


class Keys:
    """The Fernet keys of an Airflow, the newest first.

    Raises:
        Unreadable: one of them is not a Fernet key.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        from cryptography.fernet import Fernet  # lazy import: 20 ms

        try:
            self._keys = [Fernet(key.encode()) for key in keys]
        except ValueError:
            raise Unreadable("a Fernet key has 32 bytes, as URL-safe base64: it is core.fernet_key of Airflow") from None

    def decrypt(self, text: str | None, is_encrypted: object) -> str | None:
        """The plain text.

        Raises:
            Unreadable: no key fits.
        """
        from cryptography.fernet import InvalidToken

        if not is_encrypted or not text:
            return text
        if not self._keys:
            raise Unreadable("it is encrypted: give the Fernet key of Airflow (--fernet-key)")
        for key in self._keys:
            try:
                return key.decrypt(text.encode()).decode()
            except InvalidToken:
                continue
        raise Unreadable("no given Fernet key fits")


# --- pickles ----------------------------------------------------------------------------------------------------------

_HARMLESS = {
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("builtins", "bytearray"): bytearray,
    ("builtins", "complex"): complex,
    ("datetime", "datetime"): datetime,
    ("datetime", "timedelta"): timedelta,
    ("datetime", "timezone"): timezone,
    ("decimal", "Decimal"): Decimal,
    ("collections", "OrderedDict"): dict,
    ("_codecs", "encode"): lambda text, encoding="utf-8": text.encode(encoding),
}
"""Classes that a pickle may contain: plain values. `_codecs.encode` is needed for bytes in old protocols."""


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        module = {"__builtin__": "builtins"}.get(module, module)
        if module == "datetime" and name in ("date", "time"):
            import datetime as standard

            return getattr(standard, name)
        try:
            return _HARMLESS[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it has an object of {module}.{name}") from None


def unpickled(data: bytes) -> Any:
    """The value of a pickle of plain values.

    Raises:
        Unreadable: the pickle contains an object of another class, which is not loaded.
    """
    try:
        return _PlainUnpickler(io.BytesIO(data)).load()
    except Exception as error:  # a damaged pickle may raise anything
        raise Unreadable(f"a pickled value cannot be read: {error}") from None


def conf_of_run(stored: Any) -> dict[str, Any]:
    """The conf of a run: a pickle until Airflow 2, JSON in Airflow 3.

    Raises:
        Unreadable: the conf is not a mapping with JSON values.
    """
    if stored is None or stored == "" or stored == b"":
        return {}
    found = unpickled(bytes(stored)) if isinstance(stored, bytes | bytearray | memoryview) else _json(stored)
    while isinstance(found, str):  # Airflow 1.10 pickles the JSON text of some confs
        found = _json(found) if found else {}
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise Unreadable(f"the conf is {type(found).__name__}, not a mapping")
    return dict(json.loads(json.dumps(found, default=str)))


def _json(text: Any) -> Any:
    """JSON, or the value that the driver has decoded from it."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise Unreadable(f"not JSON: {error}") from None


# --- XComs ------------------------------------------------------------------------------------------------------------


def xcom_value(stored: Any, *, nested_json: bool) -> Any:
    """The value of an XCom: JSON, or a pickle (1.10, `enable_xcom_pickling`), with Airflow's marked values.

    Args:
        nested_json: the first releases of Airflow 3 store the text of the JSON as JSON.

    Raises:
        Unreadable: it cannot be converted.
    """
    if isinstance(stored, bytes | bytearray | memoryview):
        data = bytes(stored)
        if data[:1] == b"\x80":
            return unpickled(data)
        try:
            stored = data.decode()
        except UnicodeDecodeError:
            return unpickled(data)  # protocol 0 and 1
        found = _json(stored)
    else:
        found = _json(stored)
        if nested_json and isinstance(found, str) and found[:1] in ('"', "{", "["):
            try:
                found = json.loads(found)
            except ValueError:
                pass  # a plain text that begins like JSON
    return _convert_marked(found)


class _Marked(NamedTuple):
    name: str
    data: Any


def _marked(value: dict[str, Any]) -> _Marked | None:
    """A value with the name of its class, in the format of Airflow's serialization: `__classname__`, or `__type` in older
    releases.
    """
    for name, data in (("__classname__", "__data__"), ("__type", "__var")):
        if name in value:
            return _Marked(str(value[name]), value.get(data))
    return None


def _convert_marked(value: Any) -> Any:
    if isinstance(value, list):
        return [_convert_marked(one) for one in value]
    if not isinstance(value, dict):
        return value
    marked = _marked(value)
    if marked is None:
        return {key: _convert_marked(one) for key, one in value.items()}
    return _convert_object(marked.name, _convert_marked(marked.data))


def _convert_object(name: str, data: Any) -> Any:
    """The value of a marked class.

    Raises:
        Unreadable: a class that is not converted.
    """
    short = name.rpartition(".")[2]
    try:
        if short in ("tuple", "set", "frozenset"):
            return {"tuple": tuple, "set": set, "frozenset": frozenset}[short](data)
        if short == "dict":
            return data
        if short in ("datetime", "DateTime"):
            return _moment(data)
        if short == "timedelta":
            return timedelta(seconds=float(data))
        if short == "Decimal":
            return Decimal(str(data))
    except (TypeError, ValueError, KeyError, ArithmeticError) as error:
        raise Unreadable(f"a {short} cannot be read: {error}") from None
    raise Unreadable(f"it has an object of {name}")


def _moment(data: Any) -> datetime:
    seconds = float(data["timestamp"] if isinstance(data, dict) else data)
    zone = data.get("tz") if isinstance(data, dict) else None
    while isinstance(zone, list | tuple):  # [name, version, …], or a name in a list
        zone = zone[0] if zone else None
    return datetime.fromtimestamp(seconds, ZoneInfo(zone) if isinstance(zone, str) and "." not in zone else UTC)
