"""A sensor that calls a Python function."""

from __future__ import annotations

from typing import Any

from tradewind.operators.callables import CallableOperator, DecoratedCallableOperator
from tradewind.sensors.base import BaseSensorOperator, PokeReturnValue

__all__ = ["DecoratedSensorOperator", "PokeReturnValue", "PythonSensor"]


class PythonSensor(CallableOperator, BaseSensorOperator):
    """Waits until a function returns a true value, or a `PokeReturnValue` that is done.

    Args: see `CallableOperator`.
    """

    def poke(self, context: Any) -> bool | PokeReturnValue:
        found = self.call(context)
        return found if isinstance(found, PokeReturnValue) else bool(found)


class DecoratedSensorOperator(DecoratedCallableOperator, PythonSensor):
    """The operator of `@task.sensor`."""

    custom_operator_name = "@task.sensor"
