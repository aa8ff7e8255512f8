"""Health, readiness and version. These routes need no login: load balancers and installers use them."""

from __future__ import annotations

from typing import NamedTuple

from fastapi import APIRouter, Response

import tradewind
from tradewind.api.auth.policy import open_to_all
from tradewind.api.responses import Api, described, json_response
from tradewind.api.services import Services
from tradewind.api.shapes import (
    DagProcessorHealth,
    Health,
    PartHealth,
    Readiness,
    SchedulerHealth,
    TriggererHealth,
    Version,
    WorkerHostHealth,
)
from tradewind.bundles.report import failing_since
from tradewind.model.errors import InternalError, StoreError
from tradewind.model.moments import iso
from tradewind.platform.progress import read_progress
from tradewind.wire.commands import PingResult

router = APIRouter(tags=["Monitor"])

_HEALTHY, _UNHEALTHY = "healthy", "unhealthy"


class Component(NamedTuple):
    """The health of one component, from the progress that its loop reports."""

    status: str | None
    """None: it does not run here, and nothing needs it."""
    heartbeat: int | None
    """When its loop last made progress, microseconds."""
    problem: str = ""


class Components(NamedTuple):
    """The health of all components."""

    database: Component
    scheduler: Component
    host: Component
    triggerer: Component
    parser: Component


@router.get("/api/v2/monitor/health", responses=described(Health))
@open_to_all()
def health(api: Api) -> Response:
    """The health of each component. The HTTP status is always 200, as in Airflow; see also `/api/tradewind/v1/ready`.

    The scheduler is healthy if it answers within a second and reports no trouble. The worker host and the parser (`dag_processor`)
    are healthy while their loops make progress. The worker host watches the triggerer, which has the same status. Without a worker
    host the triggerer is unhealthy if tasks wait for triggers, else null, as in Airflow without a triggerer.
    """
    state = components_of(api)
    return json_response(
        Health(
            metadatabase=PartHealth(state.database.status),
            scheduler=SchedulerHealth(state.scheduler.status, iso(state.scheduler.heartbeat)),
            triggerer=TriggererHealth(state.triggerer.status, iso(state.triggerer.heartbeat)),
            dag_processor=DagProcessorHealth(state.parser.status, iso(state.parser.heartbeat)),
            worker_host=WorkerHostHealth(state.host.status, iso(state.host.heartbeat)),
        )
    )


@router.get("/api/tradewind/v1/ready", responses=described(Readiness))
@open_to_all()
def ready(api: Api) -> Response:
    """200 if work can be accepted and run now; else 503 with a sentence for each unhealthy component.

    `warnings` names the bundles that cannot be fetched now.
    """
    reasons = [part.problem for part in components_of(api) if part.status == _UNHEALTHY]
    return json_response(Readiness(not reasons, reasons, _bundles_that_fail(api)), status=503 if reasons else 200)


def _bundles_that_fail(api: Services) -> list[str]:
    """Sentences without reasons, because a reason may contain an address and the client need not be logged in."""
    since = {name: failing_since(bundle) for name, bundle in api.config.versioned.items()}
    return [
        f"the bundle {name} cannot be fetched since {moment}; tradewind bundles list says why"
        for name, moment in since.items()
        if moment is not None
    ]


def components_of(api: Services) -> Components:
    facts = None
    try:
        facts = api.reader().health_facts()
        database = Component(_HEALTHY, None)
    except (StoreError, InternalError):  # no details for a client that is not logged in
        database = Component(_UNHEALTHY, None, "the database cannot be read; the log of the API has the reason")
    started = facts.scheduler_started_at if facts is not None else None
    ping = api.ping()
    if not ping.answers:
        scheduler = Component(_UNHEALTHY, started, "the scheduler does not answer")
    elif ping.trouble:
        scheduler = Component(_UNHEALTHY, started, "the scheduler reports trouble; tradewind info shows it")
    else:
        scheduler = Component(_HEALTHY, ping.state.now if ping.state is not None else None)
    host = _of_host(api, ping.state)
    parser = _by_progress(api, "parser", "the parser")
    if parser.heartbeat is None and facts is not None:
        parser = parser._replace(heartbeat=facts.last_parsed_at)
    return Components(database, scheduler, host, _of_triggerer(host, ping.state), parser)


def _of_host(api: Services, scheduler: PingResult | None) -> Component:
    """The health of the worker hosts. A scheduler without a worker host can run no task."""
    found = _worst([_by_progress(api, kind, "the worker host") for kind in api.config.progress if kind.startswith("host")])
    if scheduler is None or found.status == _UNHEALTHY:
        return found
    if not scheduler.workers:
        return Component(_UNHEALTHY, found.heartbeat, "no worker host is connected to the scheduler")
    if found.status is None:
        return Component(_HEALTHY, scheduler.now)  # it is connected, and reports no progress here
    return found


def _worst(hosts: list[Component]) -> Component:
    """The component that represents all worker hosts: an unhealthy one if there is one, else a healthy one if there is one."""
    for status in (_UNHEALTHY, _HEALTHY):
        for host in hosts:
            if host.status == status:
                return host
    return Component(None, None)


def _of_triggerer(host: Component, scheduler: PingResult | None) -> Component:
    if host.status == _HEALTHY:
        return Component(_HEALTHY, host.heartbeat)
    if scheduler is not None and scheduler.triggers:
        return Component(_UNHEALTHY, host.heartbeat, "tasks wait for triggers, and no worker host runs them")
    return Component(None, None)


def _by_progress(api: Services, kind: str, name: str) -> Component:
    path = api.config.progress.get(kind)
    found = read_progress(path, api.clock) if path else None
    if found is None:
        return Component(None, None)
    heartbeat = api.clock.wall() - found.age
    if not found.alive:
        return Component(_UNHEALTHY, heartbeat, f"{name} has died")
    if found.age > api.config.unhealthy_after:
        return Component(
            _UNHEALTHY, heartbeat, f"{name} (process {found.pid}) has made no progress for {found.age // 1_000_000} s"
        )
    return Component(_HEALTHY, heartbeat)


@router.get("/api/v2/version", responses=described(Version))
@open_to_all()
def version() -> Response:
    """The release of this server."""
    return json_response(Version(tradewind.__version__, None))
