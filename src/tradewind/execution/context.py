"""What a task sees of itself while it runs: the context, its task instance, its run.

`build_context` costs a few microseconds: nothing is computed until it is looked at, and dates are made only when one is
touched (they are pendulum's, in UTC, as Airflow's users know them). The names are those of Airflow 1, 2 and 3 together; a
run without a logical date has none of the names that stand for one.

    ALWAYS   dag, task, ti, dag_run, run_id, params, conf, var, conn, macros, prev_start_date_success …
    DATED    ds, ts, logical_date, data_interval_*, prev_data_interval_*_success, and Airflow 1 and 2's next_ds …
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from tradewind.execution.task_instance import DagRun, DagRunType, TaskInstance, moment
from tradewind.model.errors import did_you_mean
from tradewind.model.moments import from_micros
from tradewind.sdk.conf import conf
from tradewind.sdk.exceptions import AirflowException, AirflowNotFoundException
from tradewind.sdk.params import ParamsDict
from tradewind.sdk.unsupported import UnsupportedVariable
from tradewind.sdk.variables import NOTSET, Connection, Variable
from tradewind.wire.messages import Workload

if TYPE_CHECKING:
    from pendulum import DateTime

__all__ = ["Context", "DagRun", "DagRunType", "TaskInstance", "build_context", "get_current_context"]

log = logging.getLogger("tradewind.task")

Maker = Callable[[TaskInstance], Any]


class Context(dict[str, Any]):
    """The context variables of one running task, by name. Values are made when they are first read.

    A dictionary to its users: `context["ds"]`, `context.get("x")`, `{**context}`, `f(**context)`, `"ds" in context`.
    """

    __slots__ = ("_makers", "_ti")

    def __init__(self, ti: TaskInstance, makers: Mapping[str, Maker], given: Mapping[str, Any]) -> None:
        super().__init__(given)
        self._ti = ti
        self._makers = makers

    def __missing__(self, key: str) -> Any:
        make = self._makers.get(key)
        if make is None:
            if key in DATED:
                hint = " This run has no logical date."
            else:
                hint = did_you_mean(key, self) if isinstance(key, str) else ""
            raise KeyError(f"the context has no {key!r}.{hint}")
        value = make(self._ti)
        dict.__setitem__(self, key, value)
        return value

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, key) or key in self._makers

    # `dict(context)` and `f(**context)` take the short way around these methods unless iteration is redefined
    def __iter__(self) -> Iterator[str]:
        yield from dict.__iter__(self)
        for key in self._makers:
            if not dict.__contains__(self, key):
                yield key

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return True

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._makers = {name: make for name, make in self._makers.items() if name != key}
        if dict.__contains__(self, key):
            dict.__delitem__(self, key)

    def __repr__(self) -> str:
        ti = self._ti
        return f"<Context of {ti.dag_id}.{ti.task_id} in {ti.run_id}>"

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__  # type: ignore[assignment]

    def __or__(self, other: Mapping[str, Any]) -> Context:  # type: ignore[override]
        joined = self.copy()
        joined.update(other)
        return joined

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default  # noqa: SIM401 (this is the `get` it would call)

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

    def made(self) -> dict[str, Any]:
        """The values that were read so far."""
        return dict(dict.items(self))

    def copy(self) -> Context:
        """Another context with the same values; what was not made yet, is made in each by itself."""
        return Context(self._ti, self._makers, self.made())

    __copy__ = copy

    def __reduce__(self) -> Any:
        raise TypeError("a context cannot be pickled: pass the values you need")


class Later:
    """A value that is asked for when something is done with it.

    `f(**context)` hands over every value; those that cost a question to the scheduler are represented by a `Later`, as in
    Airflow, in templates too. It behaves like the value it stands for, except that `is None` is never true: test its truth
    instead. (So `{{ prev_start_date_success | ds }}` is an error where there is no such run, not the text "None".)
    """

    __slots__ = ("_Later__known", "_Later__make")

    def __init__(self, make: Callable[[], Any]) -> None:
        object.__setattr__(self, "_Later__make", make)
        object.__setattr__(self, "_Later__known", NOTSET)

    def __getattr__(self, name: str) -> Any:
        return getattr(reveal(self), name)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(reveal(self))

    def __str__(self) -> str:
        return str(reveal(self))

    def __repr__(self) -> str:
        return repr(reveal(self))

    def __format__(self, spec: str) -> str:
        return format(reveal(self), spec)

    def __bool__(self) -> bool:
        return bool(reveal(self))

    def __hash__(self) -> int:
        return hash(reveal(self))

    def __eq__(self, other: object) -> bool:
        return bool(reveal(self) == reveal(other))

    def __lt__(self, other: Any) -> bool:
        return bool(reveal(self) < reveal(other))

    def __le__(self, other: Any) -> bool:
        return bool(reveal(self) <= reveal(other))

    def __gt__(self, other: Any) -> bool:
        return bool(reveal(self) > reveal(other))

    def __ge__(self, other: Any) -> bool:
        return bool(reveal(self) >= reveal(other))

    def __add__(self, other: Any) -> Any:
        return reveal(self) + other

    def __sub__(self, other: Any) -> Any:
        return reveal(self) - reveal(other)

    def __rsub__(self, other: Any) -> Any:
        return other - reveal(self)


def reveal(value: Any) -> Any:
    """The value itself, where a `Later` stands for it."""
    if type(value) is not Later:
        return value
    known = object.__getattribute__(value, "_Later__known")
    if known is NOTSET:
        known = object.__getattribute__(value, "_Later__make")()
        object.__setattr__(value, "_Later__known", known)
    return known


# --- the values -----------------------------------------------------------------------------------------------------


class VariableAccessor:
    """`var.value.name` and `var.json.name`; `.get(name, default)` where it may be missing."""

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
    """`conn.name`; `.get(name, default)` where it may be missing."""

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
    """The DAG's parameters, and over them the task's."""
    dag = task.get_dag()
    params = ParamsDict(dag.params if dag is not None else {})
    params.update(task.params)
    return params


def _params(ti: TaskInstance) -> Any:
    """The DAG's parameters, over them the task's, over them the run's conf; checked against their schemas."""
    if ti.task._default_params is not None and not ti.workload.conf:
        return dict(ti.task._default_params)
    params = own_params(ti.task)
    if ti.dag_run.conf and conf.getboolean("core", "dag_run_conf_overrides_params", fallback=True):
        params.update(ti.dag_run.conf)
    return params.validate()


def _macros(ti: TaskInstance) -> Any:
    from tradewind.execution import macros  # lazy door: only templates need it

    return macros


def _assets() -> Any:
    from tradewind.execution import asset_events  # lazy door: only tasks that look at events pay

    return asset_events


def _key_text(ti: TaskInstance) -> str:
    at = ti.workload.logical_date
    return f"{ti.dag_id}__{ti.task_id}__{_day(at).replace('-', '') if at is not None else ti.run_id}"


def _day(micros: int, days: int = 0) -> str:
    return (from_micros(micros) + timedelta(days=days)).strftime("%Y-%m-%d")


def _at(ti: TaskInstance) -> int:
    at = ti.workload.logical_date
    assert at is not None  # the names in DATED are offered only where there is one
    return at


def _day_of(days: int = 0, dashes: bool = True) -> Maker:
    def make(ti: TaskInstance) -> str:
        found = _day(_at(ti), days)
        return found if dashes else found.replace("-", "")

    return make


def _time(pattern: str) -> Maker:
    return lambda ti: from_micros(_at(ti)).strftime(pattern)


def _neighbour(which: str, shape: str) -> Maker:
    """The logical date of the `next` or `previous` run; `shape`: date, day or digits."""

    def make(ti: TaskInstance) -> DateTime | str | None:
        # lazy door: calendars are needed for these old names only
        from tradewind.execution import neighbour_runs

        find = neighbour_runs.next_logical_date if which == "next" else neighbour_runs.previous_logical_date
        found = find(ti.task.get_dag(), ti.workload)
        if found is None:
            return None
        if shape == "date":
            return moment(found)
        return _day(found) if shape == "day" else _day(found).replace("-", "")

    return make


def _success(name: str) -> Maker:
    """A date of the last successful run before this one."""
    return lambda ti: Later(lambda: getattr(ti.get_previous_dagrun("success"), name, None))


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
    "partition_key": lambda ti: None,
    "partition_date": lambda ti: None,
    "triggering_asset_events": lambda ti: _assets().TriggeringAssetEvents(ti.context, by_uri=False),
    "triggering_dataset_events": lambda ti: _assets().TriggeringAssetEvents(ti.context, by_uri=True),
    "inlet_events": lambda ti: _assets().InletEventsAccessors(ti.task.inlets, ti.context),
    "outlet_events": lambda ti: _assets().OutletEventAccessors(ti.task.outlets),
    "task_state_store": lambda ti: UnsupportedVariable("task_state_store", "state stores"),
    "asset_state_store": lambda ti: UnsupportedVariable("asset_state_store", "state stores"),
    "prev_start_date_success": _success("start_date"),
    "prev_end_date_success": _success("end_date"),
}
"""Offered in every run."""

DATED: dict[str, Maker] = {
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
    "next_execution_date": _neighbour("next", "date"),
    "next_ds": _neighbour("next", "day"),
    "next_ds_nodash": _neighbour("next", "digits"),
    "prev_execution_date": _neighbour("previous", "date"),
    "prev_ds": _neighbour("previous", "day"),
    "prev_ds_nodash": _neighbour("previous", "digits"),
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
"""Offered where the run has a logical date."""

_EVERY: dict[str, Maker] = {**ALWAYS, **DATED}

COMMON_WORDS = frozenset({"conf", "end_date", "END_DATE", "latest_date", "tables", "partition_key", "partition_date"})
"""Names that are also everyday names of arguments: handed to a function only where it cannot do without."""


def build_context(
    task: Any, workload: Workload, *, started: int | None = None, test_mode: bool = False, ti: TaskInstance | None = None
) -> Context:
    """The context of one attempt.

    Args:
        task: the operator that runs.
        workload: what the scheduler said about the attempt.
        started: when it started, in microseconds; None: when the context is built.
        test_mode: True in `dag.test()`.
        ti: the task instance to use; None: a new one.
    """
    if ti is None:
        ti = TaskInstance(task, workload, started=started)
    makers = ALWAYS if workload.logical_date is None else _EVERY
    context = Context(ti, makers, {"test_mode": test_mode, "ti": ti, "task_instance": ti, "task": task})
    ti.context = context
    return context


_running: list[Context] = []
"""Innermost last: an operator may execute another one. Of the process, not of a thread: threads of a task see it."""


def enter(context: Context) -> None:
    """Make `context` what `get_current_context` gives, from now on: in a process that ends with its task."""
    _running.append(context)


def leave() -> None:
    """Take back the last `enter`."""
    _running.pop()


@contextlib.contextmanager
def current(context: Context) -> Iterator[Context]:
    """Make `context` what `get_current_context` gives, for the duration of the block."""
    _running.append(context)
    try:
        yield context
    finally:
        _running.pop()


def get_current_context() -> Context:
    """The context of the task that is running in this process.

    Raises:
        AirflowException: none is.
    """
    if not _running:
        raise AirflowException(
            "the current context was asked for while no task is running: call get_current_context() inside a task, not "
            "while the DAG file is read"
        )
    return _running[-1]
