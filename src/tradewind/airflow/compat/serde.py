"""`airflow.sdk.serde` and `airflow.serialization.serde`: values as JSON data, and back.

The data has the format of Tradewind's XComs, not of Airflow's. Dataclasses and objects of classes with fields come back as
dictionaries, because classes that the data names are not imported.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tradewind.execution.xcom_codec import decode_xcom, encode_xcom

__all__ = ["decode", "deserialize", "encode", "serialize"]


def serialize(o: object, depth: int = 0) -> Any:
    """A value as JSON data.

    Raises:
        XComNotSerializable: a part of the value cannot be stored.
    """
    return msgspec.json.decode(encode_xcom(o, "value"))


def deserialize(o: Any, full: bool = True, type_hint: Any = None) -> Any:
    """The value of JSON data from `serialize`.

    Args:
        full, type_hint: accepted; without effect.

    Raises:
        XComNotSerializable: data of a kind that this version does not know.
    """
    return decode_xcom(msgspec.json.encode(o))


def encode(cls: str, version: int, data: Any) -> dict[str, Any]:
    """Airflow's format for the data of an object."""
    return {"__classname__": cls, "__version__": version, "__data__": data}


def decode(d: dict[str, Any]) -> tuple[str, int, Any]:
    """Class name, version and data in Airflow's format."""
    return d["__classname__"], d["__version__"], d.get("__data__")


class BaseSerialization:
    """`airflow.serialization.serialized_objects.BaseSerialization`: values as JSON data and back, in Tradewind's format."""

    @staticmethod
    def serialize(var: Any, **_options: Any) -> Any:
        """JSON data for a value. Raises as `serialize`."""
        return serialize(var)

    @staticmethod
    def deserialize(encoded_var: Any, **_options: Any) -> Any:
        """The value of JSON data. Raises as `deserialize`."""
        return deserialize(encoded_var)
