"""The hook of Google's AutoML, a service that does not exist any more. DAG files use its helper in templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tradewind.sdk.exceptions import AirflowFailException
from tradewind.sdk.variables import BaseHook

__all__ = ["CloudAutoMLHook"]


class CloudAutoMLHook(BaseHook):
    """Only the helper works. DAGs with operators of AutoML can be loaded, but these tasks fail; see `dropped_operators`."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        raise AirflowFailException(
            "CloudAutoMLHook: Google has ended AutoML, and the provider package has dropped its hook. Use Vertex AI "
            "(airflow.providers.google.cloud.operators.vertex_ai)"
        )

    @staticmethod
    def extract_object_id(obj: Mapping[str, Any]) -> str:
        """The id at the end of an object's name: `projects/p/locations/l/datasets/TBL1` → `TBL1`."""
        return str(obj["name"]).rpartition("/")[2]
