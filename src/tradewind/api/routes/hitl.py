"""Questions of tasks to persons (human in the loop): list them, read them, answer them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Response
from pydantic import BaseModel, ConfigDict, Field

from tradewind.api.auth.policy import allow
from tradewind.api.responses import (
    Api,
    Caller,
    Limit,
    Names,
    Number,
    Offset,
    Order,
    Text,
    When,
    described,
    json_response,
    moments,
    page_size,
)
from tradewind.api.shapes import HitlDetails
from tradewind.model.errors import WrongArgument
from tradewind.model.moments import iso
from tradewind.model.phrases import english, phrase
from tradewind.sdk.exceptions import ParamValidationError
from tradewind.sdk.params import check_fields
from tradewind.store.port.lists import HitlFilter
from tradewind.store.views import HitlAnswerView, HitlDetailView, HitlTryView, HitlUserView
from tradewind.wire import commands as c

router = APIRouter(prefix="/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}", tags=["Task Instance"])

_ONE = "/taskInstances/{task_id}/{map_index}/hitlDetails"


async def _created_at(
    created_at_gte: When = None, created_at_gt: When = None, created_at_lte: When = None, created_at_lt: When = None
) -> dict[str, int]:
    return moments(dict(locals()))


_CreatedAt = Annotated[dict[str, int], Depends(_created_at)]


@router.get("/hitlDetails", responses=described(HitlDetails, also=(400, 404)))
@allow("read", "task_instance")
def list_hitl_details(
    api: Api,
    dag_id: str,
    dag_run_id: str,
    created_at: _CreatedAt,
    dag_id_pattern: str | None = None,
    dag_id_prefix_pattern: str | None = None,
    task_id: Text = None,
    task_id_pattern: str | None = None,
    task_id_prefix_pattern: str | None = None,
    map_index: Number | None = None,
    state: Names = None,
    response_received: bool | None = None,
    responded_by_user_id: Names = None,
    responded_by_user_name: Names = None,
    subject_search: str | None = None,
    body_search: str | None = None,
    limit: Limit = 50,
    offset: Offset = 0,
    order_by: Order = None,
) -> Response:
    """List the questions of tasks of a run. `~` as the run: of all runs of the DAG; `~` for both: of all DAGs."""
    wanted = HitlFilter(
        dag_id=dag_id,
        run_id=dag_run_id,
        dag_id_pattern=dag_id_pattern,
        dag_id_prefix=dag_id_prefix_pattern,
        task_id=task_id,
        task_id_pattern=task_id_pattern,
        task_id_prefix=task_id_prefix_pattern,
        map_index=map_index,
        states=state or (),
        answered=response_received,
        user_ids=responded_by_user_id or (),
        user_names=responded_by_user_name or (),
        subject=subject_search,
        body=body_search,
        ranges=created_at,
    )
    found = api.reader().hitl_details(wanted, limit=page_size(api, limit), offset=offset, order_by=order_by or ())
    return json_response(HitlDetails(found.rows, found.total))


@router.get(_ONE, responses=described(HitlDetailView, also=(404,)))
@allow("read", "task_instance")
def get_hitl_detail(api: Api, dag_id: str, dag_run_id: str, task_id: str, map_index: Number) -> Response:
    """The question of a task instance in its current try. -1 is the map index of a task that is not mapped."""
    return json_response(api.reader().hitl_detail(dag_id, dag_run_id, task_id, map_index))


@router.get(_ONE + "/tries/{try_number}", responses=described(HitlTryView, also=(404,)))
@allow("read", "task_instance")
def get_hitl_try(api: Api, dag_id: str, dag_run_id: str, task_id: str, map_index: Number, try_number: Number) -> Response:
    """The question of one try of a task instance."""
    return json_response(api.reader().hitl_try(dag_id, dag_run_id, task_id, map_index, try_number))


class HitlAnswer(BaseModel):
    """The chosen options, and the values of the form fields. The values of all fields are given, or of none."""

    model_config = ConfigDict(extra="forbid")

    chosen_options: list[str] = Field(min_length=1)
    params_input: dict[str, Any] = Field(default_factory=dict)


@router.patch(_ONE, responses=described(HitlAnswerView, also=(400, 403, 404, 409, 503)))
@allow("edit", "task_instance")
def answer(
    api: Api, caller: Caller, dag_id: str, dag_run_id: str, task_id: str, map_index: Number, body: HitlAnswer
) -> Response:
    """Answer the question of a task instance. 409: it was answered already. 403: others are asked."""
    question = api.reader().hitl_detail(dag_id, dag_run_id, task_id, map_index)
    if question.response_received:
        raise HTTPException(
            409,
            english(phrase("error_answered", task=task_id, run=dag_run_id)),
        )
    if question.assigned_users and caller.name not in {
        name for user in question.assigned_users for name in (user.id, user.name)
    }:
        raise HTTPException(403, english(phrase("error_not_asked", user=caller.name, number=caller.name)))
    try:
        check_fields(question.params, body.params_input)
        command = c.AnswerInput(
            dag_id, dag_run_id, task_id, body.chosen_options, caller.name, caller.name, map_index, body.params_input
        )
        done = api.control().call(command, actor=caller.name)
    except (WrongArgument, ParamValidationError) as error:
        raise HTTPException(400, str(error)) from None
    return json_response(
        HitlAnswerView(
            responded_by=HitlUserView(id=caller.name, name=caller.name),
            responded_at=iso(done.at) or "",
            chosen_options=done.chosen,
            params_input=done.params,
        )
    )
