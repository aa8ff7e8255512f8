"""The authoring API: DAGs, operators, task groups, decorators, parameters.

`NAMES` lists the public names. The module of a name is imported when the name is first used, so that a DAG file imports only the
modules that it needs. The package `tradewind` offers the same names, and also `@dag`, because `dag` is the name of a module here.
"""

from __future__ import annotations

import importlib
from typing import Any

NAMES: dict[str, str] = {
    "Asset": ".assets",
    "AssetAlias": ".assets",
    "AssetAll": ".assets",
    "AssetAny": ".assets",
    "AssetOrTimeSchedule": ".assets",
    "Dataset": ".assets",
    "DatasetAlias": ".assets",
    "DatasetOrTimeSchedule": ".assets",
    "Model": ".assets",
    "Metadata": "..execution.asset_events",
    "asset": ".asset_decorator",
    "DAG": ".dag",
    "task": ".decorators",
    "task_group": ".decorators",
    "setup": ".setup_teardown",
    "teardown": ".setup_teardown",
    "TaskGroup": ".taskgroup",
    "BaseOperator": ".operator",
    "DecoratedOperator": ".decorators",
    "XComArg": ".xcom_arg",
    "Param": ".params",
    "ParamsDict": ".params",
    "DagParam": ".params",
    "Label": ".dependencies",
    "EdgeModifier": ".dependencies",
    "chain": ".dependencies",
    "chain_linear": ".dependencies",
    "cross_downstream": ".dependencies",
    "BaseNotifier": ".notifier",
    "DeadlineAlert": ".deadlines",
    "DeadlineReference": ".deadlines",
    "AsyncCallback": ".deadlines",
    "SyncCallback": ".deadlines",
    "BaseOperatorLink": ".operator_link",
    "literal": ".xcom_arg",
    "get_parsing_context": ".load",
    "Variable": ".variables",
    "Connection": ".variables",
    "BaseHook": ".variables",
    "Context": "..execution.context",
    "TaskInstance": "..execution.context",
    "get_current_context": "..execution.context",
}
"""Name → the module that defines it, relative to this package."""


def __getattr__(name: str) -> Any:
    """Lazy import: import the module of a name when the name is first used."""
    module = NAMES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(module, __name__), name)
