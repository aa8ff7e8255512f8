"""Tests of connections: at once, or in the background."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Header, HTTPException, Response
from pydantic import Field

from tradewind.api.auth.policy import allow
from tradewind.api.responses import Api, described, json_response
from tradewind.api.routes.connections import NewConnection, stored_secrets
from tradewind.api.services import Services
from tradewind.model.moments import iso
from tradewind.model.secret_names import MASK
from tradewind.store.views import Moment

router = APIRouter(prefix="/api/v2/connections", tags=["Connection"])


class TestResult(msgspec.Struct, frozen=True):
    """Whether a connection works, and a sentence."""

    status: bool
    message: str


class QueuedTestView(msgspec.Struct, frozen=True):
    """A test that was started. Send the token as the header `Airflow-Connection-Test-Token` to get the result."""

    token: str
    connection_id: str
    state: str


class TestState(msgspec.Struct, frozen=True):
    """A test in the background: `queued`, `running`, `success` or `failed`."""

    token: str
    connection_id: str
    state: str
    result_message: str | None
    created_at: Moment


@router.post("/test", responses=described(TestResult, also=(409, 503)))
@allow("edit", "connection")
def test_connection(api: Api, body: NewConnection) -> Response:
    """Test a connection that need not be stored. 403: `api.test_connection` does not allow it."""
    _must_be_allowed(api)
    return json_response(TestResult(*api.connection_tests.run(_fields(api, body))))


class TestRequest(NewConnection):
    """A connection to test in the background. `executor` and `queue` have no effect: the test runs beside the API."""

    commit_on_success: bool = Field(default=False, description="true is not supported: store the connection with POST.")
    executor: str | None = None
    queue: str | None = None


@router.post("/enqueue-test", status_code=202, responses=described(QueuedTestView, 202, also=(400, 409, 503)))
@allow("edit", "connection")
def enqueue_test(api: Api, body: TestRequest) -> Response:
    """Test a connection in the background."""
    _must_be_allowed(api)
    if body.commit_on_success:
        raise HTTPException(400, "commit_on_success=true is not supported: store the connection with POST /api/v2/connections.")
    found = api.connection_tests.start(_fields(api, body))
    return json_response(QueuedTestView(found.token, found.connection_id, found.state), 202)


@router.get("/enqueue-test", responses=described(TestState, also=(404,)))
@allow("edit", "connection")
def get_test(api: Api, airflow_connection_test_token: Annotated[str, Header()]) -> Response:
    """The state of a test in the background. A restart of the API forgets it."""
    found = api.connection_tests.find(airflow_connection_test_token)
    return json_response(TestState(found.token, found.connection_id, found.state, found.message, iso(found.created_at) or ""))


def _must_be_allowed(api: Services) -> None:
    if not api.config.test_connection:
        raise HTTPException(
            403,
            "Testing connections is disabled in the configuration. To allow it, set api.test_connection = enabled: "
            "a hook of a provider package then runs on this machine with what the client sends.",
        )


def _fields(api: Services, body: NewConnection) -> dict[str, Any]:
    """The arguments of `Connection`. The mask `***` stands for the stored secret."""
    password, extra = body.password, body.extra
    if password == MASK or (extra and MASK in extra):
        stored = stored_secrets(api, body.connection_id, extra)
        password, extra = (stored.password if password == MASK else password), stored.extra
    return {
        "conn_id": body.connection_id,
        "conn_type": body.conn_type,
        "description": body.description,
        "host": body.host,
        "login": body.login,
        "password": password,
        "schema": body.schema_,
        "port": body.port,
        "extra": extra,
    }
