"""Task instances other than the running one, as user code reads them: `dag_run.get_task_instances()`, queries of `TaskInstance`.

They have the values of the moment of the request, and cannot be changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from tradewind.execution import xcom_pulls
from tradewind.execution.instance_names import XCOM_RETURN_KEY, TaskInstanceKey, log_url, to_pendulum
from tradewind.model.errors import NotYetSupported, did_you_mean
from tradewind.model.ids import ANY_KEY
from tradewind.sdk.variables import NOTSET, request_value
from tradewind.wire.messages import ListRows, XComPull

if TYPE_CHECKING:
    from pendulum import DateTime

    from tradewind.execution.task_instance import DagRun

__all__ = ["OtherTaskInstance", "instances_of_run"]

ALTERNATIVE = (
    "user code cannot change other task instances. Use the command line (`tradewind airflow tasks …`) or the REST API (/api/v2)"
)

_FIELDS = (
    "dag_id",
    "task_id",
    "run_id",
    "map_index",
    "state",
    "try_number",
    "max_tries",
    "hostname",
    "pid",
    "executor",
    "note",
    "pool",
    "pool_slots",
    "queue",
    "operator",
    "custom_operator_name",
)
"""Values of a row that are attributes under the same name."""

_NOT_KEPT = (
    "job_id",
    "queued_by_job_id",
    "external_executor_id",
    "trigger_id",
    "trigger_timeout",
    "next_method",
    "next_kwargs",
    "triggerer_job",
)
"""Columns of Airflow that have no value here."""


class OtherTaskInstance:
    """A task instance other than the running one, with its values at the time of the request."""

    table = "TaskInstance"

    def __init__(
        self,
        dag_id: str,
        task_id: str,
        run_id: str,
        state: str | None,
        *,
        facts: Mapping[str, Any] | None = None,
        dag_run: DagRun | None = None,
    ) -> None:
        """Create one from a row.

        Args:
            facts: further values of the row, as an answer to `ListRows` has them. Without them only the state is known.
            dag_run: the run, if it is known.
        """
        given = {**(facts or {}), "dag_id": dag_id, "task_id": task_id, "run_id": run_id, "state": state}
        own: dict[str, Any] = dict.fromkeys((*_FIELDS, *_NOT_KEPT))
        own.update({name: given[name] for name in _FIELDS if name in given})
        own["map_index"] = given.get("map_index", -1)
        own["hostname"] = given.get("hostname") or ""
        own["pool_slots"] = given.get("pool_slots") or 1
        own["_facts"] = given
        own["_dag_run"] = dag_run
        self.__dict__.update(own)

    def __setattr__(self, name: str, value: Any) -> None:
        """Keep a task, as code does before it renders templates. Refuse other changes.

        Raises:
            NotYetSupported: the message says what to use instead.
        """
        if name != "task":
            raise NotYetSupported(f"TaskInstance.{name} cannot be changed: {ALTERNATIVE}")
        self.__dict__["task"] = value

    def __getattr__(self, name: str) -> Any:
        if name == "task":
            return self._own_task()
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"a task instance that is not running in this process has no attribute {name!r}.{did_you_mean(name, dir(self))}"
        )

    def _own_task(self) -> Any:
        """The task, if the run knows its DAG and the DAG has the task; otherwise None."""
        run = self.__dict__["_dag_run"]
        dag = run.dag if run is not None else None
        return None if dag is None else dag.task_dict.get(self.task_id)

    # --- dates -----------------------------------------------------------------------------------------------------

    def _date(self, name: str) -> DateTime | None:
        return to_pendulum(self.__dict__["_facts"].get(name))

    @property
    def start_date(self) -> DateTime | None:
        return self._date("started_at")

    @property
    def end_date(self) -> DateTime | None:
        return self._date("ended_at")

    @property
    def queued_dttm(self) -> DateTime | None:
        return self._date("queued_at")

    @property
    def scheduled_dttm(self) -> DateTime | None:
        """The time of scheduling is not kept: the time when it was queued."""
        return self._date("queued_at")

    @property
    def updated_at(self) -> DateTime | None:
        """The end, the start, or the time when it was queued."""
        return self.end_date or self.start_date or self.queued_dttm

    @property
    def duration(self) -> float | None:
        """Seconds; None if the task instance has not ended."""
        facts = self.__dict__["_facts"]
        started, ended = facts.get("started_at"), facts.get("ended_at")
        return None if started is None or ended is None else (ended - started) / 1e6

    @property
    def logical_date(self) -> DateTime | None:
        """The logical date of the run."""
        facts, run = self.__dict__["_facts"], self.__dict__["_dag_run"]
        return self._date("logical_date") if "logical_date" in facts or run is None else run.logical_date

    execution_date = logical_date

    # --- names -----------------------------------------------------------------------------------------------------

    @property
    def key(self) -> TaskInstanceKey:
        return TaskInstanceKey(self.dag_id, self.task_id, self.run_id, self.try_number or 1, self.map_index)

    @property
    def log_url(self) -> str:
        """The URL of the task log."""
        return log_url(self.dag_id, self.run_id, self.task_id, self.map_index, self.try_number or None)

    @property
    def mark_success_url(self) -> str:
        """The same as `log_url`, as in Airflow 3."""
        return self.log_url

    @property
    def rendered_map_index(self) -> str | None:
        label: str | None = self.__dict__["_facts"].get("map_label")
        return (label or str(self.map_index)) if self.map_index >= 0 else None

    @property
    def operator_name(self) -> str | None:
        name: str | None = self.custom_operator_name
        return name

    @property
    def task_display_name(self) -> str:
        return str(getattr(self.task, "task_display_name", None) or self.task_id)

    @property
    def priority_weight(self) -> int | None:
        return getattr(self.task, "priority_weight", None)

    @property
    def unixname(self) -> str | None:
        return getattr(self.task, "run_as_user", None)

    run_as_user = unixname

    @property
    def prev_attempted_tries(self) -> int:
        """The number of the last try."""
        return self.try_number or 0

    @property
    def next_try_number(self) -> int:
        return self.prev_attempted_tries + 1

    @property
    def dag_run(self) -> DagRun | None:
        """The run; None if it does not exist any more."""
        if self.__dict__["_dag_run"] is None:
            from tradewind.execution.task_instance import DagRun  # lazy import: the module needs this one

            found = DagRun.find(dag_id=self.dag_id, run_id=self.run_id)
            self.__dict__["_dag_run"] = found[0] if found else None
        run: DagRun | None = self.__dict__["_dag_run"]
        return run

    def get_dagrun(self, session: Any = None) -> DagRun | None:
        return self.dag_run

    # --- requests --------------------------------------------------------------------------------------------------

    def current_state(self, session: Any = None) -> str | None:
        """The current state."""
        again = self._read_again()
        return None if again is None else again.state

    def refresh_from_db(self, *_args: Any, **_options: Any) -> None:
        """Read all values again. If the task instance does not exist any more, they stay as they are."""
        again = self._read_again()
        if again is not None:
            self.__dict__.update({**again.__dict__, "_dag_run": self.__dict__["_dag_run"]})

    def _read_again(self) -> OtherTaskInstance | None:
        found = instances_of_run(self.dag_id, self.run_id, (self.task_id,), self.__dict__["_dag_run"])
        return next((one for one in found if one.map_index == self.map_index), None)

    def xcom_pull(
        self,
        task_ids: str | Iterable[str] | None = None,
        dag_id: str | None = None,
        key: str | None = XCOM_RETURN_KEY,
        include_prior_dates: bool = False,
        *,
        map_indexes: Any = NOTSET,
        default: Any = None,
        run_id: str | None = None,
        session: Any = None,
    ) -> Any:
        """Values of tasks of the run; see `TaskInstance.xcom_pull`. Without `task_ids`, the value of this task instance."""
        given = None if task_ids is None else task_ids if isinstance(task_ids, str) else tuple(task_ids)
        single = given is None or isinstance(given, str)
        ids: tuple[str, ...] = (self.task_id,) if given is None else (given,) if isinstance(given, str) else given
        if given is None and map_indexes is NOTSET:
            map_indexes = self.map_index
        indexes = xcom_pulls.indexes_of(map_indexes)
        request = XComPull(
            op=0,
            dag_id=dag_id or self.dag_id,
            run_id=run_id or self.run_id,
            task_ids=ids,
            key=ANY_KEY if key is None else key,
            map_indexes=indexes,
            include_prior_dates=include_prior_dates,
        )
        rows = xcom_pulls.request_rows(request)
        return xcom_pulls.result_of(ids, rows, single=single, map_indexes=map_indexes, indexes=indexes, default=default)

    def refuse(self, *_args: Any, **_options: Any) -> NoReturn:
        """Refuse a change of this task instance.

        Raises:
            NotYetSupported: always. The message says what to use instead.
        """
        raise NotYetSupported(f"{self!r} cannot be changed: {ALTERNATIVE}")

    set_state = error = clear_xcom_data = xcom_push = run = handle_failure = refuse

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OtherTaskInstance) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        where = f"[{self.map_index}]" if self.map_index >= 0 else ""
        return f"<TaskInstance {self.dag_id}.{self.task_id}{where} {self.run_id} {self.state}>"


def instances_of_run(
    dag_id: str, run_id: str, task_ids: Iterable[str] = (), dag_run: DagRun | None = None
) -> list[OtherTaskInstance]:
    """Request the task instances of one run, by task; without `task_ids` those of all tasks.

    Raises:
        AirflowException: the scheduler could not answer.
    """
    question = ListRows(0, "task_instance", dag_id=dag_id, run_ids=(run_id,), task_ids=tuple(task_ids))
    answer = request_value(question, f"cannot read the task instances of the run {run_id!r} of DAG {dag_id!r}")
    return [
        OtherTaskInstance(dag_id, row["task_id"], run_id, row["state"], facts=row, dag_run=dag_run)
        for row in answer.value or ()
    ]
