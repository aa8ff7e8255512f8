"""`SerializedDAG` of Airflow 2: a DAG as JSON data and back, as tests of extra links in provider packages use it.

Tradewind stores DAGs in its own format (`sdk/definition.py`); this one is only for those tests.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from typing import Any, cast

from tradewind.airflow.compat.serde import BaseSerialization
from tradewind.sdk.dag import DAG
from tradewind.sdk.operator import BaseOperator

__all__ = ["DagSerialization", "OperatorSerialization", "SerializedBaseOperator", "SerializedDAG"]

_LOOKS = ("ui_color", "ui_fgcolor", "template_fields", "template_ext", "template_fields_renderers")


class SerializedBaseOperator(BaseOperator):
    """A task that was made from JSON data. It has the attributes and links of the operator, and cannot be executed."""

    @property
    def task_type(self) -> str:
        """The name of the operator's class."""
        return str(self.__dict__.get("_serialized_type", "BaseOperator"))

    @staticmethod
    def serialize_operator(op: BaseOperator) -> dict[str, Any]:
        """A task as JSON data."""
        links: list[dict[str, Any]] = [
            {f"{type(link).__module__}.{type(link).__qualname__}": {}} for link in op.operator_extra_links or ()
        ]
        return {
            "task_id": op.task_id,
            "owner": op.owner,
            "label": op.label,
            "pool": op.pool,
            "_task_type": op.task_type,
            "_task_module": type(op).__module__,
            "_is_empty": op.inherits_from_empty_operator,
            "downstream_task_ids": sorted(op.downstream_task_ids),
            **{name: BaseSerialization.serialize(getattr(op, name, None)) for name in _LOOKS},
            **{name: BaseSerialization.serialize(getattr(op, name, None)) for name in op.template_fields},
            **({"_operator_extra_links": links} if links else {}),
        }

    @classmethod
    def deserialize_operator(cls, encoded_op: Mapping[str, Any]) -> SerializedBaseOperator:
        """A task from its JSON data."""
        made = cls(task_id=encoded_op["task_id"], owner=encoded_op["owner"], pool=encoded_op["pool"])
        fields = BaseSerialization.deserialize(encoded_op["template_fields"])
        for name in (*_LOOKS, *fields):
            setattr(made, name, BaseSerialization.deserialize(encoded_op[name]))
        made.__dict__["_serialized_type"] = encoded_op["_task_type"]
        made.operator_extra_links = tuple(
            _link(path, arguments) for one in encoded_op.get("_operator_extra_links", ()) for path, arguments in one.items()
        )
        return made


class SerializedDAG(DAG):
    """A DAG that was made from JSON data."""

    @classmethod
    def to_dict(cls, var: DAG) -> dict[str, Any]:
        """A DAG as JSON data."""
        return {
            "__version": 1,
            "dag": {
                "_dag_id": var.dag_id,
                "fileloc": var.fileloc,
                "start_date": BaseSerialization.serialize(var.start_date),
                "tasks": [SerializedBaseOperator.serialize_operator(task) for task in var.tasks],
            },
        }

    @classmethod
    def from_dict(cls, serialized_obj: Mapping[str, Any]) -> SerializedDAG:
        """A DAG from its JSON data."""
        data = serialized_obj["dag"]
        made = cls(data["_dag_id"], schedule=None, start_date=BaseSerialization.deserialize(data["start_date"]))
        made.fileloc = data["fileloc"]
        for one in data["tasks"]:
            made.add_task(SerializedBaseOperator.deserialize_operator(one))
        for one in data["tasks"]:
            for downstream in one["downstream_task_ids"]:
                made.set_dependency(one["task_id"], downstream)
        return made

    @classmethod
    def to_json(cls, var: DAG) -> str:
        """A DAG as a JSON text."""
        return json.dumps(cls.to_dict(var))

    @classmethod
    def from_json(cls, serialized_obj: str) -> SerializedDAG:
        """A DAG from its JSON text."""
        return cls.from_dict(cast("Mapping[str, Any]", json.loads(serialized_obj)))


class DagSerialization:
    """Airflow 3.2's name of the methods of `SerializedDAG`."""

    to_dict = SerializedDAG.to_dict
    from_dict = SerializedDAG.from_dict
    to_json = SerializedDAG.to_json
    from_json = SerializedDAG.from_json

    @staticmethod
    def serialize_dag(dag: DAG) -> dict[str, Any]:
        """The part `dag` of the JSON data of a DAG."""
        data: dict[str, Any] = SerializedDAG.to_dict(dag)["dag"]
        return data

    @staticmethod
    def deserialize_dag(encoded_dag: Mapping[str, Any]) -> SerializedDAG:
        """A DAG from the part `dag` of its JSON data."""
        return SerializedDAG.from_dict({"dag": encoded_dag})


class OperatorSerialization:
    """Airflow 3.2's name of the methods of `SerializedBaseOperator`."""

    serialize_operator = SerializedBaseOperator.serialize_operator
    deserialize_operator = SerializedBaseOperator.deserialize_operator


def _link(path: str, arguments: Mapping[str, Any]) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)(**arguments)
