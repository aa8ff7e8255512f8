"""Answers the golden specifications with DAGs that are written like those of an author, and run by the public test kit.

    python -m tests.conformance.adapter < specifications.jsonl > answers.jsonl

It uses only the public API, and does not depend on the names of specifications (test_adapter.py checks both).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from dateutil.relativedelta import relativedelta

import tradewind as tw
from tests.conformance.workflows import workflow
from tradewind import testing as kit
from tradewind.operators import python
from tradewind.timetables import events, interval, trigger

Json = Mapping[str, Any]
START = datetime(2030, 1, 1, tzinfo=UTC)  # second 0: after every logical date, so no run has to wait
LIMITS = ("catchup", "max_active_runs", "max_active_tasks")
TIMETABLES: Json = {
    "cron_data_interval": interval.CronDataIntervalTimetable,
    "cron_trigger": trigger.CronTriggerTimetable,
    "multiple_cron_trigger": trigger.MultipleCronTriggerTimetable,
    "delta_data_interval": interval.DeltaDataIntervalTimetable,
    "delta_trigger": trigger.DeltaTriggerTimetable,
    "events": events.EventsTimetable,
}


def moment(text: str | None) -> Any:
    return None if text is None else datetime.fromisoformat(text)


def delta(value: Any) -> Any:
    """`{"seconds": n}` or `{"relativedelta": {…}}`; all other values are returned unchanged."""
    if not isinstance(value, dict):
        return value
    return timedelta(**value) if "seconds" in value else relativedelta(**value["relativedelta"])


def instances(run: kit.TestedRun) -> list[list[Any]]:
    return sorted([one.task_id, one.map_index, one.state.shown, one.try_number] for one in run.tasks.values())


def second(at: datetime) -> int:
    return round((at - START).total_seconds())


def family_a(spec: Json) -> Json:
    dag = workflow("d", spec, **spec.get("dag", {}), max_active_tasks=10**6)
    world = kit.Simulation(dag, start=START)
    world.trigger(dag, "r")
    run = world.play().run("r")
    left = [(one, "killed" if one.stopped else one.left) for one in run.attempts]
    trace = [[second(one.started), second(one.ended), one.task_id, one.map_index, one.try_number, state] for one, state in left]
    graph = sorted([task.task_id, down] for task in dag.tasks for down in task.downstream_task_ids)
    return {"outcome": {"run_state": run.state, "tis": instances(run)}, "trace": sorted(trace), "graph": graph}


def family_b(spec: Json) -> Json:
    dags = [workflow(part["id"], part, **{key: part[key] for key in LIMITS if key in part}) for part in spec["dags"]]
    world = kit.Simulation(*dags, start=START, pools=spec.get("pools", {}))
    for run in spec["runs"]:
        given = {"at": START + timedelta(seconds=run["at"]), "run_type": run.get("type", "scheduled")}
        given |= {"logical_date": moment(run["logical_date"]), "run_after": moment(run["logical_date"])}
        world.trigger(run["dag"], run["run_id"], **given)
    world.play()
    weights = {dag.dag_id: world.priorities(dag) for dag in dags}
    steps = []
    for at in world.timeline():
        step: dict[str, Any] = {"started": [one[1:3] for one in at.started], "waiting": at.waiting}
        step["finished"] = [[*one[1:3], one.after] for one in at.finished]
        step["queued"] = [[*one[1:5], weights[one.dag_id][one.task_id]] for one in at.queued if one.task_id is not None]
        if at.started or at.finished or at.queued:
            steps.append({"t": second(at.at)} | {key: value for key, value in step.items() if value})
    runs = sorted([run.dag_id, run.run_id, run.state] for run in world.runs())
    tis = sorted([run.dag_id, run.run_id, *row] for run in world.runs() for row in instances(run))
    return {"outcome": {"priority_weights": weights, "steps": steps, "runs": runs, "tis": tis}}


def family_c(spec: Json) -> Json:
    def shown(moments: Any) -> Any:
        return moments and [one and one.isoformat().replace("+00:00", "Z") for one in moments]

    table = {key: delta(value) for key, value in spec["timetable"].items() if (key, value) != ("interval", None)}
    kind, dates = table.pop("type"), [moment(date["utc"]) for date in table.pop("dates", ())]
    first = table.pop("crons", None) or [table.pop(key) for key in ("cron", "delta", "value") if key in table] or [dates]
    bounds = {
        key: moment(spec[key]["utc"]).astimezone(ZoneInfo(spec[key]["tz"])) for key in ("start_date", "end_date") if key in spec
    }
    try:
        words = {"schedule": first[0], "once": "@once", "continuous": "@continuous", "null": None}
        schedule = words[kind] if kind in words else TIMETABLES[kind](*first, **table)
        one: dict[str, Any] = {"max_active_runs": 1} if kind == "continuous" else {}
        dag = tw.DAG("d", schedule=schedule, catchup=spec["catchup"], **bounds, **one)
        follow = timedelta(seconds=spec["clock"]["follow"]) if "clock" in spec else None
        runs = kit.upcoming_runs(dag, now=moment(spec["now"]), count=spec["count"], look_again_after=follow)
    except kit.ScheduleError:
        return {"outcome": {"error": "invalid"}}
    manual = [shown(kit.manual_interval(dag, moment(at), now=moment(spec["now"]))) for at in spec.get("manual", ())]
    return {"outcome": {"runs": [shown(run) for run in runs]} | ({"manual": manual} if "manual" in spec else {})}


def facts(run: Json) -> dict[str, Any]:
    span = run.get("data_interval") and tuple(moment(one) for one in run["data_interval"])
    return {
        "logical_date": moment(run["logical_date"]),
        "data_interval": span,
        "run_id": run["run_id"],
        "run_type": run["type"],
    }


def render(spec: Json, template: Any) -> Json:
    """One template of family D, as a field of a task."""
    native, past = spec.get("native", False), spec.get("previous")
    with tw.DAG(spec["dag_id"], schedule=None, params=spec.get("params"), render_template_as_native_obj=native) as dag:
        python.PythonOperator(task_id=spec["task_id"], python_callable=lambda: None, templates_dict={"given": template})
    world = kit.Simulation(dag, start=moment(spec["now"]))
    if past:
        span = {"started": moment(past["start_date"]), "ended": moment(past["end_date"])}
        world.past_run(dag, **facts(past), **span, state=past["state"])
    world.trigger(dag, **facts(spec["run"]), run_after=moment(spec["run"]["run_after"]), conf=spec["run"].get("conf"))
    run = world.play().run(spec["run"]["run_id"])
    if run.state != "success":
        return {"error": run.tasks[spec["task_id"]].reason}
    return {"value": as_json(kit.rendered(run, spec["task_id"], "templates_dict")["given"])}


def as_json(value: Any) -> Any:
    """Convert a value to JSON, recursively. A value that JSON does not have becomes `{"str": its text}`."""
    if isinstance(value, list):
        return [as_json(one) for one in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: as_json(one) for key, one in value.items()}
    return value if value is None or (isinstance(value, str | int | float) and value == value) else {"str": str(value)}


def family_d(spec: Json) -> Json:
    with kit.fake_variables(spec.get("variables")), kit.fake_connections(spec.get("connections")):
        return {"outcome": {"rendered": {name: render(spec, template) for name, template in spec["templates"].items()}}}


def family_e(spec: Json) -> Json:
    dag = workflow("d", spec, **spec.get("dag", {}), max_active_tasks=10**6, max_active_runs=1)
    world = kit.Simulation(dag, start=START)
    for run in spec["runs"]:
        date = moment(run["logical_date"])
        world.trigger(dag, run["run_id"], logical_date=date, run_after=date)
        world.play()
    ask, names = spec["clear"], ("include_upstream", "include_downstream", "include_past", "include_future", "only_failed")
    given = {key.removeprefix("include_"): ask[key] for key in names if key in ask}
    given |= {"task_ids": [one if isinstance(one, str) else tuple(one) for one in ask.get("task_ids", ())]}
    given |= {"run_id": ask.get("dag_run_id"), "reset_runs": ask.get("reset_dag_runs", True)}
    given |= {key: moment(ask.get(f"{key}_date")) for key in ("start", "end")}

    def shown() -> list[Any]:
        return [[run.run_id, run.state, instances(run)] for run in world.runs()]

    outcome = {"before": shown(), "cleared": world.clear(dag, **given), "after": shown()}
    world.play()
    return {"outcome": outcome | {"final": shown()}}


FAMILIES = {"A": family_a, "B": family_b, "C": family_c, "D": family_d, "E": family_e}


def answer(spec: Json) -> Json:
    try:
        return {"id": spec["id"], **FAMILIES[spec["family"]](spec)}
    except NotImplementedError as error:
        return {"id": spec["id"], "unsupported": str(error)}


def main() -> None:
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line)), ensure_ascii=False))


if __name__ == "__main__":
    main()
