"""XCom backends of Airflow: classes that keep values elsewhere, for example in an object store (`core.xcom_backend`).

    class OurBackend(BaseXCom):
        @staticmethod
        def serialize_value(value, key=None, task_id=None, dag_id=None, run_id=None, map_index=None): ...
        @staticmethod
        def deserialize_value(result): ...

The result of `serialize_value` is stored as the XCom `{"__xcom_backend": CLASS, "value": …}`. The class is used only in the
processes of tasks. The configured class reads the value. The class name in the data is never imported.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tradewind.execution.xcom_codec import decode_xcom, encode_xcom
from tradewind.sdk.conf import conf
from tradewind.sdk.exceptions import AirflowConfigException, AirflowException

if TYPE_CHECKING:
    from tradewind.execution.task_instance import TaskInstance

TAG = "__xcom_backend"
_TAG_BYTES = f'"{TAG}"'.encode()
_DEFAULTS = (".BaseXCom", ".XCom")


def backend() -> Any | None:
    """The configured class; None: Tradewind stores XComs itself.

    Raises:
        AirflowConfigException: there is no such class, or it has no functions to write and read values.
    """
    path = str(conf.get("core", "xcom_backend", fallback="") or "").strip()
    return None if not path or path.endswith(_DEFAULTS) else _load(path)


@functools.lru_cache(maxsize=4)
def _load(path: str) -> Any:
    module, _, name = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise AirflowConfigException(f"the XCom backend {path!r} (core.xcom_backend) cannot be imported: {error}") from error
    if not callable(getattr(found, "serialize_value", None)) or not callable(getattr(found, "deserialize_value", None)):
        raise AirflowConfigException(f"the XCom backend {path!r} must have the functions serialize_value and deserialize_value")
    return found


def encode(ti: TaskInstance, key: str, value: Any) -> bytes:
    """The JSON bytes of a value that a task pushes.

    Raises: XComNotSerializable: the value, or the result of the backend, cannot be stored.
        Exception: the exception of the backend.
    """
    cls = backend()
    if cls is None:
        dag = ti.task.get_dag()
        return encode_xcom(value, key, text_keys=dag is None or dag.generation > 1)  # Airflow 1 pickled values
    where = {"key": key, "task_id": ti.task_id, "dag_id": ti.dag_id, "run_id": ti.run_id, "map_index": ti.map_index}
    known = inspect.signature(cls.serialize_value).parameters
    if not any(one.kind is inspect.Parameter.VAR_KEYWORD for one in known.values()):
        where = {name: text for name, text in where.items() if name in known}
    stored = cls.serialize_value(value, **where)
    return encode_xcom({TAG: f"{cls.__module__}.{cls.__qualname__}", "value": stored}, key)


def decode(data: bytes) -> Any:
    """The value of a stored XCom.

    Raises:
        AirflowException: a backend wrote the value, and none is configured now.
        Exception: the exception of the backend.
    """
    value = decode_xcom(data)
    if _TAG_BYTES not in data or not isinstance(value, dict) or value.keys() != {TAG, "value"}:
        return value
    cls = backend()
    if cls is None:
        raise AirflowException(f"the XCom was written by the backend {value[TAG]}; set core.xcom_backend to read it")
    return cls.deserialize_value(SimpleNamespace(value=value["value"]))
