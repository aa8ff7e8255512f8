"""Sensors that the provider package of Azure dropped: the present ones take `deferrable=True`."""

from __future__ import annotations

import importlib
from typing import Any

_PRESENT = {
    "AzureDataFactoryPipelineRunStatusAsyncSensor": "data_factory:AzureDataFactoryPipelineRunStatusSensor",
    "WasbBlobAsyncSensor": "wasb:WasbBlobSensor",
}
"""Dropped sensor → module and name of the present one. Each module needs other packages, so it is imported when it is needed."""


def __getattr__(name: str) -> Any:
    """A sensor that waits in the triggerer.

    Raises:
        AttributeError: no sensor of this name was dropped.
    """
    if name not in _PRESENT:
        raise AttributeError(name)
    module, _, present = _PRESENT[name].partition(":")
    base = getattr(importlib.import_module(f"airflow.providers.microsoft.azure.sensors.{module}"), present)

    def init(self: Any, **kwargs: Any) -> None:
        base.__init__(self, deferrable=True, **kwargs)

    made = type(base)(name, (base,), {"__module__": __name__, "__init__": init, "__doc__": f"{present}(deferrable=True)."})
    globals()[name] = made
    return made
