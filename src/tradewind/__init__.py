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
    from tradewind.authoring.asset_decorator import asset as asset
    from tradewind.authoring.asset_events import Metadata as Metadata
    from tradewind.authoring.assets import Asset as Asset
    from tradewind.authoring.assets import AssetAlias as AssetAlias
    from tradewind.authoring.assets import AssetAll as AssetAll
    from tradewind.authoring.assets import AssetAny as AssetAny
    from tradewind.authoring.assets import AssetOrTimeSchedule as AssetOrTimeSchedule
    from tradewind.authoring.assets import Dataset as Dataset
    from tradewind.authoring.assets import DatasetAlias as DatasetAlias
    from tradewind.authoring.assets import DatasetOrTimeSchedule as DatasetOrTimeSchedule
    from tradewind.authoring.assets import Model as Model
    from tradewind.authoring.context import Context as Context
    from tradewind.authoring.context import TaskInstance as TaskInstance
    from tradewind.authoring.context import get_current_context as get_current_context
    from tradewind.authoring.dag import DAG as DAG
    from tradewind.authoring.deadlines import AsyncCallback as AsyncCallback
    from tradewind.authoring.deadlines import DeadlineAlert as DeadlineAlert
    from tradewind.authoring.deadlines import DeadlineReference as DeadlineReference
    from tradewind.authoring.deadlines import SyncCallback as SyncCallback
    from tradewind.authoring.decorators import dag as dag
    from tradewind.authoring.decorators import task as task
    from tradewind.authoring.decorators import task_group as task_group
    from tradewind.authoring.edges import EdgeModifier as EdgeModifier
    from tradewind.authoring.edges import Label as Label
    from tradewind.authoring.edges import chain as chain
    from tradewind.authoring.edges import chain_linear as chain_linear
    from tradewind.authoring.edges import cross_downstream as cross_downstream
    from tradewind.authoring.exceptions import AirflowException as AirflowException
    from tradewind.authoring.exceptions import AirflowFailException as AirflowFailException
    from tradewind.authoring.exceptions import AirflowSensorTimeout as AirflowSensorTimeout
    from tradewind.authoring.exceptions import AirflowSkipException as AirflowSkipException
    from tradewind.authoring.exceptions import AirflowTaskTimeout as AirflowTaskTimeout
    from tradewind.authoring.load import get_parsing_context as get_parsing_context
    from tradewind.authoring.mask_secret import mask_secret as mask_secret
    from tradewind.authoring.notifier import BaseNotifier as BaseNotifier
    from tradewind.authoring.operator import BaseOperator as BaseOperator
    from tradewind.authoring.operator_link import BaseOperatorLink as BaseOperatorLink
    from tradewind.authoring.params import Param as Param
    from tradewind.authoring.params import ParamsDict as ParamsDict
    from tradewind.authoring.plugins import AirflowPlugin as AirflowPlugin
    from tradewind.authoring.setup_teardown import setup as setup
    from tradewind.authoring.setup_teardown import teardown as teardown
    from tradewind.authoring.taskgroup import TaskGroup as TaskGroup
    from tradewind.authoring.variables import BaseHook as BaseHook
    from tradewind.authoring.variables import Connection as Connection
    from tradewind.authoring.variables import Variable as Variable
    from tradewind.authoring.xcom_arg import XComArg as XComArg
    from tradewind.authoring.xcom_arg import literal as literal
    from tradewind.model.states import RunState as DagRunState  # noqa: F401
    from tradewind.model.states import TaskState as TaskInstanceState  # noqa: F401
    from tradewind.model.states import TriggerRule as TriggerRule
    from tradewind.model.states import WeightRule as WeightRule

__version__ = "0.1.0"
"""As in pyproject.toml; a test compares them. (Asking importlib.metadata costs more than everything else here.)"""

_NAMES: dict[str, str] = {
    "Asset": "authoring.assets:Asset",
    "AssetAlias": "authoring.assets:AssetAlias",
    "AssetAll": "authoring.assets:AssetAll",
    "AssetAny": "authoring.assets:AssetAny",
    "AssetOrTimeSchedule": "authoring.assets:AssetOrTimeSchedule",
    "Dataset": "authoring.assets:Dataset",
    "DatasetAlias": "authoring.assets:DatasetAlias",
    "DatasetOrTimeSchedule": "authoring.assets:DatasetOrTimeSchedule",
    "Model": "authoring.assets:Model",
    "Metadata": "authoring.asset_events:Metadata",
    "asset": "authoring.asset_decorator:asset",
    "DAG": "authoring.dag:DAG",
    "dag": "authoring.decorators:dag",
    "task": "authoring.decorators:task",
    "task_group": "authoring.decorators:task_group",
    "setup": "authoring.setup_teardown:setup",
    "teardown": "authoring.setup_teardown:teardown",
    "TaskGroup": "authoring.taskgroup:TaskGroup",
    "BaseOperator": "authoring.operator:BaseOperator",
    "XComArg": "authoring.xcom_arg:XComArg",
    "Param": "authoring.params:Param",
    "ParamsDict": "authoring.params:ParamsDict",
    "Label": "authoring.edges:Label",
    "EdgeModifier": "authoring.edges:EdgeModifier",
    "chain": "authoring.edges:chain",
    "chain_linear": "authoring.edges:chain_linear",
    "cross_downstream": "authoring.edges:cross_downstream",
    "Variable": "authoring.variables:Variable",
    "Connection": "authoring.variables:Connection",
    "BaseHook": "authoring.variables:BaseHook",
    "Context": "authoring.context:Context",
    "TaskInstance": "authoring.context:TaskInstance",
    "get_current_context": "authoring.context:get_current_context",
    "AirflowPlugin": "authoring.plugins:AirflowPlugin",
    "AirflowException": "authoring.exceptions:AirflowException",
    "AirflowFailException": "authoring.exceptions:AirflowFailException",
    "AirflowSensorTimeout": "authoring.exceptions:AirflowSensorTimeout",
    "AirflowSkipException": "authoring.exceptions:AirflowSkipException",
    "AirflowTaskTimeout": "authoring.exceptions:AirflowTaskTimeout",
    "BaseNotifier": "authoring.notifier:BaseNotifier",
    "DeadlineAlert": "authoring.deadlines:DeadlineAlert",
    "DeadlineReference": "authoring.deadlines:DeadlineReference",
    "AsyncCallback": "authoring.deadlines:AsyncCallback",
    "SyncCallback": "authoring.deadlines:SyncCallback",
    "BaseOperatorLink": "authoring.operator_link:BaseOperatorLink",
    "mask_secret": "authoring.mask_secret:mask_secret",
    "literal": "authoring.xcom_arg:literal",
    "get_parsing_context": "authoring.load:get_parsing_context",
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
        advice = importlib.import_module("tradewind.authoring.moved").advice(fullname)
        if advice is not None:
            raise ModuleNotFoundError(advice)


sys.meta_path.append(AirflowImportPaths)
