"""Tradewind: a workflow orchestrator for people who run Apache Airflow today.

    from tradewind import DAG, task
    from tradewind.operators.bash import BashOperator

This module offers the names that DAG authors need, which are Airflow's names. Each is imported when it is first used, so that
`import tradewind` itself takes a few milliseconds.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from tradewind.lazy_names import import_name

if TYPE_CHECKING:
    from tradewind.execution.asset_events import Metadata as Metadata
    from tradewind.execution.context import Context as Context
    from tradewind.execution.context import TaskInstance as TaskInstance
    from tradewind.execution.context import get_current_context as get_current_context
    from tradewind.model.states import RunState as DagRunState  # noqa: F401
    from tradewind.model.states import TaskState as TaskInstanceState  # noqa: F401
    from tradewind.model.states import TriggerRule as TriggerRule
    from tradewind.model.states import WeightRule as WeightRule
    from tradewind.sdk.asset_decorator import asset as asset
    from tradewind.sdk.asset_watchers import AssetWatcher as AssetWatcher
    from tradewind.sdk.assets import Asset as Asset
    from tradewind.sdk.assets import AssetAlias as AssetAlias
    from tradewind.sdk.assets import AssetAll as AssetAll
    from tradewind.sdk.assets import AssetAny as AssetAny
    from tradewind.sdk.assets import AssetOrTimeSchedule as AssetOrTimeSchedule
    from tradewind.sdk.assets import Dataset as Dataset
    from tradewind.sdk.assets import DatasetAlias as DatasetAlias
    from tradewind.sdk.assets import DatasetOrTimeSchedule as DatasetOrTimeSchedule
    from tradewind.sdk.assets import Model as Model
    from tradewind.sdk.dag import DAG as DAG
    from tradewind.sdk.deadlines import AsyncCallback as AsyncCallback
    from tradewind.sdk.deadlines import DeadlineAlert as DeadlineAlert
    from tradewind.sdk.deadlines import DeadlineReference as DeadlineReference
    from tradewind.sdk.deadlines import SyncCallback as SyncCallback
    from tradewind.sdk.decorators import dag as dag
    from tradewind.sdk.decorators import task as task
    from tradewind.sdk.decorators import task_group as task_group
    from tradewind.sdk.dependencies import EdgeModifier as EdgeModifier
    from tradewind.sdk.dependencies import Label as Label
    from tradewind.sdk.dependencies import chain as chain
    from tradewind.sdk.dependencies import chain_linear as chain_linear
    from tradewind.sdk.dependencies import cross_downstream as cross_downstream
    from tradewind.sdk.exceptions import AirflowException as AirflowException
    from tradewind.sdk.exceptions import AirflowFailException as AirflowFailException
    from tradewind.sdk.exceptions import AirflowSensorTimeout as AirflowSensorTimeout
    from tradewind.sdk.exceptions import AirflowSkipException as AirflowSkipException
    from tradewind.sdk.exceptions import AirflowTaskTimeout as AirflowTaskTimeout
    from tradewind.sdk.load import get_parsing_context as get_parsing_context
    from tradewind.sdk.mask_secret import mask_secret as mask_secret
    from tradewind.sdk.notifier import BaseNotifier as BaseNotifier
    from tradewind.sdk.operator import BaseOperator as BaseOperator
    from tradewind.sdk.operator_link import BaseOperatorLink as BaseOperatorLink
    from tradewind.sdk.params import Param as Param
    from tradewind.sdk.params import ParamsDict as ParamsDict
    from tradewind.sdk.plugins import AirflowPlugin as AirflowPlugin
    from tradewind.sdk.setup_teardown import setup as setup
    from tradewind.sdk.setup_teardown import teardown as teardown
    from tradewind.sdk.taskgroup import TaskGroup as TaskGroup
    from tradewind.sdk.variables import BaseHook as BaseHook
    from tradewind.sdk.variables import Connection as Connection
    from tradewind.sdk.variables import Variable as Variable
    from tradewind.sdk.xcom_arg import XComArg as XComArg
    from tradewind.sdk.xcom_arg import literal as literal

__version__ = "0.1.0"
"""The same as in pyproject.toml; a test compares them. (Reading it with importlib.metadata would be slow.)"""

NAMES: dict[str, str] = {
    "Asset": "sdk.assets",
    "AssetAlias": "sdk.assets",
    "AssetAll": "sdk.assets",
    "AssetAny": "sdk.assets",
    "AssetOrTimeSchedule": "sdk.assets",
    "AssetWatcher": "sdk.asset_watchers",
    "Dataset": "sdk.assets",
    "DatasetAlias": "sdk.assets",
    "DatasetOrTimeSchedule": "sdk.assets",
    "Model": "sdk.assets",
    "Metadata": "execution.asset_events",
    "asset": "sdk.asset_decorator",
    "DAG": "sdk.dag",
    "dag": "sdk.decorators",
    "task": "sdk.decorators",
    "task_group": "sdk.decorators",
    "setup": "sdk.setup_teardown",
    "teardown": "sdk.setup_teardown",
    "TaskGroup": "sdk.taskgroup",
    "BaseOperator": "sdk.operator",
    "XComArg": "sdk.xcom_arg",
    "Param": "sdk.params",
    "ParamsDict": "sdk.params",
    "Label": "sdk.dependencies",
    "EdgeModifier": "sdk.dependencies",
    "chain": "sdk.dependencies",
    "chain_linear": "sdk.dependencies",
    "cross_downstream": "sdk.dependencies",
    "Variable": "sdk.variables",
    "Connection": "sdk.variables",
    "BaseHook": "sdk.variables",
    "Context": "execution.context",
    "TaskInstance": "execution.context",
    "get_current_context": "execution.context",
    "AirflowPlugin": "sdk.plugins",
    "AirflowException": "sdk.exceptions",
    "AirflowFailException": "sdk.exceptions",
    "AirflowSensorTimeout": "sdk.exceptions",
    "AirflowSkipException": "sdk.exceptions",
    "AirflowTaskTimeout": "sdk.exceptions",
    "BaseNotifier": "sdk.notifier",
    "DeadlineAlert": "sdk.deadlines",
    "DeadlineReference": "sdk.deadlines",
    "AsyncCallback": "sdk.deadlines",
    "SyncCallback": "sdk.deadlines",
    "BaseOperatorLink": "sdk.operator_link",
    "mask_secret": "sdk.mask_secret",
    "literal": "sdk.xcom_arg",
    "get_parsing_context": "sdk.load",
    "DagRunState": "model.states:RunState",
    "TaskInstanceState": "model.states:TaskState",
    "TriggerRule": "model.states",
    "WeightRule": "model.states",
}
"""Name → the module below `tradewind` that defines it (`module:name` if it has another name there)."""

__all__ = [*NAMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """Lazy import: import the module of a name when the name is first used."""
    return import_name(__name__, NAMES, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *NAMES})


class AirflowImportPaths:
    """The last finder of `sys.meta_path`: an import of one of Airflow's paths (`tradewind.models`) fails with the present place."""

    @staticmethod
    def find_spec(fullname: str, path: object = None, target: object = None) -> None:
        """Find nothing: Python calls this finder when no other finder knows the module.

        Raises:
            ModuleNotFoundError: with the present place of the module. Its `name` is None: otherwise Python would
                show a general error for `from tradewind import models`.
        """
        if not fullname.startswith("tradewind."):
            return
        advice = importlib.import_module("tradewind.sdk.moved_names").advice(fullname)
        if advice is not None:
            raise ModuleNotFoundError(advice)


sys.meta_path.append(AirflowImportPaths)
