"""Columns and methods of Airflow 1, 2 and 3's table `DagRun` that DAG files, callbacks and plugins read.

Columns of Airflow's own services (`last_scheduling_decision`, `log_template_id` …) are None here, as in a run that Airflow has just
created.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from tradewind.execution.refused_methods import Refused
from tradewind.model.errors import did_you_mean

if TYPE_CHECKING:
    from pendulum import DateTime

    from tradewind.execution.other_instances import OtherTaskInstance
    from tradewind.execution.task_instance import DagRun, TaskInstance

_BY_SCHEDULER = (
    "the scheduler decides the states of a run and of its tasks. Use `tradewind airflow dags trigger`, `tradewind tasks clear`, "
    "or the REST API (/api/v2)"
)

_PLAIN = (
    "dag_id",
    "run_id",
    "logical_date",
    "data_interval_start",
    "data_interval_end",
    "run_after",
    "start_date",
    "end_date",
    "clear_number",
    "run_type",
    "state",
    "conf",
    "triggering_user_name",
    "consumed_asset_events",
    "partition_key",
    "partition_date",
    "note",
    "team_name",
)
"""The fields of Airflow 3's `DagRun` in a task."""


class OlderRunMethods:
    """Base of `DagRun`."""

    DEFAULT_DAGRUNS_TO_EXAMINE = 20
    ID_PREFIX = "scheduled__"
    ID_FORMAT_PREFIX = "scheduled__{0}"

    backfill_id: int | None = None
    backfill = backfill_max_active_runs = None
    created_dag_version = created_dag_version_id = version_number = None
    creating_job_id: int | None = None
    dag_hash: str | None = None
    last_scheduling_decision: datetime | None = None
    log_template_id: int | None = None
    scheduled_by_job_id: int | None = None
    span_status = "not_started"
    team_name: str | None = None

    update_state = Refused(_BY_SCHEDULER)
    verify_integrity = Refused(_BY_SCHEDULER)
    schedule_tis = Refused(_BY_SCHEDULER)
    task_instance_scheduling_decisions = Refused(_BY_SCHEDULER)
    execute_dag_callbacks = Refused(_BY_SCHEDULER)
    produce_dag_callback = Refused(_BY_SCHEDULER)
    notify_dagrun_state_changed = Refused(_BY_SCHEDULER)
    next_dagruns_to_examine = Refused(_BY_SCHEDULER)
    get_running_dag_runs_to_examine = Refused(_BY_SCHEDULER)
    get_queued_dag_runs_to_set_running = Refused(_BY_SCHEDULER)

    def _run(self) -> DagRun:
        return cast("DagRun", self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise AttributeError(f"a DAG run has no attribute {name!r}.{did_you_mean(name, dir(self))}")

    # --- columns -------------------------------------------------------------------------------------------------------

    @property
    def created_at(self) -> DateTime | None:
        """The time when the run was created: it was queued then."""
        found: DateTime | None = self._run().queued_at
        return found

    @property
    def updated_at(self) -> DateTime | None:
        """The end of the run, its start, or its creation."""
        run = self._run()
        found: DateTime | None = run.end_date or run.start_date or run.queued_at
        return found

    @property
    def duration(self) -> float | None:
        """Seconds; None if the run has not ended."""
        run = self._run()
        return None if run.start_date is None or run.end_date is None else (run.end_date - run.start_date).total_seconds()

    @property
    def context_carrier(self) -> dict[str, Any]:
        """Empty: no traces are recorded."""
        return {}

    @property
    def deadlines(self) -> list[Any]:
        """Empty: deadlines are known only to the scheduler."""
        return []

    @property
    def stats_tags(self) -> dict[str, str]:
        """Tags of metrics."""
        run = self._run()
        return {"dag_id": run.dag_id, "run_type": str(run.run_type.value)}

    @property
    def consumed_dataset_events(self) -> list[Any]:
        """Airflow 2's name of `consumed_asset_events`."""
        return self._run().consumed_asset_events

    # --- other runs ----------------------------------------------------------------------------------------------------

    def get_previous_scheduled_dagrun(self, session: Any = None) -> DagRun | None:
        """The latest run before this one that the schedule has created; None if there is none."""
        run = self._run()
        if run.logical_date is None:
            return None
        known = run.find(dag_id=run.dag_id, run_type="scheduled", execution_end_date=run.logical_date)
        earlier = [one for one in known if one.logical_date is not None and one.logical_date < run.logical_date]
        return max(earlier, key=lambda one: one.logical_date, default=None)

    @classmethod
    def get_run(cls, dag_id: str, execution_date: datetime, session: Any = None) -> DagRun | None:
        """The run of a DAG on a logical date, or None."""
        found = cast("type[DagRun]", cls).find(dag_id=dag_id, execution_date=execution_date)
        return found[0] if found else None

    @classmethod
    def find_duplicate(
        cls, dag_id: str, run_id: str, execution_date: datetime | None = None, session: Any = None
    ) -> DagRun | None:
        """The run with this id, otherwise the run on this logical date; None if there is neither."""
        found = cast("type[DagRun]", cls).find(dag_id=dag_id, run_id=run_id)
        if found:
            return found[0]
        return None if execution_date is None else cls.get_run(dag_id, execution_date)

    @classmethod
    def get_latest_runs(cls, session: Any = None) -> list[DagRun]:
        """The latest run of each DAG."""
        latest: dict[str, DagRun] = {}
        for run in cast("type[DagRun]", cls).find():  # the oldest first
            latest[run.dag_id] = run
        return list(latest.values())

    @classmethod
    def active_runs_of_dags(
        cls, dag_ids: Any = None, only_running: bool = False, session: Any = None, exclude_backfill: bool = False
    ) -> dict[str, int]:
        """DAG id → number of running (and queued) runs. DAGs without such runs are left out."""
        counts: dict[str, int] = {}
        for state in ("running",) if only_running else ("running", "queued"):
            for run in cast("type[DagRun]", cls).find(dag_id=dag_ids, state=state, no_backfills=exclude_backfill):
                counts[run.dag_id] = counts.get(run.dag_id, 0) + 1
        return counts

    @staticmethod
    def fetch_task_instance(
        dag_id: str, dag_run_id: str, task_id: str, session: Any = None, map_index: int = -1
    ) -> OtherTaskInstance | TaskInstance | None:
        """The task instance of a run, or None."""
        from tradewind.execution.task_instance import DagRun  # lazy import: the module needs this one

        return DagRun(dag_id=dag_id, run_id=dag_run_id).get_task_instance(task_id, map_index=map_index)

    @staticmethod
    def id_for_date(date: datetime) -> str:
        """The id that Airflow 1 gives a scheduled run: `scheduled__2024-01-31T00:00:00`."""
        return f"scheduled__{date.isoformat()[:19]}"

    # --- as Airflow 3's model of pydantic ----------------------------------------------------------------------------------

    def model_dump(self, *_args: Any, include: Any = None, exclude: Any = None, **_options: Any) -> Mapping[str, Any]:
        """The fields of the run by name. Other arguments of pydantic have no effect.

        Args:
            include, exclude: names of fields.
        """
        run = self._run()
        wanted = [name for name in _PLAIN if (include is None or name in include) and name not in (exclude or ())]
        return {name: getattr(run, name) if name != "consumed_asset_events" else [] for name in wanted}
