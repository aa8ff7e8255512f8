"""The API application.

    request ─▶ HeadersAndBodyLimit ─▶ guard (authentication, permission, known parameters) ─▶ route, in a worker thread
                                                                 read: with the read-only connection of the thread
                                                                 change: a command to the scheduler, then a read

The API has no state and writes nothing to the database: it can be restarted at any moment.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from fastapi.routing import APIRoute

import tradewind
from tradewind.api.airflow2 import Airflow2Api
from tradewind.api.auth.account_audit import SEND_EVERY_SECONDS, SENT_AT_ONCE
from tradewind.api.auth.guard import guard
from tradewind.api.config import ApiConfig
from tradewind.api.middleware import HeadersAndBodyLimit
from tradewind.api.openapi import document
from tradewind.api.pages import STYLE, docs_page, front_page
from tradewind.api.responses import invalid, json_response, status_of
from tradewind.api.routes import (
    accounts,
    assets,
    backfills,
    callbacks,
    configuration,
    connection_tests,
    connections,
    dag_files,
    dag_runs,
    dags,
    event_logs,
    history,
    hitl,
    import_errors,
    installed_providers,
    jobs,
    links,
    log_links,
    login,
    login_pages,
    logs,
    me,
    monitor,
    oidc,
    plugins,
    pools,
    run_bulk_edits,
    run_edits,
    run_wait,
    state_stores,
    task_bulk_edits,
    task_edits,
    task_instances,
    tasks,
    ui_assets,
    ui_dags,
    ui_edits,
    ui_events,
    ui_grid,
    ui_logs,
    ui_lookups,
    ui_runs,
    ui_triage,
    variables,
    why,
    xcoms,
)
from tradewind.api.services import ControlFactory, ReaderFactory, Services
from tradewind.api.web_page import add_page
from tradewind.client.control import ControlClient
from tradewind.model.errors import StatementError, TradewindError
from tradewind.observe.log import Log
from tradewind.platform.clock import Clock, SystemClock
from tradewind.store.factory import open_reader
from tradewind.store.port import Reader

ROUTERS: tuple[APIRouter, ...] = (
    monitor.router,
    login.router,
    oidc.router,
    me.router,
    accounts.router,
    login_pages.router,
    dags.router,
    assets.router,
    tasks.router,
    dag_files.router,
    run_wait.router,
    dag_runs.router,
    run_edits.router,
    run_bulk_edits.router,
    logs.router,
    log_links.router,  # this one and the next ones before task_instances, where this part of the path is a map index
    links.router,
    xcoms.router,
    state_stores.router,
    task_bulk_edits.router,
    task_edits.router,
    why.router,  # before task_instances, too
    task_instances.router,
    hitl.router,
    history.router,
    jobs.router,
    backfills.router,
    import_errors.router,
    plugins.router,
    event_logs.router,
    callbacks.router,
    pools.router,
    variables.router,
    connection_tests.router,  # before connections, where this part of the path is an id
    connections.router,
    configuration.router,
    installed_providers.router,
    ui_assets.router,
    ui_dags.router,
    ui_edits.router,
    ui_events.router,
    ui_grid.router,
    ui_lookups.router,
    ui_logs.router,
    ui_runs.router,
    ui_triage.router,
)

_READER_CACHE_KIB = 1024
"""Cache of one SQLite reader. It is small, because the system caches the pages anyway."""

_log = Log("api")


def create_services(
    config: ApiConfig,
    readers: ReaderFactory | None = None,
    controls: ControlFactory | None = None,
    clock: Clock | None = None,
) -> Services:
    """Create the services that the routes of an application use. The arguments are those of `create_app`."""
    return Services(
        config, readers or (lambda: _open_reader(config)), controls or (lambda: _open_control(config)), clock or SystemClock()
    )


def create_app(
    config: ApiConfig,
    readers: ReaderFactory | None = None,
    controls: ControlFactory | None = None,
    clock: Clock | None = None,
) -> FastAPI:
    """Create the application.

    Args:
        readers: opens a read-only store; called once in each worker thread.
        controls: creates a connection to the scheduler; called once in each worker thread.
    """
    services = create_services(config, readers, controls, clock)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = config.threads
        sender = asyncio.create_task(_send_account_events(services))
        yield
        sender.cancel()
        services.events.close()
        services.close()

    app = FastAPI(
        title="Tradewind",
        version=tradewind.__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(guard)],
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.services = services
    for router in ROUTERS:
        app.include_router(router)
        for route in router.routes:
            if isinstance(route, APIRoute):
                services.query_names[route.endpoint] = services.query_names.get(route.endpoint, frozenset()) | _query(route)
    app.add_exception_handler(TradewindError, _error_response)
    app.add_exception_handler(Exception, _fault_response)
    app.add_exception_handler(RequestValidationError, _invalid_response)
    _add_pages(app)
    app.add_middleware(HeadersAndBodyLimit, body_max_bytes=config.body_max_bytes)
    return app


async def _send_account_events(services: Services) -> None:
    """Send changes of accounts to the audit log, also those that the command line makes."""
    while True:
        await asyncio.sleep(SEND_EVERY_SECONDS)
        try:
            while await anyio.to_thread.run_sync(services.account_audit.send) >= SENT_AT_ONCE:
                pass
        except Exception:  # the loop must continue
            _log.exception("sending changes of accounts to the audit log failed")


def _add_pages(app: FastAPI) -> None:
    """Add routes outside of the API: public pages without data, and hints for the paths of older Airflow releases."""

    async def docs(request: Request) -> Response:
        return HTMLResponse(docs_page(document(app)))

    async def openapi(request: Request) -> Response:
        return json_response(document(app))

    async def style(request: Request) -> Response:
        return Response(STYLE, media_type="text/css", headers={"Cache-Control": "max-age=3600"})

    async def health_moved(request: Request) -> Response:
        return json_response({"detail": "Health is at /api/v2/monitor/health."}, 404)

    async def experimental(request: Request) -> Response:
        return json_response(
            {"detail": "Airflow 1's experimental API is not served: use /api/v2, or /api/v1 (see /docs)."}, 404
        )

    for path, page in (("/docs", docs), ("/openapi.json", openapi), ("/style.css", style)):
        app.add_route(path, page, ["GET"], include_in_schema=False)
    every = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    app.add_route("/api/v1/{rest:path}", Airflow2Api(app).answer, every, include_in_schema=False)
    app.add_route("/api/experimental/{rest:path}", experimental, every, include_in_schema=False)
    app.add_route("/health", health_moved, ["GET"], include_in_schema=False)
    add_page(app, not_built=front_page(app.version))


async def _error_response(request: Request, error: Exception) -> Response:
    assert isinstance(error, TradewindError)
    status = status_of(error)
    if status == 422:
        return await _invalid_response(request, invalid(("query" if request.method == "GET" else "body",), str(error)))
    if isinstance(error, StatementError):  # from the reader of this process
        return await _fault_response(request, error)
    if status >= 500:
        _log.warning("a request could not be answered", path=request.url.path, status=status, reason=str(error))
    return json_response({"detail": str(error)}, status, {"Retry-After": "2"} if status == 503 else None)


async def _invalid_response(request: Request, error: Exception) -> Response:
    """422 in its declared form. A refused value of the body is left out: it may be a password, or not representable in JSON."""
    assert isinstance(error, RequestValidationError)
    return json_response({"detail": [_invalid_value(one) for one in error.errors()]}, 422)


def _invalid_value(found: Mapping[str, Any]) -> dict[str, Any]:
    """One refused value, as Airflow describes it: `input` is the value, `ctx` has the limits that it does not keep."""
    shown = {"loc": found["loc"], "msg": found["msg"], "type": found["type"]}
    if found["loc"][0] in ("query", "path") and isinstance(found.get("input"), str):
        shown["input"] = found["input"]
    context = {name: value for name, value in (found.get("ctx") or {}).items() if isinstance(value, str | int | float)}
    return {**shown, "ctx": context} if context else shown


async def _fault_response(request: Request, error: Exception) -> Response:
    """500 for a bug in this process. The traceback is logged under an id that is also in the response."""
    fault = secrets.token_hex(4)
    try:
        raise error
    except Exception:
        _log.exception("a request failed by a bug in Tradewind", path=request.url.path, fault=fault)
    text = f"This is a bug in Tradewind ({type(error).__name__}). The log of the API has the traceback under the id {fault}."
    return json_response({"detail": text}, 500)


def _query(route: APIRoute) -> frozenset[str]:
    """Names of the query parameters of a route and of its dependencies."""
    found: set[str] = set()
    dependants = [route.dependant]
    while dependants:
        dependant = dependants.pop()
        found.update(field.alias for field in dependant.query_params)
        dependants.extend(dependant.dependencies)
    return frozenset(found)


def guarded_routes() -> Iterable[APIRoute]:
    """All routes of the API."""
    return (route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute))


def _open_reader(config: ApiConfig) -> Reader:
    return open_reader(config.database, busy_timeout_ms=config.busy_timeout_ms, cache_kib=_READER_CACHE_KIB)


def _open_control(config: ApiConfig) -> ControlClient:
    return ControlClient(config.scheduler_socket, "api", config.command_timeout)
