"""Columns and methods of Airflow 1 and 2's `TaskInstance` that tests of DAG files and provider packages use.

Task instances that a test has made by hand can change. For a task instance of a scheduler, methods that would change it raise.
"""

from __future__ import annotations

import getpass
import importlib
import types
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from tradewind.model.errors import NotYetSupported

if TYPE_CHECKING:
    from tradewind.execution.task_instance import TaskInstance


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

    raw = False
    test_mode = False
    job_id: int | None = None
    pid: int | None = None
    external_executor_id: str | None = None
    executor_config: Mapping[str, Any] = types.MappingProxyType({})
    pool_slots = 1

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

    def command_as_list(
        self, mark_success: bool = False, local: bool = False, raw: bool = False, pool: str | None = None, **_options: Any
    ) -> list[str]:
        """The words of Airflow's command that runs this task. Executors of provider packages send it."""
        ti = self._instance()
        words = ["airflow", "tasks", "run", ti.dag_id, ti.task_id, ti.run_id]
        words += [flag for flag, wanted in (("--mark-success", mark_success), ("--local", local), ("--raw", raw)) if wanted]
        words += ["--pool", pool] if pool else []
        return [*words, "--map-index", str(ti.map_index)] if ti.map_index >= 0 else words
