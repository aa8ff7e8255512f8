"""Check a run's conf against the params of its DAG."""

from __future__ import annotations

from typing import Any

import msgspec

from tradewind.model.definition import DagDefinition
from tradewind.model.errors import DefinitionError, WrongConf
from tradewind.sdk.exceptions import ParamValidationError
from tradewind.sdk.params import NOTSET, Param, ParamsDict


def check_conf(definition: DagDefinition, conf: Any) -> None:
    """Check that a run's conf fits the params of its DAG.

    Raises:
        WrongConf: a value does not fit its schema, a required param is missing, or a schema is wrong; the message says which.
    """
    if not isinstance(conf, dict):
        raise WrongConf(f"conf must be an object with names and values, not {type(conf).__name__}")
    try:
        msgspec.msgpack.encode(conf)
    except (OverflowError, TypeError, ValueError) as error:
        raise WrongConf(f"conf has a value that cannot be sent in a message: {error}") from None
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
    except (ParamValidationError, DefinitionError) as error:
        raise WrongConf(str(error)) from error
