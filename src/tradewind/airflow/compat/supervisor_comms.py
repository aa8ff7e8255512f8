"""`airflow.sdk.execution_time.comms`: the messages between a task of Airflow 3 and its supervisor. Tests use them.

Tasks of Tradewind send other messages (`tradewind.wire`). Tests replace the supervisor in the module that runs tasks:

    monkeypatch.setattr(task_runner, "SUPERVISOR_COMMS", comms, raising=False)
    comms.send.return_value = ConnectionResult(conn_id="aws_default", conn_type="aws", ...)

From then on this object answers requests for connections, variables and XComs in a process in which no task runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict

from tradewind.airflow.compat.execution_api import ConnectionResponse, VariableResponse, XComResponse
from tradewind.execution.xcom_codec import encode_xcom
from tradewind.sdk.exceptions import ErrorType
from tradewind.wire import runtime
from tradewind.wire.messages import Failure, GetConnection, GetVariable, RunnerAnswer, SetVariable, Value, XComPull, XComs

__all__ = [
    "AssetStateStoreResult",
    "BundleInfo",
    "CommsDecoder",
    "ConnectionResult",
    "ErrorResponse",
    "GetXCom",
    "OKResponse",
    "PutVariable",
    "RequestConnection",
    "RequestVariable",
    "SetXCom",
    "StartupDetails",
    "SupervisorRuntime",
    "TaskStateStoreResult",
    "ToSupervisor",
    "ToTask",
    "VariableResult",
    "XComResult",
]


class _Message(BaseModel):
    model_config = ConfigDict(extra="allow", arbitrary_types_allowed=True, populate_by_name=True)


class ConnectionResult(ConnectionResponse):
    """The answer to `GetConnection`."""

    type: str = "ConnectionResult"


class VariableResult(VariableResponse):
    """The answer to `GetVariable`."""

    type: str = "VariableResult"


class XComResult(XComResponse):
    """The answer to `GetXCom`."""

    type: str = "XComResult"


class AssetStateStoreResult(_Message):
    """A value in the state store of an asset."""

    value: Any = None
    type: str = "AssetStateStoreResult"


class TaskStateStoreResult(_Message):
    """A value in the state store of a task."""

    value: Any = None
    type: str = "TaskStateStoreResult"


class ErrorResponse(_Message):
    """The request could not be answered."""

    error: ErrorType = ErrorType.GENERIC_ERROR
    detail: dict[str, Any] | None = None
    type: str = "ErrorResponse"


class OKResponse(_Message):
    """The request was executed."""

    ok: bool
    type: str = "OKResponse"


class RequestConnection(_Message):
    """Airflow's `GetConnection`."""

    conn_id: str
    type: str = "GetConnection"


class RequestVariable(_Message):
    """Airflow's `GetVariable`."""

    key: str
    type: str = "GetVariable"


class PutVariable(_Message):
    """Store a variable."""

    key: str
    value: str | None = None
    description: str | None = None
    type: str = "PutVariable"


class GetXCom(_Message):
    """Request the XCom of a task instance."""

    key: str
    dag_id: str
    run_id: str
    task_id: str
    map_index: int | None = None
    include_prior_dates: bool = False
    type: str = "GetXCom"


class SetXCom(_Message):
    """Store an XCom of a task instance."""

    key: str
    value: Any = None
    dag_id: str
    run_id: str
    task_id: str
    map_index: int | None = None
    mapped_length: int | None = None
    type: str = "SetXCom"


class BundleInfo(_Message):
    """A DAG bundle and its version."""

    name: str
    version: str | None = None


class StartupDetails(_Message):
    """The information that a task of Airflow gets at its start."""

    ti: Any
    dag_rel_path: str = ""
    bundle_info: BundleInfo | None = None
    start_date: Any = None
    ti_context: Any = None
    sentry_integration: str = ""
    type: str = "StartupDetails"


ToTask = ToSupervisor = BaseModel
"""All messages to a task."""


class CommsDecoder:
    """The connection of a task to its supervisor: tests create mocks with its methods."""

    def send(self, msg: Any) -> Any:
        """Send a message and return the answer."""
        raise runtime.NoRuntime(f"{type(msg).__name__} was sent, but no supervisor can answer it")

    async def asend(self, msg: Any) -> Any:
        """As `send`, in an event loop."""
        return self.send(msg)

    def get_message(self) -> Any:
        """Wait for a message. Raises as `send`."""
        return self.send(None)


class SupervisorRuntime:
    """Lets a test's replacement for the supervisor answer requests (implements `runtime.Runtime`).

    Args:
        comms: an object with Airflow's `send`.
        behind: the runtime that answers all other requests.
    """

    local = True

    def __init__(self, comms: Any, behind: runtime.Runtime) -> None:
        self.comms = comms
        self.behind = behind

    def ask(self, question: runtime.Question) -> RunnerAnswer:
        """The answer of the replacement. A value that it does not have does not exist."""
        match question:
            case GetConnection():
                found = self.comms.send(RequestConnection(conn_id=question.conn_id))
                parts = _parts(found) if isinstance(found, ConnectionResult) else None
                return Value(question.op, parts is not None, parts)
            case GetVariable():
                found = self.comms.send(RequestVariable(key=question.key))
                is_there = isinstance(found, VariableResult)
                return Value(question.op, is_there, found.value if is_there else None)
            case SetVariable():
                found = self.comms.send(PutVariable(key=question.key, value=question.value, description=question.description))
                if isinstance(found, ErrorResponse):
                    return Failure(question.op, found.error.value)
                return Value(question.op, True)
            case XComPull():
                return XComs(question.op, tuple(self._xcoms(question)))
            case _:
                return self.behind.ask(question)

    def _xcoms(self, question: XComPull) -> Iterator[tuple[str, int, bytes, str | None]]:
        where: dict[str, Any] = {
            "dag_id": question.dag_id,
            "run_id": question.run_id,
            "include_prior_dates": question.include_prior_dates,
        }
        for task_id in question.task_ids:
            for index in question.map_indexes or (-1,):
                found = self.comms.send(GetXCom(key=question.key, task_id=task_id, map_index=index, **where))
                if isinstance(found, XComResult) and found.value is not None:
                    yield task_id, index, encode_xcom(found.value), None

    def read_spill(self, name: str) -> bytes:
        """Raise an error: values of a replacement are never in files."""
        return self.behind.read_spill(name)


def _parts(found: ConnectionResult) -> dict[str, Any]:
    names = ("conn_type", "host", "login", "password", "port", "extra")
    return {"schema": found.schema_, **{name: getattr(found, name) for name in names}}


def use_stand_in(comms: Any) -> None:
    """Let this replacement answer requests; None: end this. Without effect in a process that a scheduler has started."""
    current = runtime.current()
    behind = current.behind if isinstance(current, SupervisorRuntime) else current
    if not runtime.is_local():
        return
    runtime.install(behind if comms is None else SupervisorRuntime(comms, behind))
