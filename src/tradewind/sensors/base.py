"""Sensors: tasks that wait until something is so."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, NoReturn

from tradewind.execution.deferral_request import scheduler_can_wait, wait_for
from tradewind.execution.run_task import finished
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
"""Doublings of the waiting time after which it certainly is longer than any timeout."""

# tests put a clock of their own here
_sleep: Callable[[float], None] = time.sleep
_now: Callable[[], float] = time.time
_elapsed: Callable[[], float] = time.monotonic


def now() -> datetime:
    """The present, in UTC: the clock of all sensors."""
    return datetime.fromtimestamp(_now(), tz=UTC)


class PokeReturnValue:
    """What `poke` may return instead of True: is it done, and which value to push then."""

    def __init__(self, is_done: bool, xcom_value: Any = None) -> None:
        self.is_done = is_done
        self.xcom_value = xcom_value

    def __bool__(self) -> bool:
        return self.is_done


class BaseSensorOperator(BaseOperator):
    """Base of sensors: subclasses write `poke(context)`, which says whether the wait is over.

    Args:
        poke_interval: between two looks; a timedelta or seconds.
        timeout: how long to wait in all; a timedelta or seconds. Then the task fails without another try.
        mode: `poke` keeps its process and slot between two looks, `reschedule` gives both back. In that mode the timeout
            counts from the first start of the try. A sensor for whose condition the scheduler can wait (a moment, tasks of other
            DAGs) gives both back in either mode after its first look, and its timeout always counts so.
        soft_fail: skipped instead of failed, when it times out or raises AirflowFailException.
        silent_fail: an exception of `poke` counts as "not yet"; it is logged.
        never_fail: skipped instead of failed, whatever `poke` raises.
        exponential_backoff: the wait doubles each time, with a spread that differs between tasks.
        max_wait: the longest wait between two looks.
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
                f"{self._name_in_errors()}: soft_fail and never_fail exclude each other; never_fail does more"
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
        """Does it give its slot back between two looks?"""
        return self.mode == "reschedule"

    def poke(self, context: Any) -> bool | PokeReturnValue:
        """Look once. True (or a PokeReturnValue that is done) ends the wait."""
        raise NotImplementedError(f"{type(self).__name__} does not define poke(context)")

    def as_wait(self, context: Any) -> Wait | None:
        """What the scheduler can wait for in this sensor's place, asked after a look; None: nothing, it has to look itself."""
        return None

    def execute(self, context: Any) -> Any:
        workload = context["ti"].workload
        began = _elapsed()
        before = 0.0
        looks = 0
        gives_back = scheduler_can_wait() and self._may_be_waited_for()
        if self.reschedule or gives_back:
            looks = workload.reschedules
            if workload.first_started is not None:
                before = max(0.0, _now() - workload.first_started / SECOND)
        while True:
            looks += 1
            found = self._look(context)
            if found:
                self.log.info("The condition is met. Exiting.")
                return found.xcom_value if isinstance(found, PokeReturnValue) else None
            waited = before + _elapsed() - began
            if waited > self.timeout:
                self._time_out(waited)
            if gives_back and (known := self.as_wait(context)) is not None:
                self._hand_over(known, workload.first_started)
            wait = self.wait_before_next(looks, f"{context['ti'].dag_id}.{self.task_id}.{context['ti'].run_id}")
            if self.reschedule:
                raise AirflowRescheduleException(datetime.fromtimestamp(_now() + wait, tz=UTC))
            _sleep(wait)

    # --- waiting without a process --------------------------------------------------------------------------------

    def _may_be_waited_for(self) -> bool:
        """Would the scheduler's wait be the same as this class's own looks? A class that looks in its own way keeps doing so."""
        for cls in type(self).__mro__:
            if "as_wait" in cls.__dict__:
                return cls is not BaseSensorOperator
            if "poke" in cls.__dict__ or "execute" in cls.__dict__:
                return False
        return False

    def _hand_over(self, wait: Wait, first_started: int | None) -> NoReturn:
        """End the attempt: the scheduler knows when the wait is over."""
        begun = first_started if first_started is not None else int(_now() * SECOND)
        spans = [int(self.timeout * SECOND)]
        if self.execution_timeout is not None:
            spans.append(duration_micros(self.execution_timeout))
        method = "after_wait" if self.ends_in_an_attempt() else None
        self.log.info("From here on the scheduler waits; this task holds no process and no slot")
        wait_for(wait, method=method, timeout_at=begun + min(spans), soft_fail=self.soft_fail)

    def ends_in_an_attempt(self) -> bool:
        """Has something of the author's to be called when the wait is over?"""
        cls = type(self)
        calls = any(getattr(self, name) for name in CALLBACKS) or self.email or self.outlets or self._post_execute_hook
        return bool(calls) or cls.post_execute is not BaseOperator.post_execute or self.execution_timeout is not None

    def wait_plan(self) -> WaitPlan | None:
        """No attempt is needed where nobody has written code for it, and what to wait for stands in the definition."""
        calls = self.on_execute_callback or self.inlets or self._pre_execute_hook or self.ends_in_an_attempt()
        if calls or not type(self).__module__.startswith("tradewind.sensors."):
            return None
        until = self.plan()
        return None if until is None else WaitPlan(until, int(self.timeout * SECOND), self.soft_fail)

    def plan(self) -> MomentPlan | TasksPlan | None:
        """What to wait for, as far as the arguments say it without a run."""
        return None

    def after_wait(self, context: Any, event: Any = None) -> Any:
        """The scheduler says that the wait is over: look, for the last time unless something has changed since."""
        return self.execute(context)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Any) -> Any:
        """Go on after a wait without a process. What went wrong there means what it means while looking."""
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

    # --- looking --------------------------------------------------------------------------------------------------

    def _look(self, context: Any) -> bool | PokeReturnValue:
        """One poke, with what its exceptions mean."""
        try:
            return finished(self.poke(context))  # type: ignore[no-any-return]
        except AirflowSkipException:
            raise
        except (AirflowSensorTimeout, AirflowTaskTimeout, AirflowFailException, TaskDeferralError) as error:
            if self.soft_fail or self.never_fail:
                raise AirflowSkipException(f"skipped because of soft_fail: {error}") from error
            raise
        except Exception as error:
            if self.silent_fail:
                self.log.exception("The look failed, which counts as not yet (silent_fail)")
                return False
            if self.never_fail:
                raise AirflowSkipException(f"skipped because of never_fail: {type(error).__name__}: {error}") from error
            raise

    def _time_out(self, waited: float) -> NoReturn:
        sentence = f"The sensor waited {waited:g} seconds, longer than its timeout of {self.timeout:g} seconds"
        if self.soft_fail:
            raise AirflowSkipException(f"{sentence}; skipped because of soft_fail")
        raise AirflowSensorTimeout(sentence)

    def wait_before_next(self, looks: int, seed: str) -> float:
        """Seconds until the next look, after `looks` of them. The spread follows from `seed`, so it can be repeated."""
        if not self.exponential_backoff:
            return self.poke_interval if self.max_wait is None else min(self.poke_interval, self.max_wait)
        shortest = self.poke_interval * float(2 ** min(looks - 1, _STEPS_MAX))
        digest = hashlib.sha1(f"{seed}.{looks}".encode(), usedforsecurity=False).digest()
        wait = shortest * (1 + int.from_bytes(digest[:4], "big") / 2**32)
        longest = self.timeout if self.max_wait is None else self.max_wait
        return min(wait, longest)


def poke_mode_only(cls: type[BaseSensorOperator]) -> type[BaseSensorOperator]:
    """Class decorator: the sensor must keep its process between two looks."""
    if not (isinstance(cls, type) and issubclass(cls, BaseSensorOperator)):
        raise AirflowException(f"poke_mode_only stands above a sensor class, not above {cls!r}")
    cls.valid_modes = ("poke",)
    return cls


def refuse_deferrable(operator: BaseOperator, deferrable: bool) -> None:
    """Raises NotYetSupported when `deferrable` asks for what is not built yet."""
    if deferrable:
        raise NotYetSupported(
            f"{operator._name_in_errors()}: deferrable=True belongs to triggers, which come with a later release; "
            "use mode='reschedule', which holds no slot either"
        )
