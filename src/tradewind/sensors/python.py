"""A sensor that asks a Python function."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tradewind.authoring.calling import arguments_for
from tradewind.authoring.decorators import DecoratedOperator
from tradewind.authoring.run import finished
from tradewind.model.errors import DefinitionError
from tradewind.sensors.base import BaseSensorOperator, PokeReturnValue

__all__ = ["DecoratedSensorOperator", "PokeReturnValue", "PythonSensor"]


class PythonSensor(BaseSensorOperator):
    """Waits until a function returns something true, or a `PokeReturnValue` that is done.

    Args: as for `PythonOperator`.
    """

    template_fields: Collection[str] = ("templates_dict", "op_args", "op_kwargs")

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Collection[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        templates_dict: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not callable(python_callable):
            raise DefinitionError(f"{self._called()}: python_callable is {python_callable!r}; it must be a function")
        self.python_callable = python_callable
        self.op_args: Any = op_args if op_args is not None else ()
        self.op_kwargs: Any = op_kwargs if op_kwargs is not None else {}
        self.templates_dict = templates_dict

    def poke(self, context: Any) -> bool | PokeReturnValue:
        if self.templates_dict is not None:
            context["templates_dict"] = self.templates_dict
        call = arguments_for(self.python_callable, self.op_args, self.op_kwargs, context)
        found = finished(self.python_callable(*self.op_args, **call))
        return found if isinstance(found, PokeReturnValue) else bool(found)


class DecoratedSensorOperator(DecoratedOperator, PythonSensor):
    """Behind `@task.sensor`."""

    template_fields: Collection[str] = ("templates_dict", "op_args", "op_kwargs")
    custom_operator_name = "@task.sensor"

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Sequence[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            python_callable=python_callable,
            op_args=op_args,
            op_kwargs=op_kwargs,
            kwargs_to_upstream={"python_callable": python_callable, "op_args": op_args, "op_kwargs": op_kwargs},
            **kwargs,
        )
