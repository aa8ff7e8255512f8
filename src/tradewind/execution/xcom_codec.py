"""Encoding of XCom values as JSON bytes, and decoding.

JSON values stay as they are. Other values become `{"__type": NAME, "__var": DATA}`:

    datetime, pendulum   {"iso": ISO 8601, "tz": name of the time zone, if any}  → datetime, pendulum.DateTime
    date, time           ISO 8601
    timedelta            [days, seconds, microseconds]
    timezone             name or offset in seconds                               → ZoneInfo, timezone
    tuple, set, frozenset   list
    decimal, uuid, path  string
    bytes                base64
    float                "nan", "inf", "-inf"
    int                  string, for numbers beyond 64 bits
    map                  list of [key, value]: mappings with keys that are not strings, or with the key "__type"
    dataframe            Parquet in base64                                       → pandas.DataFrame
    asset                {"kind": "Asset", "name": …}: assets, references, aliases, their events (`xcom_assets`)
    object               {"class": NAME, "fields": {…}}: dataclasses, attrs, structs   → a dict of the fields

Decoding never imports a class that is named in the data, so a value cannot run code. Subclasses of JSON types (string enums,
defaultdict, numpy.float64) become the JSON type; numpy scalars become Python numbers.

Large lists of plain values are common. The *set* of the element types of a container tells whether its elements need encoding, so a
list of a million numbers takes milliseconds.
"""

from __future__ import annotations

import base64
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum
from pathlib import Path, PurePath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec

from tradewind.execution.xcom_frames import decode_frame, encode_frame, is_frame
from tradewind.sdk.exceptions import XComNotSerializable

TYPE = "__type"
VAR = "__var"
DEPTH_MAX = 200
"""Maximum depth of nesting: much deeper than real data, and much less than what would overflow the interpreter's stack."""

_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
_PLAIN = frozenset({str, bool, type(None)})
_NUMBERS = frozenset({int, float})
_SIMPLE = _PLAIN | _NUMBERS

_encode_json = msgspec.json.Encoder().encode
_decode_json = msgspec.json.Decoder().decode


def encode_xcom(value: Any, path: str = "return_value", *, text_keys: bool = False) -> bytes:
    """Return the JSON bytes of a value. `path` is the name of the value in messages.

    `text_keys`: keys of mappings become strings, as in the XComs of Airflow 2 and 3. Otherwise they keep their types.

    Raises:
        XComNotSerializable: a part of the value cannot be stored; the message names the part and the reason.
    """
    plain = _Encoder(text_keys).plain(value, path, 0)
    try:
        return _encode_json(plain)
    except UnicodeEncodeError as error:
        raise XComNotSerializable(
            f"{path} contains a string that is not valid Unicode (a lone surrogate, {error.object[error.start]!r}) and cannot "
            "be stored as an XCom; decode bytes with errors='replace'"
        ) from None


def decode_xcom(data: bytes) -> Any:
    """Return the value of JSON bytes from `encode_xcom`, or of any other JSON.

    Raises:
        XComNotSerializable: not JSON, or a type tag that this version does not know.
    """
    try:
        value = _decode_json(data)
    except msgspec.DecodeError as error:
        raise XComNotSerializable(f"a stored XCom is not JSON: {error}") from None
    # searching for the bytes is safe: our encoder never escapes the characters of the tag
    return _untag(value) if b'"__type"' in data else value


# --- encoding -------------------------------------------------------------------------------------------------------


def _tag(name: str, data: Any) -> dict[str, Any]:
    return {TYPE: name, VAR: data}


class _Encoder:
    """Encodes one value recursively."""

    def __init__(self, text_keys: bool) -> None:
        self._text_keys = text_keys
        self._open: set[int] = set()
        """Ids of the containers around the current value. A container inside itself is a cycle."""

    def plain(self, value: Any, path: str, depth: int) -> Any:
        """`value`, in which every value that JSON does not have is replaced with its tagged form."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is int:
            return value if _INT_MIN <= value <= _INT_MAX else _tag("int", str(value))
        if kind is float:
            return value if math.isfinite(value) else _tag("float", str(value))
        if depth > DEPTH_MAX:
            raise XComNotSerializable(
                f"{_shortened(path)} is nested more than {DEPTH_MAX} levels deep and cannot be stored as an XCom"
            )
        if kind is list or kind is dict or kind is tuple:
            return self._container(value, path, depth)
        return self._other(value, path, depth)

    def _container(self, value: Any, path: str, depth: int) -> Any:
        """Encode a list, tuple or dict, with a check for cycles."""
        mark = id(value)
        if mark in self._open:
            raise XComNotSerializable(
                f"{_shortened(path)} contains itself (a cycle) and cannot be stored as an XCom; "
                "return ids instead of references"
            )
        self._open.add(mark)
        try:
            if isinstance(value, dict):
                return self._mapping(value, path, depth)
            if isinstance(value, tuple):
                return _tag("tuple", self._elements(value, path, depth))
            return self._elements(value, path, depth)
        finally:
            self._open.discard(mark)

    def _elements(self, values: Any, path: str, depth: int) -> list[Any]:
        if _all_simple(values):
            return list(values)
        return [self.plain(value, f"{path}[{index}]", depth + 1) for index, value in enumerate(values)]

    def _mapping(self, value: dict[Any, Any], path: str, depth: int) -> Any:
        if set(map(type, value)) <= {str} and TYPE not in value:
            if _all_simple(value.values()):
                return dict(value)
            return {key: self.plain(item, f"{path}[{key!r}]", depth + 1) for key, item in value.items()}
        if self._text_keys and not all(isinstance(key, str) for key in value):
            value = {key if isinstance(key, str) else str(key): item for key, item in value.items()}
        if TYPE not in value and all(isinstance(key, str) for key in value):
            return {_text(key): self.plain(item, f"{path}[{key!r}]", depth + 1) for key, item in value.items()}
        pairs = [
            [self.plain(key, f"the key {key!r} of {path}", depth + 1), self.plain(item, f"{path}[{key!r}]", depth + 1)]
            for key, item in value.items()
        ]
        return _tag("map", pairs)

    def _other(self, value: Any, path: str, depth: int) -> Any:
        for kind, encode in _TAGGED:
            if isinstance(value, kind):
                return encode(value)
        if isinstance(value, Enum):
            return self.plain(value.value, path, depth + 1)
        if isinstance(value, str):
            return _text(value)
        if isinstance(value, bool | int):
            return self.plain(int(value), path, depth)
        if isinstance(value, float):
            return self.plain(float(value), path, depth)
        if isinstance(value, dict | list | tuple):
            return self._container(value, path, depth)
        if isinstance(value, set | frozenset):
            name = "set" if isinstance(value, set) else "frozenset"
            return _tag(name, self._elements(_stable_order(value), path, depth))
        if isinstance(value, Mapping):
            return self._container(dict(value), path, depth)
        numpy = sys.modules.get("numpy")  # without numpy in sys.modules the value cannot be a numpy scalar
        if numpy is not None and isinstance(value, numpy.generic):
            return self.plain(value.item(), path, depth + 1)
        if is_frame(value):
            return _tag("dataframe", encode_frame(value, _shortened(path)))
        if "tradewind.sdk.assets" in sys.modules:  # otherwise the value cannot be an asset
            from tradewind.execution import xcom_assets  # lazy import: as above

            data = xcom_assets.data_of(value)
            if data is not None:
                return _tag("asset", self.plain(data, path, depth + 1))
        shown = _fields(value)
        if shown is not None:
            name = f"{type(value).__module__}.{type(value).__qualname__}"
            mark = id(value)
            if mark in self._open:
                raise XComNotSerializable(f"{_shortened(path)} contains itself (a cycle) and cannot be stored as an XCom")
            self._open.add(mark)
            try:
                inside = {key: self.plain(item, f"{path}.{key}", depth + 1) for key, item in shown.items()}
            finally:
                self._open.discard(mark)
            return _tag("object", {"class": name, "fields": inside})
        raise XComNotSerializable(f"{_shortened(path)}: {_described(value)} cannot be stored as an XCom; {_advice(value)}")


def _all_simple(values: Any) -> bool:
    """True if JSON can store these values unchanged."""
    kinds = set(map(type, values))
    if kinds <= _PLAIN:
        return True
    if not kinds <= _SIMPLE:
        return False
    if float in kinds and not all(math.isfinite(value) for value in values if type(value) is float):
        return False
    if int in kinds:
        integers = [value for value in values if type(value) is int]
        return min(integers) >= _INT_MIN and max(integers) <= _INT_MAX
    return True


def _text(value: str) -> str:
    """A plain `str` from an instance of a subclass (for an enum: the value, not the name)."""
    return str.__str__(value.value) if isinstance(value, Enum) else str.__str__(value)


def _stable_order(values: set[Any] | frozenset[Any]) -> list[Any]:
    """The elements in a defined order, so that equal sets give equal bytes."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=repr)


def _zone_name(zone: tzinfo | None) -> str | None:
    """The name of a time zone in the time zone database: zoneinfo's key, pendulum's or pytz's name; None if it has none."""
    for attribute in ("key", "name", "zone"):
        name = getattr(zone, attribute, None)
        if isinstance(name, str):
            return name
    return None


def _moment(value: datetime) -> dict[str, Any]:
    name = "pendulum" if type(value).__module__.startswith("pendulum") else "datetime"
    data = {"iso": value.replace(fold=0).isoformat() if value.tzinfo is None else value.isoformat()}
    zone = _zone_name(value.tzinfo)
    if zone is not None:
        data["tz"] = zone
    return _tag(name, data)


def _zone(value: tzinfo) -> dict[str, Any]:
    name = _zone_name(value)
    if name is not None:
        return _tag("timezone", name)
    offset = value.utcoffset(None)
    if offset is None:
        raise XComNotSerializable(f"the time zone {value!r} has neither a name nor a fixed offset")
    return _tag("timezone", offset.total_seconds())


def _fields(value: Any) -> Mapping[str, Any] | None:
    """The fields of an object whose class declares them (dataclass, attrs, msgspec, pydantic); else None."""
    if isinstance(value, type):
        return None
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    declared = getattr(type(value), "__attrs_attrs__", None)
    if declared is not None:
        return {attribute.name: getattr(value, attribute.name) for attribute in declared}
    names = getattr(type(value), "__struct_fields__", None)  # msgspec
    if names is not None:
        return {name: getattr(value, name) for name in names}
    dump = getattr(type(value), "model_dump", None)  # pydantic
    if dump is not None:
        dumped: dict[str, Any] = dump(value)
        return dumped
    return None


_TAGGED: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (datetime, _moment),  # before date, because a datetime is also a date
    (date, lambda value: _tag("date", value.isoformat())),
    (time, lambda value: _tag("time", value.isoformat())),
    (timedelta, lambda value: _tag("timedelta", [value.days, value.seconds, value.microseconds])),
    (tzinfo, _zone),
    (Decimal, lambda value: _tag("decimal", str(value))),
    (UUID, lambda value: _tag("uuid", str(value))),
    (PurePath, lambda value: _tag("path", str(value))),
    (bytes, lambda value: _tag("bytes", base64.b64encode(value).decode("ascii"))),
    (bytearray, lambda value: _tag("bytes", base64.b64encode(bytes(value)).decode("ascii"))),
)


# --- messages -------------------------------------------------------------------------------------------------------


def _shortened(path: str) -> str:
    return path if len(path) <= 200 else f"{path[:120]}…{path[-60:]}"


def _described(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"<function {value.__qualname__}>"
    return f"<{type(value).__module__}.{type(value).__qualname__}>".replace("<builtins.", "<")


def _advice(value: Any) -> str:
    """A short suggestion of what to return instead."""
    module = type(value).__module__.partition(".")[0]
    if module == "pandas":
        return "return a DataFrame (.to_frame()), or .tolist() if it is small"
    if module in ("polars", "pyarrow"):
        return "return .to_pandas(), or write it to a file and return its path"
    if module == "numpy":
        return "return .tolist() if it is small, or write it to a file and return its path"
    if callable(value):
        return "return the result of calling it, or its name"
    if hasattr(value, "__next__") or hasattr(value, "__iter__"):
        return "return list(…) of it"
    return "return JSON data (strings, numbers, lists, dictionaries), dates, or a dataclass"


# --- decoding -------------------------------------------------------------------------------------------------------


def _untag(value: Any) -> Any:
    if type(value) is list:
        return [_untag(item) for item in value]
    if type(value) is not dict:
        return value
    name = value.get(TYPE)
    if name is None or value.keys() != {TYPE, VAR}:
        return {key: _untag(item) for key, item in value.items()}
    decode = _READERS.get(name)
    if decode is None:
        raise XComNotSerializable(f"a stored XCom has the type tag {name!r}, which this version of Tradewind does not know")
    return decode(value[VAR])


def _read_moment(data: dict[str, str]) -> datetime:
    moment = datetime.fromisoformat(data["iso"])
    name = data.get("tz")
    if name is None or moment.tzinfo is None:
        return moment
    return moment.astimezone(_named_zone(name))


def _named_zone(name: str) -> tzinfo:
    return UTC if name == "UTC" else ZoneInfo(name)


def _read_pendulum(data: dict[str, str]) -> datetime:
    import pendulum  # lazy import: takes 80 ms, needed only for pendulum dates

    moment = datetime.fromisoformat(data["iso"])
    if moment.tzinfo is None:
        return pendulum.instance(moment, tz=None)
    name = data.get("tz")
    found = pendulum.instance(moment)
    return found.in_timezone(name) if name is not None else found


def _read_asset(data: Any) -> Any:
    from tradewind.execution import xcom_assets  # lazy import: only XComs that are assets need it

    return xcom_assets.object_of(_untag(data))


def _read_zone(data: str | float) -> tzinfo:
    return _named_zone(data) if isinstance(data, str) else timezone(timedelta(seconds=data))


_READERS: dict[str, Callable[[Any], Any]] = {
    "datetime": _read_moment,
    "pendulum": _read_pendulum,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda data: timedelta(days=data[0], seconds=data[1], microseconds=data[2]),
    "timezone": _read_zone,
    "tuple": lambda data: tuple(_untag(item) for item in data),
    "set": lambda data: {_untag(item) for item in data},
    "frozenset": lambda data: frozenset(_untag(item) for item in data),
    "decimal": Decimal,
    "uuid": UUID,
    "path": Path,
    "bytes": base64.b64decode,
    "float": float,
    "int": int,
    "map": lambda data: {_untag(key): _untag(item) for key, item in data},
    "dataframe": decode_frame,
    "asset": _read_asset,
    "object": lambda data: {key: _untag(item) for key, item in data["fields"].items()},
}
