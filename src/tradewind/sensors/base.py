"""Sensors: tasks that wait until a condition is met."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, NoReturn

from tradewind.execution.context import Context
from tradewind.execution.deferral_request import scheduler_can_wait, wait_for
from tradewind.execution.run_task import run_to_end
from tradewind.model.errors import DefinitionError, NotYetSupported
from tradewind.model.moments import SECOND, duration_micros
from tradewind.model.wait_plans import MomentPlan, TasksPlan, WaitPlan
from tradewind.model.waits import Wait
from tradewind.sdk.arguments import CALLBACKS
from tradewind.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSensorTimeout,
    AirflowSkipException,
    AirflowTaskTimeout,
    TaskDeferralError,
    TaskDeferralTimeout,
)
from tradewind.sdk.operator import BaseOperator

WEEK = timedelta(days=7)
MODES = ("poke", "reschedule")
_STEPS_MAX = 60
"""Maximum number of doublings of the interval. After these it is longer than any timeout."""

# tests replace these clocks
_sleep: Callable[[float], None] = time.sleep
_now: Callable[[], float] = time.time
_elapsed: Callable[[], float] = time.monotonic


def now() -> datetime:
    """The current time in UTC, from the clock that all sensors use."""
    return datetime.fromtimestamp(_now(), tz=UTC)


class PokeReturnValue:
    """A result of `poke` with more information: is the condition met, and which value should be pushed."""

    def __init__(self, is_done: bool, xcom_value: Any = None) -> None:
        self.is_done = is_done
        self.xcom_value = xcom_value

    def __bool__(self) -> bool:
        return self.is_done


class BaseSensorOperator(BaseOperator):
    """Base class of sensors. Subclasses define `poke(context)`, which returns whether the condition is met.

    Args:
        poke_interval: time between two pokes, as a timedelta or seconds. Default: 60 seconds.
        timeout: maximum waiting time, as a timedelta or seconds. After that the task fails without a retry. Default: 7 days.
        mode: `poke` keeps the process and the slot between pokes. `reschedule` frees both, and the timeout counts from the first
            start of the try. Sensors whose condition the scheduler can check itself (a point in time, tasks of other DAGs) free
            both in either mode after the first poke, and their timeout always counts from the first start of the try.
        soft_fail: become skipped instead of failed after a timeout or an AirflowFailException.
        silent_fail: log an exception of `poke` and continue to wait.
        never_fail: become skipped instead of failed after any exception of `poke`.
        exponential_backoff: double the interval after each poke, plus a variation that differs between tasks.
        max_wait: maximum interval between two pokes, as a timedelta or seconds.
    """

    ui_color = "#e6f1f2"
    valid_modes: ClassVar[tuple[str, ...]] = MODES

    def __init__(
        self,
        *,
        poke_interval: timedelta | float = 60,
        timeout: timedelta | float = WEEK,
        soft_fail: bool = False,
        mode: str = "poke",
        exponential_backoff: bool = False,
        max_wait: timedelta | float | None = None,
        silent_fail: bool = False,
        never_fail: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.poke_interval = self._seconds("poke_interval", poke_interval)
        self.timeout = self._seconds("timeout", timeout)
        self.max_wait = None if max_wait is None else self._seconds("max_wait", max_wait)
        if mode not in self.valid_modes:
            raise DefinitionError(f"{self._name_in_errors()}: mode is {mode!r}; it must be {' or '.join(self.valid_modes)}")
        if soft_fail and never_fail:
            raise DefinitionError(
                f"{self._name_in_errors()}: set only one of soft_fail and never_fail; never_fail includes soft_fail"
            )
        self.mode = mode
        self.soft_fail = soft_fail
        self.silent_fail = silent_fail
        self.never_fail = never_fail
        self.exponential_backoff = exponential_backoff

    def _seconds(self, name: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, timedelta | int | float):
            raise DefinitionError(
                f"{self._name_in_errors()}: {name} is {value!r}; it must be a timedelta or a number of seconds"
            )
        seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
        if seconds < 0:
            raise DefinitionError(f"{self._name_in_errors()}: {name} is {value!r}; it must not be negative")
        return seconds

    @property
    def reschedule(self) -> bool:
        """True if the sensor frees its slot between pokes."""
        return self.mode == "reschedule"

    def poke(self, context: Any) -> bool | PokeReturnValue:
        """Check the condition once. True (or a PokeReturnValue that is done) ends the wait."""
        raise NotImplementedError(f"{type(self).__name__} does not define poke(context)")

    def as_wait(self, context: Any) -> Wait | None:
        """A wait that the scheduler can do for this sensor; called after a poke. None: the sensor has to poke itself."""
        return None

    def execute(self, context: Any) -> Any:
        # without a task instance, as unit tests of operators call it, the sensor pokes in this process
        workload = context["ti"].workload if isinstance(context, Context) else None
        began = _elapsed()
        before = 0.0
        poke_count = 0
        scheduler_waits = workload is not None and scheduler_can_wait() and self._scheduler_can_replace_pokes()
        if workload is not None and (self.reschedule or scheduler_waits):
            poke_count = workload.reschedules
            if workload.first_started is not None:
                before = max(0.0, _now() - workload.first_started / SECOND)
        while True:
            poke_count += 1
            found = self._poke_once(context)
            if found:
                self.log.info("The condition is met. Exiting.")
                return found.xcom_value if isinstance(found, PokeReturnValue) else None
            waited = before + _elapsed() - began
            if waited > self.timeout:
                self._time_out(waited)
            if workload is not None and scheduler_waits and (known := self.as_wait(context)) is not None:
                self._wait_in_scheduler(known, workload.first_started)
            seed = "" if workload is None else f"{workload.dag_id}.{self.task_id}.{workload.run_id}"
            wait = self.next_poke_interval(poke_count, seed)
            if self.reschedule:
                raise AirflowRescheduleException(datetime.fromtimestamp(_now() + wait, tz=UTC))
            _sleep(wait)

    # --- waiting without a process --------------------------------------------------------------------------------

    def _scheduler_can_replace_pokes(self) -> bool:
        """True if the scheduler's wait is equivalent to the pokes. A class that overrides `poke` or `execute` pokes itself."""
        for cls in type(self).__mro__:
            if "as_wait" in cls.__dict__:
                return cls is not BaseSensorOperator
            if "poke" in cls.__dict__ or "execute" in cls.__dict__:
                return False
        return False

    def _wait_in_scheduler(self, wait: Wait, first_started: int | None) -> NoReturn:
        """End the attempt and let the scheduler wait."""
        started = first_started if first_started is not None else int(_now() * SECOND)
        spans = [int(self.timeout * SECOND)]
        if self.execution_timeout is not None:
            spans.append(duration_micros(self.execution_timeout))
        method = "after_wait" if self.needs_final_attempt() else None
        self.log.info("The scheduler waits from now on; the task uses no process and no slot")
        wait_for(wait, method=method, timeout_at=started + min(spans), soft_fail=self.soft_fail)

    def needs_final_attempt(self) -> bool:
        """True if code of the author (callbacks, hooks, …) has to be called when the wait is over."""
        cls = type(self)
        calls = any(getattr(self, name) for name in CALLBACKS) or self.email or self.outlets or self._post_execute_hook
        return bool(calls) or cls.post_execute is not BaseOperator.post_execute or self.execution_timeout is not None

    def wait_plan(self) -> WaitPlan | None:
        """The wait as data, if it needs no code of the author and no values of the run. Then no attempt is needed."""
        calls = self.on_execute_callback or self.inlets or self._pre_execute_hook or self.needs_final_attempt()
        if calls or not type(self).__module__.startswith("tradewind.sensors."):
            return None
        until = self.plan()
        return None if until is None else WaitPlan(until, int(self.timeout * SECOND), self.soft_fail)

    def plan(self) -> MomentPlan | TasksPlan | None:
        """The part of `wait_plan` that says what to wait for; None if it depends on the run."""
        return None

    def after_wait(self, context: Any, event: Any = None) -> Any:
        """Continue when the scheduler ends the wait. Poke again, because the condition may have changed since."""
        return self.execute(context)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Any) -> Any:
        """Continue after a wait without a process. Errors of the wait are treated like errors of `poke`."""
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except TaskDeferralTimeout as error:
            first = context["ti"].workload.first_started
            waited = self.timeout if first is None else _now() - first / SECOND
            if self.execution_timeout is not None and waited < self.timeout:
                raise AirflowTaskTimeout("the task waited longer than its execution_timeout") from error
            self._time_out(waited)
        except AirflowSkipException:
            raise
        except AirflowException as error:
            if self.soft_fail or (self.never_fail and not isinstance(error, AirflowSensorTimeout)):
                raise AirflowSkipException(f"skipped because of soft_fail: {error}") from error
            raise
        except Exception as error:
            if self.never_fail:
                raise AirflowSkipException(f"skipped because of never_fail: {type(error).__name__}: {error}") from error
            raise

    # --- poking ---------------------------------------------------------------------------------------------------

    def _poke_once(self, context: Any) -> bool | PokeReturnValue:
        """Call `poke` and handle its exceptions as soft_fail, silent_fail and never_fail say."""
        try:
            return run_to_end(self.poke(context))  # type: ignore[no-any-return]
        except AirflowSkipException:
            raise
        except (AirflowSensorTimeout, AirflowTaskTimeout, AirflowFailException, TaskDeferralError) as error:
            if self.soft_fail or self.never_fail:
                raise AirflowSkipException(f"skipped because of soft_fail: {error}") from error
            raise
        except Exception as error:
            if self.silent_fail:
                self.log.exception("The poke failed; the sensor continues to wait because of silent_fail")
                return False
            if self.never_fail:
                raise AirflowSkipException(f"skipped because of never_fail: {type(error).__name__}: {error}") from error
            raise

    def _time_out(self, waited: float) -> NoReturn:
        message = f"The sensor waited {waited:g} seconds, longer than its timeout of {self.timeout:g} seconds"
        if self.soft_fail:
            raise AirflowSkipException(f"{message}; skipped because of soft_fail")
        raise AirflowSensorTimeout(message)

    def next_poke_interval(self, poke_count: int, seed: str) -> float:
        """Seconds until the next poke, after `poke_count` pokes. The variation is computed from `seed`, so it is reproducible."""
        if not self.exponential_backoff:
            return self.poke_interval if self.max_wait is None else min(self.poke_interval, self.max_wait)
        shortest = self.poke_interval * float(2 ** min(poke_count - 1, _STEPS_MAX))
        digest = hashlib.sha1(f"{seed}.{poke_count}".encode(), usedforsecurity=False).digest()
        wait = shortest * (1 + int.from_bytes(digest[:4], "big") / 2**32)
        longest = self.timeout if self.max_wait is None else self.max_wait
        return min(wait, longest)


def poke_mode_only(cls: type[BaseSensorOperator]) -> type[BaseSensorOperator]:
    """Class decorator: the sensor must keep its process between pokes."""
    if not (isinstance(cls, type) and issubclass(cls, BaseSensorOperator)):
        raise AirflowException(f"poke_mode_only can decorate only a sensor class, not {cls!r}")
    cls.valid_modes = ("poke",)
    return cls


def refuse_deferrable(operator: BaseOperator, deferrable: bool) -> None:
    """Raises NotYetSupported if `deferrable` is set, for operators that do not support it yet."""
    if deferrable:
        raise NotYetSupported(
            f"{operator._name_in_errors()}: deferrable=True is not supported yet; "
            "use mode='reschedule', which uses no slot between pokes either"
        )
