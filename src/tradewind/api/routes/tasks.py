"""The tasks of a DAG, as its current version defines them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Response

from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, described, json_response
from tradewind.model.definition import DagDefinition, TaskDefinition
from tradewind.model.errors import NotFound, did_you_mean
from tradewind.model.moments import SECOND, iso
from tradewind.model.operator_classes import class_of
from tradewind.store.views import BadQuery, Moment

router = APIRouter(prefix="/api/v2/dags/{dag_id}/tasks", tags=["Task"])

_DAY = 86_400 * SECOND


class Span(msgspec.Struct, frozen=True):
    """A duration, in the parts of Python's `timedelta`."""

    days: int
    seconds: int
    microseconds: int
    kind: str = msgspec.field(name="__type", default="TimeDelta")


class TaskView(msgspec.Struct, frozen=True):
    """One task of a DAG."""

    task_id: str
    task_display_name: str
    owner: str
    start_date: Moment | None
    end_date: Moment | None
    trigger_rule: str
    depends_on_past: bool
    wait_for_downstream: bool
    retries: float
    queue: str
    pool: str
    pool_slots: float
    execution_timeout: Span | None
    retry_delay: Span
    retry_exponential_backoff: float
    priority_weight: float
    weight_rule: str
    ui_color: str
    ui_fgcolor: str
    template_fields: list[str]
    downstream_task_ids: list[str]
    doc_md: str | None
    operator_name: str
    params: dict[str, Any]
    class_ref: dict[str, str]
    is_mapped: bool
    extra_links: list[str]


class Tasks(msgspec.Struct, frozen=True):
    """The tasks of a DAG."""

    tasks: list[TaskView]
    total_entries: int


@router.get("", responses=described(Tasks, also=(400, 404)))
@allow("read", "dag")
def list_tasks(
    api: Api,
    dag_id: str,
    order_by: Annotated[str, Query(description="Name of one field. With `-` in front: in descending order.")] = "task_id",
) -> Response:
    """List the tasks of a DAG."""
    field = order_by.removeprefix("-")
    if field not in _ORDERS:
        raise BadQuery(
            f"Ordering with '{field}' is disallowed; possible are: {', '.join(_ORDERS)}.{did_you_mean(field, _ORDERS)}"
        )
    tasks = _views(api.reader().current_definition(dag_id))
    tasks.sort(key=lambda task: _order_key(getattr(task, field)), reverse=order_by.startswith("-"))
    return json_response(Tasks(tasks, len(tasks)))


@router.get("/{task_id}", responses=described(TaskView, also=(404,)))
@allow("read", "dag")
def get_task(api: Api, dag_id: str, task_id: str) -> Response:
    """One task of a DAG."""
    definition = api.reader().current_definition(dag_id)
    for task in _views(definition):
        if task.task_id == task_id:
            return json_response(task)
    near = did_you_mean(task_id, [task.task_id for task in definition.tasks])
    raise NotFound(f"Task with id {task_id} was not found in DAG {dag_id}.{near}")


_ORDERS = ("task_id", "task_display_name", "owner", "start_date", "end_date", "trigger_rule", "depends_on_past",
    "wait_for_downstream", "retries", "queue", "pool", "pool_slots", "execution_timeout", "retry_delay",
    "retry_exponential_backoff", "priority_weight", "weight_rule", "ui_color", "ui_fgcolor",
    "operator_name", "is_mapped")  # fmt: skip


def _order_key(value: Any) -> tuple[bool, Any]:
    """None comes last, as in Airflow."""
    if isinstance(value, Span):
        value = (value.days, value.seconds, value.microseconds)
    return value is None, 0 if value is None else value


def _views(definition: DagDefinition) -> list[TaskView]:
    downstream: dict[str, list[str]] = {}
    for task in definition.tasks:
        for upstream in task.upstream:
            downstream.setdefault(upstream, []).append(task.task_id)
    return [_view(definition, task, sorted(downstream.get(task.task_id, ()))) for task in definition.tasks]


def _params(definition: DagDefinition, task: TaskDefinition) -> dict[str, Any]:
    """The params of a task in the form of those of a DAG. `source` says who gives a param."""
    of_dag = {param.name: param for param in definition.params}
    own = {param.name: param for param in task.own_params}
    found = {}
    for name, value in (task.params or {}).items():
        if name in own:
            found[name] = {"value": value, "schema": own[name].schema, "description": own[name].description, "source": "task"}
            continue
        param = of_dag.get(name)
        same = param is not None and (param.default if param.has_default else None) == value
        found[name] = {
            "value": value,
            "schema": param.schema if param is not None and same else {},
            "description": param.description if param is not None and same else None,
            "source": "dag" if same else "task",
        }
    return found


def _view(definition: DagDefinition, task: TaskDefinition, downstream: list[str]) -> TaskView:
    module, name = class_of(task.operator, task.module)
    return TaskView(
        task_id=task.task_id,
        task_display_name=task.display_name or task.task_id,
        owner=task.owner,
        start_date=iso(definition.start_date if task.start_date is None else task.start_date),
        end_date=iso(definition.end_date if task.end_date is None else task.end_date),
        trigger_rule=task.trigger_rule.value,
        depends_on_past=task.depends_on_past,
        wait_for_downstream=task.wait_for_downstream,
        retries=float(task.retries),
        queue=task.queue,
        pool=task.pool,
        pool_slots=float(task.pool_slots),
        execution_timeout=None if task.execution_timeout is None else _span(task.execution_timeout),
        retry_delay=_span(task.retry_delay),
        retry_exponential_backoff=task.retry_exponential_backoff,
        priority_weight=float(task.priority_weight),
        weight_rule=str(getattr(task.weight_rule, "value", task.weight_rule)),
        ui_color=task.ui_color or "#fff",
        ui_fgcolor="#000",
        template_fields=list(task.template_fields),
        downstream_task_ids=downstream,
        doc_md=task.doc,
        operator_name=task.operator,
        params=_params(definition, task),
        class_ref={"module_path": module, "class_name": name},
        is_mapped=task.mapped,
        extra_links=[name for name, _ in task.extra_links],
    )


def _span(micros: int) -> Span:
    days, rest = divmod(micros, _DAY)
    seconds, microseconds = divmod(rest, SECOND)
    return Span(days, seconds, microseconds)
