"""Links of Airflow's operators to the runs that they trigger or wait for; Tradewind's web page shows these links by itself."""

from __future__ import annotations

from typing import Any

from tradewind.sdk.operator_link import BaseOperatorLink

__all__ = ["ExternalDagLink", "ExternalTaskSensorLink", "TriggerDagRunLink"]


class _Unlinked(BaseOperatorLink):
    """A link without a target."""

    def get_link(self, operator: Any, *, ti_key: Any = None, **_kwargs: Any) -> str:
        """Return an empty address."""
        return ""


class TriggerDagRunLink(_Unlinked):
    """A link to the run that a task has triggered."""

    name = "Triggered DAG"


class ExternalDagLink(_Unlinked):
    """A link to the run that a task waits for."""

    name = "External DAG"


ExternalTaskSensorLink = ExternalDagLink
"""Name of `ExternalDagLink` until Airflow 2.4."""
