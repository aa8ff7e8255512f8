"""`airflow.models.dag_version`: versions of DAGs, as tests of provider packages name them.

Tests need the id of a version to make a task instance. The versions of a deployment are read as other tables are: see `queries`.
"""

from __future__ import annotations

import importlib
import uuid
from typing import Any

from tradewind.airflow.compat.models import Table
from tradewind.execution.local_database import in_test_process
from tradewind.wire import runtime

__all__ = ["DagVersion"]

_NAMESPACE = uuid.UUID("6d1e8a52-7f0c-4c56-9a2e-6d0b6a6a4d53")


class DagVersion(Table):
    """A version of a DAG."""

    @classmethod
    def get_latest_version(cls, dag_id: str, **_options: Any) -> Any:
        """The latest version of a DAG; None if there is none.

        In a process that runs tests there is only one, with an id that depends on the DAG's id.

        Raises:
            DatabaseNotReachable: no task is running.
        """
        if not (runtime.is_local() and in_test_process()):
            queries = importlib.import_module("tradewind.airflow.compat.queries")  # it needs this table
            return queries.Query((cls,)).filter_by(dag_id=dag_id).order_by(cls.version_number.desc()).first()
        made = object.__new__(cls)
        made.__dict__.update(id=uuid.uuid5(_NAMESPACE, dag_id), dag_id=dag_id, version_number=1, bundle_name=None)
        return made
