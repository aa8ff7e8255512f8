"""What a DAG author writes with: DAGs, operators, groups, decorators, parameters, templates.

The names are those of `NAMES`; each is imported from its module when it is first used, so that a file pays only for what
it needs. `tradewind` itself offers the same names, and `@dag`, whose name is a module's here.
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
"""Name → the module that has it, relative to this package."""


def __getattr__(name: str) -> Any:
    """Lazy door: the module of a name is imported when the name is first used."""
    module = NAMES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(module, __name__), name)
