"""`DagRunType`, the type of a run as DAG authors see it."""

from __future__ import annotations

from enum import Enum


class DagRunType(str, Enum):  # noqa: UP042 (as in Airflow, str() of a member is its name, and it equals its value)
    """The type of a run. A template shows `DagRunType.SCHEDULED`; a comparison with `"scheduled"` is true."""

    SCHEDULED = "scheduled"
    MANUAL = "manual"
    BACKFILL_JOB = "backfill"
    ASSET_TRIGGERED = "asset_triggered"
    OPERATOR_TRIGGERED = "operator_triggered"
    ASSET_MATERIALIZATION = "asset_materialization"

    def generate_run_id(self, *, suffix: str) -> str:
        """`manual__<suffix>`."""
        return f"{self.value}__{suffix}"

    @staticmethod
    def from_run_id(run_id: str) -> DagRunType:
        """The type that the beginning of a run id names; `MANUAL` if it names none."""
        return next((kind for kind in DagRunType if run_id.startswith(f"{kind.value}__")), DagRunType.MANUAL)
