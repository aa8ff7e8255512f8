"""Converts what Airflow stores: moments, encrypted texts, confs of runs and XComs. Pure; loads no class that the data names."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID
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
    """The value of a JSON text. SQLite gives a JSON number as a number."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise Unreadable(f"not JSON: {error}") from None


# --- XComs ------------------------------------------------------------------------------------------------------------


def xcom_value(stored: Any) -> Any:
    """The value of an XCom: JSON, or a pickle (1.10, `enable_xcom_pickling`), with Airflow's marked values.

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
    return _convert_marked(_json(stored))


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
    """The value of a marked class. An object with fields (a dataclass, a model of pydantic, an asset) becomes a mapping of its
    fields, as it does in a task here.

    Raises:
        Unreadable: a class that is not converted.
    """
    module, _, short = name.rpartition(".")
    top = module.partition(".")[0]
    try:
        if top == "numpy":
            return data
        if top == "pendulum" and short in ("DateTime", "Date"):
            return _of_pendulum(short, data)
        if short in _READERS and top in _STANDARD:
            return _READERS[short](data)
    except (TypeError, ValueError, KeyError, ArithmeticError) as error:
        raise Unreadable(f"a {short} cannot be read: {error}") from None
    if isinstance(data, dict) and top not in _PACKED:
        return data
    raise Unreadable(f"it has an object of {name}")


_STANDARD = frozenset({"", "builtins", "datetime", "decimal", "uuid", "zoneinfo", "pendulum"})
"""Modules of the classes in `_READERS`. Older releases stored names without a module."""
_PACKED = frozenset({"deltalake", "pyiceberg", "pandas", "kubernetes"})
"""Airflow encrypts or packs the data of objects of these libraries."""


def _zone(data: Any) -> tzinfo:
    """A time zone: its name, or its offset in seconds."""
    if isinstance(data, int | float):
        return timezone(timedelta(seconds=data))
    return UTC if data == "UTC" else ZoneInfo(str(data))


def _moment(data: Any) -> datetime:
    seconds = float(data["timestamp"] if isinstance(data, dict) else data)
    if not isinstance(data, dict):
        return datetime.fromtimestamp(seconds, UTC)
    zone = data.get("tz")
    while isinstance(zone, list | tuple):  # [name or offset, class, version, …]
        zone = zone[0] if zone else None
    if zone is None:
        return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    return datetime.fromtimestamp(seconds, _zone(_OLD_ZONES.get(zone, zone)))


_OLD_ZONES = {"EDT": -4 * 3600, "CDT": -5 * 3600, "MDT": -6 * 3600, "PDT": -7 * 3600, "CEST": "CET"}
"""Names that the first version of Airflow's format stored for summer time."""


def _of_pendulum(kind: str, data: Any) -> Any:
    import pendulum  # lazy import: takes 80 ms

    if kind == "Date":
        return pendulum.Date.fromisoformat(data)
    moment = _moment(data)
    name = getattr(moment.tzinfo, "key", None)
    found = pendulum.instance(moment)
    return found if name is None else found.in_timezone(name)


_READERS: dict[str, Callable[[Any], Any]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "dict": lambda data: data,
    "datetime": _moment,
    "date": date.fromisoformat,
    "timedelta": lambda data: timedelta(seconds=float(data)),
    "Decimal": lambda data: Decimal(str(data)),
    "UUID": UUID,
    "Timezone": _zone,
    "FixedTimezone": _zone,
    "ZoneInfo": _zone,
}
"""The last part of the name of a class → its value."""
