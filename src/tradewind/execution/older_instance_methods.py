"""Columns and methods of Airflow 1 and 2's `TaskInstance` that tests of DAG files and provider packages use.

Task instances that a test has made by hand can change. For a task instance of a scheduler, methods that would change it raise.
"""

from __future__ import annotations

import getpass
import html
import importlib
import pathlib
import types
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from tradewind.execution.other_instances import instances_of_run
from tradewind.execution.refused_methods import Refused
from tradewind.model.errors import NotYetSupported, did_you_mean
from tradewind.model.states import FINISHED, TaskState
from tradewind.sdk.columns import Condition

if TYPE_CHECKING:
    from pendulum import DateTime

    from tradewind.execution.task_instance import TaskInstance


_DONE = frozenset({TaskState.SUCCESS.value, TaskState.SKIPPED.value})
_ENDED = frozenset(state.value for state in FINISHED)
_BY_SCHEDULER = (
    "the scheduler decides the states of task instances. Raise AirflowSkipException or AirflowFailException, or use "
    "`tradewind airflow tasks …` or the REST API (/api/v2)"
)


def settable(read: Callable[[Any], Any]) -> Any:
    """A property that tests can set."""
    name = f"_{read.__name__}_of_test"

    def get(found: Any) -> Any:
        return found.__dict__[name] if name in found.__dict__ else read(found)

    def put(found: Any, value: Any) -> None:
        found.__dict__[name] = value

    return property(get, put, doc=read.__doc__)


def _hand_made() -> Any:
    return importlib.import_module("tradewind.execution.hand_made")  # it needs the class that inherits from this one


class OlderInstanceMethods:
    """Base of `TaskInstance`."""

    task: Any = None
    """Listeners of packages ask whether a task instance has its task."""
    raw = False
    test_mode = False
    job_id: int | None = None
    pid: int | None = None
    external_executor_id: str | None = None
    executor_config: Mapping[str, Any] = types.MappingProxyType({})
    pool_slots = 1

    dag_model: Any = None
    dag_version: Any = None
    dag_version_id: Any = None
    hitl_detail: Any = None
    last_heartbeat_at: datetime | None = None
    next_kwargs: Mapping[str, Any] | None = None
    next_method: str | None = None
    note: str | None = None
    queued_by_job_id: int | None = None
    retry_delay_override: float | None = None
    retry_reason: str | None = None
    sentry_integration = ""
    span_status = "not_started"
    start_trigger_args: Any = None
    trigger: Any = None
    trigger_id: int | None = None
    trigger_timeout: datetime | None = None
    triggerer_job: Any = None
    is_premature = is_schedulable = is_trigger_log_context = False
    """Columns of Airflow's own services, which have no value in a running task, and attributes of tasks that do not run yet."""

    clear_db_references = Refused(_BY_SCHEDULER)
    insert_mapping = Refused(_BY_SCHEDULER)
    prepare_db_for_next_try = Refused(_BY_SCHEDULER)
    save_to_db = Refused(_BY_SCHEDULER)
    schedule_downstream_tasks = Refused(_BY_SCHEDULER)
    defer_task = Refused("raise TaskDeferred, or call self.defer(…) in an operator")
    register_asset_changes_in_db = Refused("list the asset in `outlets` of the task")
    update_rtif = Refused("the rendered templates are kept without a call")
    update_heartbeat = Refused("the worker host watches the process of the task without heartbeats")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise AttributeError(f"a task instance has no attribute {name!r}.{did_you_mean(name, dir(self))}")

    @property
    def custom_operator_name(self) -> str:
        """The name that the web page shows for the operator: `@task` for a decorated function."""
        return str(getattr(self._instance().task, "operator_name", type(self._instance().task).__name__))

    operator_name = custom_operator_name

    @property
    def task_display_name(self) -> str:
        ti = self._instance()
        return str(getattr(ti.task, "task_display_name", None) or ti.task_id)

    @property
    def executor(self) -> str | None:
        """The executor that runs the task."""
        ti = self._instance()
        return ti.workload.executor or getattr(ti.task, "executor", None)

    @property
    def run_as_user(self) -> str | None:
        found: str | None = getattr(self._instance().task, "run_as_user", None)
        return found

    @property
    def run_after(self) -> DateTime | None:
        found: DateTime | None = self._instance().dag_run.run_after
        return found

    @property
    def updated_at(self) -> DateTime | None:
        """The end, or the start of this attempt."""
        ti = self._instance()
        return ti.end_date or ti.start_date

    @property
    def scheduled_dttm(self) -> DateTime | None:
        """The time of scheduling is not kept: the time when the task was queued."""
        found: DateTime | None = self._instance().queued_dttm
        return found

    @property
    def context_carrier(self) -> dict[str, Any]:
        """Empty: no traces are recorded."""
        return {}

    @property
    def stats_tags(self) -> dict[str, str]:
        """Tags of metrics."""
        ti = self._instance()
        return {"dag_id": ti.dag_id, "task_id": ti.task_id}

    @property
    def bundle_instance(self) -> Any:
        """The bundle of the DAG file: its `name`, `version` and the `path` of its files on this worker."""
        work = self._instance().workload
        path = pathlib.Path(work.folder) if work.folder else None
        return types.SimpleNamespace(name=work.bundle, version=work.bundle_version, path=path, is_initialized=True)

    @property
    def previous_start_date_success(self) -> DateTime | None:
        """The start of the last successful run before this one."""
        return self._instance().get_previous_start_date("success")

    @property
    def previous_execution_date_success(self) -> DateTime | None:
        """The logical date of the last successful run before this one."""
        return self._instance().get_previous_logical_date("success")

    @settable
    def unixname(self) -> str:
        """The user of this process."""
        return getpass.getuser()

    @property
    def _try_number(self) -> int:
        return self._instance().try_number

    @_try_number.setter
    def _try_number(self, number: int) -> None:
        self._instance().try_number = number

    @property
    def prev_attempted_tries(self) -> int:
        """The number of the last try."""
        return self._instance().try_number

    @property
    def next_try_number(self) -> int:
        """The number of the next try."""
        return self._instance().try_number + 1

    def _instance(self) -> TaskInstance:
        return cast("TaskInstance", self)

    def _made_by_hand(self, method: str) -> TaskInstance:
        """This instance.

        Raises:
            NotYetSupported: a scheduler has made it.
        """
        ti = self._instance()
        if not ti.by_hand:
            raise NotYetSupported(f"ti.{method}() cannot change a running task; only tests call it, for instances of their own")
        return ti

    # --- tries ----------------------------------------------------------------------------------------------------------

    def is_eligible_to_retry(self) -> bool:
        """Whether a failure of this try is followed by another try."""
        ti = self._instance()
        return bool(ti.task.retries) and ti.try_number <= ti.max_tries

    def next_retry_datetime(self) -> datetime:
        """When the next try may start: `retry_delay` of the task after the end of this one."""
        ti = self._instance()
        delay = ti.task.retry_delay
        wait = delay if isinstance(delay, timedelta) else timedelta(seconds=float(delay or 0))
        return (ti.end_date or datetime.now(UTC)) + wait

    def ready_for_retry(self) -> bool:
        """Whether the task waits for its next try, and the time has come."""
        return self._instance().state == "up_for_retry" and self.next_retry_datetime() < datetime.now(UTC)

    # --- execution ------------------------------------------------------------------------------------------------------

    def _run_raw_task(self, mark_success: bool = False, *_args: Any, **_options: Any) -> None:
        """Run the task in this process, as `run` does."""
        self._made_by_hand("_run_raw_task").run(mark_success=mark_success)

    def check_and_change_state_before_execution(self, *_args: Any, **_options: Any) -> bool:
        """Set the state to `running`. Returns True: the task may run."""
        self._made_by_hand("check_and_change_state_before_execution").set_state("running")
        return True

    _check_and_change_state_before_execution = check_and_change_state_before_execution

    def handle_failure(self, error: Any = None, *_args: Any, force_fail: bool = False, **_options: Any) -> None:
        """Set the state after a failure, and call the callbacks.

        Args:
            error: an exception or a text.
            force_fail: there is no next try.
        """
        cause = error if isinstance(error, Exception) else RuntimeError(str(error))
        _hand_made().fail(self._made_by_hand("handle_failure"), cause, force_fail)

    def error(self, session: Any = None) -> None:
        """Set the state to `failed`."""
        self._made_by_hand("error").set_state("failed")

    def clear_xcom_data(self, session: Any = None) -> None:
        """Remove the values that this task instance has pushed."""
        _hand_made().forget_xcoms(self._made_by_hand("clear_xcom_data"))

    def init_run_context(self, raw: bool = False) -> None:
        """Note whether the task runs in this process."""
        self._instance().raw = raw

    def get_rendered_template_fields(self, session: Any = None) -> None:
        """Render the templates of the task."""
        self._instance().render_templates()

    def get_failed_dep_statuses(self, *_args: Any, **_options: Any) -> Iterator[Any]:
        """Nothing: the scheduler decides what a task waits for."""
        return iter(())

    def set_duration(self) -> None:
        """Do nothing: `duration` follows from the start and the end."""

    def email_alert(self, *_args: Any, **_options: Any) -> None:
        """Do nothing: the scheduler sends mails about failures."""

    def get_num_running_task_instances(self, session: Any = None, **_options: Any) -> int:
        """The number of running instances of this task in this process: this one, or none."""
        return int(self._instance().state == "running")

    def overwrite_params_with_dag_run_conf(self, params: Any, dag_run: Any) -> None:
        """Replace parameters by those of the run's `conf`."""
        if dag_run is not None and dag_run.conf:
            params.update(dag_run.conf)

    def get_dag(self, dag_id: str | None = None) -> Any:
        """The DAG of the task.

        Raises:
            NotYetSupported: `dag_id` names another DAG, whose file this process has not read.
        """
        ti = self._instance()
        if dag_id not in (None, ti.dag_id):
            raise NotYetSupported(
                f"ti.get_dag({dag_id!r}) cannot read another DAG than {ti.dag_id!r}: query DagModel with settings.Session(), or "
                "use the REST API (/api/v2/dags)"
            )
        return ti.task.get_dag()

    def are_dependents_done(self, session: Any = None) -> bool:
        """Whether all direct downstream tasks have ended with success or were skipped."""
        ti = self._instance()
        below = set(ti.task.downstream_task_ids)
        found = [one for one in ti.dag_run.get_task_instances() if one.task_id in below] if below else []
        states = {(one.task_id, one.map_index): one.state for one in found}
        return below == {task_id for task_id, _ in states} and all(state in _DONE for state in states.values())

    def get_relevant_upstream_map_indexes(
        self, upstream: Any, ti_count: int | None = None, *, session: Any = None
    ) -> int | None:
        """The map index of an upstream task whose value this task instance reads; None: the values of all indexes."""
        indexes = self._instance()._same_map_index(upstream.task_id)
        return None if indexes is None else indexes[0]

    @staticmethod
    def get_task_breadcrumbs(dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """The task instances of a run that have ended: `task_id`, `map_index`, `state`, `operator`, `duration` in seconds."""
        ended = [one for one in instances_of_run(dag_id, run_id) if one.state in _ENDED]
        names = ("task_id", "map_index", "state", "operator", "duration")
        return [
            {name: getattr(one, name) for name in names} for one in sorted(ended, key=lambda one: (one.task_id, one.map_index))
        ]

    async def axcom_pull(self, *args: Any, **options: Any) -> Any:
        """`xcom_pull` for a task that is a coroutine. The other coroutines of the task run meanwhile."""
        import asyncio  # lazy import: only async tasks

        return await asyncio.to_thread(self._instance().xcom_pull, *args, **options)

    async def axcom_push(self, key: str, value: Any) -> None:
        """`xcom_push` for a task that is a coroutine."""
        self._instance().xcom_push(key, value)

    @staticmethod
    def get_truncated_error_traceback(error: BaseException, truncate_to: Any = None) -> Any:
        """The traceback of an exception, from the call of the function `truncate_to` on."""
        code = getattr(getattr(truncate_to, "__func__", truncate_to), "__code__", None)
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code is code:
                return trace.tb_next
            trace = trace.tb_next
        return error.__traceback__

    def get_email_subject_content(self, exception: BaseException, task: Any = None) -> tuple[str, str, str]:
        """The subject and the text of Airflow's mail about a failure; then the text without the exception."""
        ti = self._instance()

        def text(reason: str) -> str:
            return (
                f"Try {ti.try_number} out of {ti.max_tries + 1}<br>Exception:<br>{reason}<br>"
                f'Log: <a href="{ti.log_url}">Link</a><br>Host: {ti.hostname}<br>'
                f'Mark success: <a href="{ti.mark_success_url}">Link</a><br>'
            )

        reason = html.escape(str(exception)).replace("\n", "<br>")
        return f"Airflow alert: {ti!r}", text(reason), text("Failed attempt to attach error logs")

    def clear_next_method_args(self) -> None:
        """Do nothing: a task that continues gets its arguments once."""

    def emit_state_change_metric(self, new_state: Any = None) -> None:
        """Do nothing: the services record the metrics."""

    @classmethod
    def filter_for_tis(cls, tis: Any) -> Any:
        """A condition for queries of `TaskInstance`: one of these task instances. None if there are none."""
        wanted = {(one.dag_id, one.task_id, one.run_id, one.map_index) for one in tis}
        if not wanted:
            return None
        equal = {(cls, "dag_id"): frozenset(key[0] for key in wanted), (cls, "run_id"): frozenset(key[2] for key in wanted)}
        return Condition(lambda row: (row.dag_id, row.task_id, row.run_id, row.map_index) in wanted, equal)

    def generate_command(self, *_args: Any, **options: Any) -> list[str]:
        """See `command_as_list`."""
        return self.command_as_list(**options)

    def command(self, *_args: Any, **options: Any) -> str:
        """See `command_as_list`; as one text."""
        return " ".join(self.command_as_list(**options))

    def command_as_list(
        self, mark_success: bool = False, local: bool = False, raw: bool = False, pool: str | None = None, **_options: Any
    ) -> list[str]:
        """The words of Airflow's command that runs this task. Executors of provider packages send it."""
        ti = self._instance()
        words = ["airflow", "tasks", "run", ti.dag_id, ti.task_id, ti.run_id]
        words += [flag for flag, wanted in (("--mark-success", mark_success), ("--local", local), ("--raw", raw)) if wanted]
        words += ["--pool", pool] if pool else []
        return [*words, "--map-index", str(ti.map_index)] if ti.map_index >= 0 else words
