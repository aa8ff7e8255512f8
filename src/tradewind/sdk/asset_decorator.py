"""`@asset`: a function that produces an asset. It becomes a DAG with one task.

@asset(schedule="@daily")
def orders(context): ...

@asset(schedule=orders)
def report(orders): ...          # a parameter named like an asset: the asset becomes an inlet

@asset.multi(schedule="@daily", outlets=[a, b])
def both(): ...
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tradewind.execution.asset_events import find_asset
from tradewind.execution.context import ALWAYS, WITH_LOGICAL_DATE
from tradewind.execution.run_task import run_to_end
from tradewind.model.assets import Condition
from tradewind.model.errors import DefinitionError, UnknownArgument, did_you_mean
from tradewind.sdk.assets import Asset, AssetAlias, AssetAll, AssetRef, BaseAsset
from tradewind.sdk.dag import DAG
from tradewind.sdk.operator import BaseOperator

_OF_DAG = (
    "is_paused_upon_creation",
    "dag_display_name",
    "description",
    "params",
    "on_success_callback",
    "on_failure_callback",
    "access_control",
    "owner_links",
    "tags",
    "start_date",
    "end_date",
    "catchup",
    "default_args",
    "max_active_runs",
)
"""Arguments of `@asset` that are passed on to the DAG."""

_GIVEN = ("self", "context", "inlet_events", "outlet_events")
"""Parameters of the function that do not name assets."""


class AssetMainOperator(BaseOperator):
    """The task of `@asset`: calls the function, with assets as arguments."""

    custom_operator_name = "@asset"

    def __init__(self, *, definition: AssetDefinition | MultiAssetDefinition, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._definition = definition
        self.python_callable = definition.function

    def execute(self, context: Any) -> Any:
        function = self.python_callable
        call: dict[str, Any] = {}
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD or parameter.kind is parameter.VAR_POSITIONAL:
                continue
            if name == "self":
                call[name] = self._definition
            elif name == "context":
                call[name] = context
            elif name in context:
                call[name] = context[name]
            elif parameter.default is inspect.Parameter.empty:
                call[name] = find_asset(name)
        return run_to_end(function(**call))


class AssetDefinition(Asset):
    """An asset that is produced by a decorated function."""

    __slots__ = ("dag", "function")

    def __init__(
        self, function: Callable[..., Any], name: str | None, uri: Any, more: Mapping[str, Any], dag: DagOfAsset
    ) -> None:
        super().__init__(name or function.__name__, uri, **more)
        self.function = function
        self.dag = dag.made(self, [self])


class MultiAssetDefinition(BaseAsset):
    """Several assets that are produced by one decorated function."""

    __slots__ = ("_outlets", "dag", "function", "name")

    def __init__(self, function: Callable[..., Any], outlets: Sequence[Asset | AssetAlias], dag: DagOfAsset) -> None:
        if not outlets:
            raise DefinitionError(f"@asset.multi of function {function.__name__} needs outlets")
        self.name = function.__name__
        self.function = function
        self._outlets = list(outlets)
        self.dag = dag.made(self, self._outlets)

    def condition(self) -> Condition:
        return AssetAll(*self._outlets).condition()

    def iter_assets(self) -> Iterator[tuple[Any, Asset]]:
        for one in self._outlets:
            yield from one.iter_assets()

    def __repr__(self) -> str:
        return f"@asset.multi {self.name}"


class DagOfAsset:
    """The arguments of the decorator that concern the DAG."""

    def __init__(self, schedule: Any, dag_id: str | None, more: Mapping[str, Any]) -> None:
        self._schedule = schedule
        self._dag_id = dag_id
        self._more = more

    def made(self, definition: AssetDefinition | MultiAssetDefinition, outlets: Sequence[Any]) -> DAG:
        """Create the DAG with its one task."""
        function = definition.function
        parameters = inspect.signature(function).parameters.values()
        inlets = [
            AssetRef(name=one.name)
            for one in parameters
            if one.name not in _GIVEN
            and one.default is inspect.Parameter.empty
            and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
            and one.name not in _CONTEXT_NAMES
        ]
        more = dict(self._more)
        if function.__doc__:
            more.setdefault("doc_md", inspect.cleandoc(function.__doc__))
        with DAG(self._dag_id or function.__name__, schedule=self._schedule, **more) as dag:
            AssetMainOperator(task_id=function.__name__, definition=definition, inlets=inlets, outlets=list(outlets))
        return dag


_CONTEXT_NAMES = frozenset((*ALWAYS, *WITH_LOGICAL_DATE))


class AssetDecorator:
    """`@asset(schedule=…)`, `@asset.multi(schedule=…, outlets=[…])`."""

    def __call__(
        self,
        function: Callable[..., Any] | None = None,
        *,
        schedule: Any = None,
        name: str | None = None,
        uri: Any = None,
        group: str = "",
        extra: Mapping[str, Any] | None = None,
        watchers: Sequence[Any] = (),
        dag_id: str | None = None,
        **of_dag: Any,
    ) -> Any:
        if function is not None:
            raise DefinitionError("@asset needs arguments: write @asset(schedule=...) above the function")
        dag = DagOfAsset(schedule, dag_id, _checked("@asset", of_dag, ("name", "uri", "group", "extra")))
        more = {"group": group, "extra": extra, "watchers": watchers}
        return lambda function: AssetDefinition(_function("@asset", function), name, uri, more, dag)

    def multi(
        self, *, outlets: Sequence[Asset | AssetAlias], schedule: Any = None, dag_id: str | None = None, **of_dag: Any
    ) -> Any:
        """Decorator for a function that produces several assets."""
        dag = DagOfAsset(schedule, dag_id, _checked("@asset.multi", of_dag, ("outlets",)))
        return lambda function: MultiAssetDefinition(_function("@asset.multi", function), outlets, dag)


def _function(what: str, function: Any) -> Callable[..., Any]:
    if not inspect.isfunction(function):
        raise DefinitionError(f"{what} can decorate only a function, not {function!r}")
    if any(one.kind is one.POSITIONAL_ONLY for one in inspect.signature(function).parameters.values()):
        raise DefinitionError(
            f"{what}: {function.__name__} has positional-only parameters; its arguments are passed by name, so remove the `/`"
        )
    return function


def _checked(what: str, given: Mapping[str, Any], own: tuple[str, ...]) -> Mapping[str, Any]:
    for name in given:
        if name not in _OF_DAG:
            raise UnknownArgument(
                f"{what} takes no argument {name!r}.{did_you_mean(name, (*_OF_DAG, *own, 'schedule', 'dag_id'))}"
            )
    return given


asset = AssetDecorator()
