"""Family D of the golden outcomes: what do templates render to? See the format's section 6.

`outcome(spec)` answers one specification, as the program under test would.
"""

from __future__ import annotations

import json
from typing import Any

from tradewind.authoring.context import build_context
from tradewind.authoring.dag import DAG
from tradewind.authoring.operator import BaseOperator
from tradewind.authoring.templates import render_fields
from tradewind.model.moments import parse_moment
from tradewind.model.states import RunType
from tradewind.wire import runtime
from tradewind.wire.messages import (
    Failure,
    GetConnection,
    GetPreviousRun,
    GetVariable,
    RunnerAnswer,
    Value,
    Workload,
)


class Templated(BaseOperator):
    """One task with the templates of a specification as its only field."""

    template_fields = ("given",)

    def __init__(self, given: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.given = given


class _World:
    """Variables, connections and the previous run of a specification."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._spec = spec

    def ask(self, question: runtime.Question) -> RunnerAnswer:
        match question:
            case GetVariable(key=key):
                found = self._spec.get("variables", {}).get(key)
            case GetConnection(conn_id=conn_id):
                found = self._spec.get("connections", {}).get(conn_id)
            case GetPreviousRun(state=state):
                found = self._previous(state)
            case _:
                return Failure(0, "not part of a specification")
        return Value(0, found=found is not None, value=found)

    def read_spill(self, name: str) -> bytes:
        raise LookupError(name)

    def _previous(self, state: str | None) -> dict[str, Any] | None:
        run = self._spec.get("previous")
        if run is None or state not in (None, run["state"]):
            return None
        start, end = run["data_interval"]
        return {
            "run_id": run["run_id"],
            "run_type": run["type"],
            "state": run["state"],
            "logical_date": parse_moment(run["logical_date"]),
            "data_interval_start": parse_moment(start),
            "data_interval_end": parse_moment(end),
            "run_after": parse_moment(run["run_after"]),
            "start_date": parse_moment(run["start_date"]),
            "end_date": parse_moment(run["end_date"]),
        }


def _workload(spec: dict[str, Any]) -> Workload:
    run = spec["run"]
    start, end = run.get("data_interval") or (None, None)

    def moment(text: str | None) -> int | None:
        return None if text is None else parse_moment(text)

    return Workload(
        run=1,
        slot=0,
        fence=1,
        dag_id=spec["dag_id"],
        task_id=spec["task_id"],
        run_id=run["run_id"],
        run_type=RunType(run["type"]),
        logical_date=moment(run["logical_date"]),
        interval_start=moment(start),
        interval_end=moment(end),
        run_after=parse_moment(run["run_after"]),
        run_started=moment(run.get("start_date")),
        conf=run.get("conf") or {},
    )


def _shown(value: Any) -> Any:
    try:
        same = json.loads(json.dumps(value)) == value
    except (TypeError, ValueError):
        same = False
    return {"value": value if same else {"str": str(value)}}


def outcome(spec: dict[str, Any]) -> dict[str, Any]:
    """The outcome of one specification of family D. Each template is rendered as a field of its own."""
    runtime.install(_World(spec))
    try:
        dag = DAG(
            spec["dag_id"],
            schedule=None,
            params=spec.get("params"),
            render_template_as_native_obj=bool(spec.get("native")),
        )
        rendered: dict[str, Any] = {}
        task = Templated(task_id=spec["task_id"], given=None, dag=dag)
        for name, template in spec["templates"].items():
            task.given = template
            try:
                render_fields(task, build_context(task, _workload(spec)))
            except Exception as error:
                rendered[name] = {"error": type(error).__name__}
            else:
                rendered[name] = _shown(task.given)
        return {"rendered": rendered}
    finally:
        runtime.install(None)
