"""A run's conf against the params of its DAG."""

from __future__ import annotations

from typing import Any

from tradewind.authoring.exceptions import ParamValidationError
from tradewind.authoring.params import NOTSET, Param, ParamsDict
from tradewind.model.definition import DagDefinition
from tradewind.model.errors import Conflict


def check_conf(definition: DagDefinition, conf: Any) -> None:
    """Raises Conflict with the sentence of the first value that its schema refuses, or of a required one that is missing."""
    if not isinstance(conf, dict):
        raise Conflict(f"conf has to be an object of names and values, not {type(conf).__name__}")
    if not definition.params:
        return
    params = ParamsDict(
        {
            param.name: Param(param.default if param.has_default else NOTSET, param.description, **param.schema)
            for param in definition.params
        }
    )
    try:
        params.deep_merge(conf).validate()
    except ParamValidationError as error:
        raise Conflict(str(error)) from error
