"""Operators and sensors whose service, or whose provider package, does not exist any more.

The DAG loads, so that its graph and its other tasks can be used. The task itself fails with a message.
"""

from __future__ import annotations

from typing import Any

from tradewind.airflow.compat import server_internals
from tradewind.sdk import open_dags
from tradewind.sdk.arguments import OperatorArguments
from tradewind.sdk.exceptions import AirflowFailException
from tradewind.sdk.operator import BaseOperator

_OF_EVERY_OPERATOR = frozenset(OperatorArguments.__annotations__) | {"task_id", "dag", "task_group", "default_args", "params"}

_made: dict[str, Any] = {}


class DroppedOperator(BaseOperator):
    """Accepts all arguments. Its task fails, because the installed provider package does not have this operator any more."""

    def __init__(self, **kwargs: Any) -> None:
        self.dropped_arguments = {name: kwargs.pop(name) for name in list(kwargs) if name not in _OF_EVERY_OPERATOR}
        super().__init__(**kwargs)
        open_dags.warn_author(f"{_sentence(self)} The DAG loads, and this task will fail")

    def execute(self, context: Any) -> Any:
        """Fail.

        Raises:
            AirflowFailException: always.
        """
        raise AirflowFailException(
            f"{_sentence(self)} Replace the task, or install a release of the package that has {type(self).__name__}"
        )


def _sentence(operator: BaseOperator) -> str:
    return (
        f"{type(operator).__name__} {operator.task_id!r}: the installed provider package does not have this operator any more."
    )


def __getattr__(name: str) -> Any:
    """The substitute for a dropped name: for operators and sensors a class whose tasks fail, for other names a class that
    cannot be instantiated.

    Raises:
        AttributeError: a special name.
    """
    if name.startswith("__"):
        raise AttributeError(name)
    if name not in _made:
        if name.endswith(("Operator", "Sensor")):
            _made[name] = type(name, (DroppedOperator,), {"__module__": __name__, "__doc__": DroppedOperator.__doc__})
        else:
            _made[name] = getattr(server_internals, name)
    return _made[name]
