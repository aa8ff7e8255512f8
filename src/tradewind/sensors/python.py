"""A sensor that asks a Python function."""

from __future__ import annotations

from typing import Any

from tradewind.operators.callables import CallsFunction, DecoratedCall
from tradewind.sensors.base import BaseSensorOperator, PokeReturnValue

__all__ = ["DecoratedSensorOperator", "PokeReturnValue", "PythonSensor"]


class PythonSensor(CallsFunction, BaseSensorOperator):
    """Waits until a function returns something true, or a `PokeReturnValue` that is done.

    Args: see `CallsFunction`.
    """

    def poke(self, context: Any) -> bool | PokeReturnValue:
        found = self.call(context)
        return found if isinstance(found, PokeReturnValue) else bool(found)


class DecoratedSensorOperator(DecoratedCall, PythonSensor):
    """Behind `@task.sensor`."""

    custom_operator_name = "@task.sensor"
