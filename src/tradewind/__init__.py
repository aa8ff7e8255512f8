"""Tradewind: a workflow orchestrator for people who run Apache Airflow today.

    from tradewind import DAG, task
    from tradewind.operators.bash import BashOperator

What a DAG author needs is offered here under Airflow's names, and imported when it is first used: `import tradewind`
itself takes a few milliseconds.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

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
"""As in pyproject.toml; a test compares them. (Asking importlib.metadata costs more than everything else here.)"""

_NAMES: dict[str, str] = {
    "Asset": "sdk.assets:Asset",
    "AssetAlias": "sdk.assets:AssetAlias",
    "AssetAll": "sdk.assets:AssetAll",
    "AssetAny": "sdk.assets:AssetAny",
    "AssetOrTimeSchedule": "sdk.assets:AssetOrTimeSchedule",
    "Dataset": "sdk.assets:Dataset",
    "DatasetAlias": "sdk.assets:DatasetAlias",
    "DatasetOrTimeSchedule": "sdk.assets:DatasetOrTimeSchedule",
    "Model": "sdk.assets:Model",
    "Metadata": "execution.asset_events:Metadata",
    "asset": "sdk.asset_decorator:asset",
    "DAG": "sdk.dag:DAG",
    "dag": "sdk.decorators:dag",
    "task": "sdk.decorators:task",
    "task_group": "sdk.decorators:task_group",
    "setup": "sdk.setup_teardown:setup",
    "teardown": "sdk.setup_teardown:teardown",
    "TaskGroup": "sdk.taskgroup:TaskGroup",
    "BaseOperator": "sdk.operator:BaseOperator",
    "XComArg": "sdk.xcom_arg:XComArg",
    "Param": "sdk.params:Param",
    "ParamsDict": "sdk.params:ParamsDict",
    "Label": "sdk.dependencies:Label",
    "EdgeModifier": "sdk.dependencies:EdgeModifier",
    "chain": "sdk.dependencies:chain",
    "chain_linear": "sdk.dependencies:chain_linear",
    "cross_downstream": "sdk.dependencies:cross_downstream",
    "Variable": "sdk.variables:Variable",
    "Connection": "sdk.variables:Connection",
    "BaseHook": "sdk.variables:BaseHook",
    "Context": "execution.context:Context",
    "TaskInstance": "execution.context:TaskInstance",
    "get_current_context": "execution.context:get_current_context",
    "AirflowPlugin": "sdk.plugins:AirflowPlugin",
    "AirflowException": "sdk.exceptions:AirflowException",
    "AirflowFailException": "sdk.exceptions:AirflowFailException",
    "AirflowSensorTimeout": "sdk.exceptions:AirflowSensorTimeout",
    "AirflowSkipException": "sdk.exceptions:AirflowSkipException",
    "AirflowTaskTimeout": "sdk.exceptions:AirflowTaskTimeout",
    "BaseNotifier": "sdk.notifier:BaseNotifier",
    "DeadlineAlert": "sdk.deadlines:DeadlineAlert",
    "DeadlineReference": "sdk.deadlines:DeadlineReference",
    "AsyncCallback": "sdk.deadlines:AsyncCallback",
    "SyncCallback": "sdk.deadlines:SyncCallback",
    "BaseOperatorLink": "sdk.operator_link:BaseOperatorLink",
    "mask_secret": "sdk.mask_secret:mask_secret",
    "literal": "sdk.xcom_arg:literal",
    "get_parsing_context": "sdk.load:get_parsing_context",
    "DagRunState": "model.states:RunState",
    "TaskInstanceState": "model.states:TaskState",
    "TriggerRule": "model.states:TriggerRule",
    "WeightRule": "model.states:WeightRule",
}

__all__ = [*_NAMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """Lazy door: the module of a name is imported when the name is first used."""
    target = _NAMES.get(name)
    if target is None:
        raise AttributeError(f"module 'tradewind' has no attribute {name!r}")
    module, _, attribute = target.partition(":")
    value = getattr(importlib.import_module(f"tradewind.{module}"), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})


class AirflowImportPaths:
    """The last entry of `sys.meta_path`: an import of Airflow's path (`tradewind.models`) says where the name is today."""

    @staticmethod
    def find_spec(fullname: str, path: object = None, target: object = None) -> None:
        """Nothing is found here: Python asks when no other finder knows the module.

        Raises:
            ModuleNotFoundError: with the place. Its `name` is None: Python drops an error that names the module when
                `from tradewind import models` fails, and shows a general one instead.
        """
        if not fullname.startswith("tradewind."):
            return
        advice = importlib.import_module("tradewind.sdk.moved_names").advice(fullname)
        if advice is not None:
            raise ModuleNotFoundError(advice)


sys.meta_path.append(AirflowImportPaths)
