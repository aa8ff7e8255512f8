"""The context of a running task: the context variables that user code and templates can use.

`build_context` takes a few microseconds. A value is computed when it is first read; this includes dates, which are pendulum
datetimes in UTC as in Airflow. The names are those of Airflow 1, 2 and 3 together. A run without a logical date has no variables
that are derived from one.

    ALWAYS               dag, task, ti, dag_run, run_id, params, conf, var, conn, macros, prev_start_date_success …
    WITH_LOGICAL_DATE    ds, ts, logical_date, data_interval_*, prev_data_interval_*_success, and Airflow 1 and 2's next_ds …
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tradewind.execution.task_instance import DagRun, DagRunType, TaskInstance, to_pendulum
from tradewind.model.errors import did_you_mean
from tradewind.model.moments import from_micros
from tradewind.sdk import open_dags
from tradewind.sdk.conf import conf
from tradewind.sdk.exceptions import AirflowException, AirflowNotFoundException
from tradewind.sdk.generation import CURRENT
from tradewind.sdk.params import ParamsDict
from tradewind.sdk.variables import NOTSET, Connection, Variable
from tradewind.wire.messages import Workload

if TYPE_CHECKING:
    from pendulum import DateTime

__all__ = ["Context", "DagRun", "DagRunType", "TaskInstance", "build_context", "get_current_context"]

log = logging.getLogger("tradewind.task")

Maker = Callable[[TaskInstance], Any]


class Context(dict[str, Any]):
    """The context variables of one running task, by name. A value is computed when it is first read.

    Behaves like a dictionary: `context["ds"]`, `context.get("x")`, `{**context}`, `f(**context)`, `"ds" in context`.
    """

    __slots__ = ("_makers", "_ti")

    def __init__(self, *args: Any, **values: Any) -> None:
        """A context with only these values, for tests that users write: `Context(ds="2024-01-01")`."""
        super().__init__(*args, **values)
        self._ti: Any = None
        self._makers: Mapping[str, Maker] = {}

    @classmethod
    def computed_on_demand(cls, ti: TaskInstance, makers: Mapping[str, Maker], given: Mapping[str, Any]) -> Context:
        """The context of an attempt.

        Args:
            makers: name → function that computes the value when it is first read.
            given: the values that are known.
        """
        made = cls(given)
        made._ti = ti
        made._makers = makers
        return made

    def __missing__(self, key: str) -> Any:
        make = self._makers.get(key)
        if make is None:
            if key in WITH_LOGICAL_DATE and self._ti is not None:
                hint = " This run has no logical date."
            else:
                hint = did_you_mean(key, self) if isinstance(key, str) else ""
            raise KeyError(f"the context has no {key!r}.{hint}")
        value = make(self._ti)
        dict.__setitem__(self, key, value)
        return value

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, key) or key in self._makers

    # without an `__iter__` of this class, `dict(context)` and `f(**context)` would copy only the values that are already computed
    def __iter__(self) -> Iterator[str]:
        yield from dict.__iter__(self)
        for key in self._makers:
            if not dict.__contains__(self, key):
                yield key

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return self._ti is not None or dict.__len__(self) > 0

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._makers = {name: make for name, make in self._makers.items() if name != key}
        if dict.__contains__(self, key):
            dict.__delitem__(self, key)

    def __repr__(self) -> str:
        ti = self._ti
        if ti is None:
            return f"<Context {self.computed()!r}>"
        return f"<Context of {ti.dag_id}.{ti.task_id} in {ti.run_id}>"

    def __eq__(self, other: object) -> bool:
        return self is other or (not self._makers and dict.__eq__(self, other) is True)

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __or__(self, other: Mapping[str, Any]) -> Context:  # type: ignore[override]
        joined = self.copy()
        joined.update(other)
        return joined

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default  # noqa: SIM401 (the suggestion would call this method)

    def keys(self) -> Any:
        return list(self)

    def values(self) -> Any:
        return [self[key] for key in self]

    def items(self) -> Any:
        return [(key, self[key]) for key in self]

    def pop(self, key: str, default: Any = NOTSET) -> Any:
        if key in self:
            value = self[key]
            del self[key]
            return value
        if default is NOTSET:
            raise KeyError(key)
        return default

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def computed(self) -> dict[str, Any]:
        """The values that were computed so far."""
        return dict(dict.items(self))

    def copy(self) -> Context:
        """A copy with the same values. Values that are not computed yet are computed separately in each copy."""
        return Context.computed_on_demand(self._ti, self._makers, self.computed())

    __copy__ = copy

    def __reduce__(self) -> Any:
        raise TypeError("a context cannot be pickled; pass only the values that you need")


class LazyValue:
    """A value that is requested from the scheduler on first use.

    `f(**context)` passes all values. Values that need a request to the scheduler are passed as `LazyValue`, as in Airflow, also to
    templates. It behaves like the value, except that `is None` is never true: test its truth value instead. (So
    `{{ prev_start_date_success | ds }}` is an error if there is no such run, not the text "None".)
    """

    __slots__ = ("_LazyValue__known", "_LazyValue__make")

    def __init__(self, make: Callable[[], Any]) -> None:
        object.__setattr__(self, "_LazyValue__make", make)
        object.__setattr__(self, "_LazyValue__known", NOTSET)

    def __getattr__(self, name: str) -> Any:
        return getattr(resolve_lazy(self), name)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(resolve_lazy(self))

    def __str__(self) -> str:
        return str(resolve_lazy(self))

    def __repr__(self) -> str:
        return repr(resolve_lazy(self))

    def __format__(self, spec: str) -> str:
        return format(resolve_lazy(self), spec)

    def __bool__(self) -> bool:
        return bool(resolve_lazy(self))

    def __hash__(self) -> int:
        return hash(resolve_lazy(self))

    def __eq__(self, other: object) -> bool:
        return bool(resolve_lazy(self) == resolve_lazy(other))

    def __lt__(self, other: Any) -> bool:
        return bool(resolve_lazy(self) < resolve_lazy(other))

    def __le__(self, other: Any) -> bool:
        return bool(resolve_lazy(self) <= resolve_lazy(other))

    def __gt__(self, other: Any) -> bool:
        return bool(resolve_lazy(self) > resolve_lazy(other))

    def __ge__(self, other: Any) -> bool:
        return bool(resolve_lazy(self) >= resolve_lazy(other))

    def __add__(self, other: Any) -> Any:
        return resolve_lazy(self) + other

    def __sub__(self, other: Any) -> Any:
        return resolve_lazy(self) - resolve_lazy(other)

    def __rsub__(self, other: Any) -> Any:
        return other - resolve_lazy(self)


def resolve_lazy(value: Any) -> Any:
    """The value of a `LazyValue`; any other value unchanged."""
    if type(value) is not LazyValue:
        return value
    known = object.__getattribute__(value, "_LazyValue__known")
    if known is NOTSET:
        known = object.__getattribute__(value, "_LazyValue__make")()
        object.__setattr__(value, "_LazyValue__known", known)
    return known


# --- values of the context variables --------------------------------------------------------------------------------


class VariableAccessor:
    """`var.value.name` and `var.json.name`; `.get(name, default)` for a variable that may not exist."""

    def __init__(self, deserialize_json: bool) -> None:
        self._json = deserialize_json

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Variable.get(name, deserialize_json=self._json)

    def __getitem__(self, name: str) -> Any:
        return Variable.get(name, deserialize_json=self._json)

    def get(self, name: str, default: Any = NOTSET, default_var: Any = NOTSET) -> Any:
        return Variable.get(name, default, deserialize_json=self._json, default_var=default_var)


class ConnectionAccessor:
    """`conn.name`; `.get(name, default)` for a connection that may not exist."""

    def __getattr__(self, name: str) -> Connection:
        if name.startswith("__"):
            raise AttributeError(name)
        return Connection.get(name)

    def __getitem__(self, name: str) -> Connection:
        return Connection.get(name)

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return Connection.get(name)
        except AirflowNotFoundException:
            return default


def own_params(task: Any) -> ParamsDict:
    """The DAG's parameters, overridden by the task's."""
    dag = task.get_dag()
    params = ParamsDict(dag.params if dag is not None else {})
    params.update(task.params)
    return params


def _params(ti: TaskInstance) -> Any:
    """The DAG's parameters, overridden by the task's, overridden by the run's conf; checked against their schemas."""
    if ti.task._default_params is not None and not ti.workload.conf:
        return dict(ti.task._default_params)
    params = own_params(ti.task)
    if ti.dag_run.conf and conf.getboolean("core", "dag_run_conf_overrides_params", fallback=True):
        params.update(ti.dag_run.conf)
    return params.validate()


def _macros(ti: TaskInstance) -> Any:
    from tradewind.execution import macros  # lazy import: only templates need it

    return macros


def _assets() -> Any:
    from tradewind.execution import asset_events  # lazy import: only tasks that use asset events need it

    return asset_events


def _state_stores() -> Any:
    from tradewind.execution import state_stores  # lazy import: few tasks keep values

    return state_stores


def _key_text(ti: TaskInstance) -> str:
    at = ti.workload.logical_date
    return f"{ti.dag_id}__{ti.task_id}__{_day(at).replace('-', '') if at is not None else ti.run_id}"


def _day(micros: int, days: int = 0) -> str:
    return (from_micros(micros) + timedelta(days=days)).strftime("%Y-%m-%d")


def _at(ti: TaskInstance) -> int:
    at = ti.workload.logical_date
    assert at is not None  # the variables of WITH_LOGICAL_DATE exist only in runs with a logical date
    return at


def _day_of(days: int = 0, dashes: bool = True) -> Maker:
    def make(ti: TaskInstance) -> str:
        found = _day(_at(ti), days)
        return found if dashes else found.replace("-", "")

    return make


def _time(pattern: str) -> Maker:
    return lambda ti: from_micros(_at(ti)).strftime(pattern)


def _adjacent_date(which: str, shape: str) -> Maker:
    """The logical date of the `next` or `previous` run. `shape`: `date`, `day` (2024-01-31) or `digits` (20240131)."""

    def make(ti: TaskInstance) -> DateTime | str | None:
        # lazy import: only these old variables need timetables
        from tradewind.execution import neighbour_runs

        find = neighbour_runs.next_logical_date if which == "next" else neighbour_runs.previous_logical_date
        found = find(ti.task.get_dag(), ti.workload)
        if found is None:
            return None
        if shape == "date":
            return to_pendulum(found)
        return _day(found) if shape == "day" else _day(found).replace("-", "")

    return make


def _success(name: str) -> Maker:
    """A date of the last successful run before this run."""
    return lambda ti: LazyValue(lambda: getattr(ti.get_previous_dagrun("success"), name, None))


ALWAYS: dict[str, Maker] = {
    "dag": lambda ti: ti.task.get_dag(),
    "task": lambda ti: ti.task,
    "ti": lambda ti: ti,
    "task_instance": lambda ti: ti,
    "dag_run": lambda ti: ti.dag_run,
    "run_id": lambda ti: ti.run_id,
    "map_index": lambda ti: ti.map_index,
    "try_number": lambda ti: ti.try_number,
    "task_reschedule_count": lambda ti: ti.workload.reschedules,
    "task_instance_key_str": _key_text,
    "params": _params,
    "conf": lambda ti: conf,
    "var": lambda ti: {"value": VariableAccessor(False), "json": VariableAccessor(True)},
    "conn": lambda ti: ConnectionAccessor(),
    "macros": _macros,
    "templates_dict": lambda ti: getattr(ti.task, "templates_dict", None),
    "inlets": lambda ti: list(getattr(ti.task, "inlets", ())),
    "outlets": lambda ti: list(getattr(ti.task, "outlets", ())),
    "expanded_ti_count": lambda ti: ti.expanded_count(),
    "map_index_template": lambda ti: getattr(ti.task, "map_index_template", None),
    "partition_key": lambda ti: ti.workload.partition_key,
    "partition_date": lambda ti: to_pendulum(ti.workload.partition_date),
    "triggering_asset_events": lambda ti: _assets().TriggeringAssetEvents(ti.context, by_uri=False),
    "triggering_dataset_events": lambda ti: _assets().TriggeringAssetEvents(ti.context, by_uri=True),
    "inlet_events": lambda ti: _assets().InletEventsAccessors(ti.task.inlets, ti.context),
    "outlet_events": lambda ti: _assets().OutletEventAccessors(ti.task.outlets),
    "task_state_store": lambda ti: _state_stores().TaskStateStore(),
    "asset_state_store": lambda ti: _state_stores().AssetStateStores(ti.task.inlets, ti.task.outlets),
    "prev_start_date_success": _success("start_date"),
    "prev_end_date_success": _success("end_date"),
}
"""Variables that exist in every run."""

WITH_LOGICAL_DATE: dict[str, Maker] = {
    "logical_date": lambda ti: ti.dag_run.logical_date,
    "data_interval_start": lambda ti: ti.dag_run.data_interval_start,
    "data_interval_end": lambda ti: ti.dag_run.data_interval_end,
    "ds": _day_of(),
    "ds_nodash": _day_of(dashes=False),
    "ts": lambda ti: from_micros(_at(ti)).isoformat(),
    "ts_nodash": _time("%Y%m%dT%H%M%S"),
    "ts_nodash_with_tz": lambda ti: from_micros(_at(ti)).isoformat().replace("-", "").replace(":", ""),
    "prev_data_interval_start_success": _success("data_interval_start"),
    "prev_data_interval_end_success": _success("data_interval_end"),
    # Airflow 1 and 2
    "prev_execution_date_success": _success("logical_date"),
    "execution_date": lambda ti: ti.dag_run.logical_date,
    "next_execution_date": _adjacent_date("next", "date"),
    "next_ds": _adjacent_date("next", "day"),
    "next_ds_nodash": _adjacent_date("next", "digits"),
    "prev_execution_date": _adjacent_date("previous", "date"),
    "prev_ds": _adjacent_date("previous", "day"),
    "prev_ds_nodash": _adjacent_date("previous", "digits"),
    "yesterday_ds": _day_of(-1),
    "yesterday_ds_nodash": _day_of(-1, dashes=False),
    "tomorrow_ds": _day_of(1),
    "tomorrow_ds_nodash": _day_of(1, dashes=False),
    # Airflow 1.8
    "latest_date": _day_of(),
    "end_date": _day_of(),
    "END_DATE": _day_of(),
    "tables": lambda ti: ti.get_template_context()["params"].get("tables"),
}
"""Variables that exist only in runs with a logical date."""

_EVERY: dict[str, Maker] = {**ALWAYS, **WITH_LOGICAL_DATE}

COMMON_NAMES = frozenset({"conf", "end_date", "END_DATE", "latest_date", "tables", "partition_key", "partition_date"})
"""Variables whose names are also common names of arguments: passed to a function only if the parameter has no default."""
PARTITION_NAMES = frozenset({"partition_key", "partition_date"})
"""Those of them that are passed to a parameter with the default None, too, as in Airflow. No older Airflow has them."""


def build_context(
    task: Any, workload: Workload, *, started: int | None = None, test_mode: bool = False, ti: TaskInstance | None = None
) -> Context:
    """The context of one attempt.

    Args:
        task: the operator.
        workload: the description of the attempt from the scheduler.
        started: start of the attempt in microseconds. None: now.
        test_mode: True in `dag.test()`.
        ti: the task instance. None: a new one.
    """
    if ti is None:
        ti = TaskInstance(task, workload, started=started)
    makers = ALWAYS if workload.logical_date is None else _EVERY
    context = Context.computed_on_demand(ti, makers, {"test_mode": test_mode, "ti": ti, "task_instance": ti, "task": task})
    ti.context = context
    return context


_running: list[Context] = []
"""Contexts of running operators, innermost last, because an operator may execute another one. Shared by all threads of a task."""


def push_context(context: Context) -> None:
    """Make `context` the current context, for a process that ends with its task."""
    _running.append(context)


def pop_context() -> None:
    """Undo the last `push_context`."""
    _running.pop()


@contextlib.contextmanager
def current_context(context: Context) -> Iterator[Context]:
    """Make `context` the current context inside the `with` block."""
    _running.append(context)
    try:
        yield context
    finally:
        _running.pop()


def _generation_of_running_task() -> int:
    dag = _running[-1].get("dag") if _running else None
    return getattr(dag, "generation", CURRENT)


open_dags.ask_for_running_generation(_generation_of_running_task)


def workload_that_runs() -> Workload | None:
    """The attempt that is running in this process; None if there is none."""
    ti = _running[-1]._ti if _running else None
    return None if ti is None else ti.workload


class NoCurrentContext(AirflowException, RuntimeError):
    """No task is running in this process. Airflow 2 raises AirflowException, Airflow 3 RuntimeError; this class is both."""


def get_current_context() -> Context:
    """The context of the task that is running in this process.

    Raises:
        NoCurrentContext: no task is running.
    """
    if not _running:
        raise NoCurrentContext(
            "no task is running, so no context was found: call get_current_context() inside a task, not at the top level of the "
            "DAG file"
        )
    return _running[-1]
