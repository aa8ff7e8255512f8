"""`airflow.models.dag_version`: versions of DAGs, as tests of provider packages name them.

Tests need the id of a version to make a task instance. The versions of a deployment are kept by the scheduler; see the REST API.
"""

from __future__ import annotations

import uuid
from typing import Any

from tradewind.airflow.compat.models import Table
from tradewind.execution.local_database import in_test_process
from tradewind.model.errors import NotYetSupported
from tradewind.wire import runtime

__all__ = ["DagVersion"]

_NAMESPACE = uuid.UUID("6d1e8a52-7f0c-4c56-9a2e-6d0b6a6a4d53")


class DagVersion(Table):
    """A version of a DAG."""

    @classmethod
    def get_latest_version(cls, dag_id: str, **_options: Any) -> DagVersion:
        """The version of a DAG in a process that runs tests: there is only one, with an id that depends on the DAG's id.

        Raises:
            NotYetSupported: this process runs no tests.
        """
        if not (runtime.is_local() and in_test_process()):
            raise NotYetSupported(
                "DagVersion.get_latest_version() needs Airflow's metadata database, which user code cannot reach. "
                "Read the versions of a DAG with the REST API: /api/v2/dags/{dag_id}/dagVersions"
            )
        made = object.__new__(cls)
        made.__dict__.update(id=uuid.uuid5(_NAMESPACE, dag_id), dag_id=dag_id, version_number=1, bundle_name=None)
        return made
