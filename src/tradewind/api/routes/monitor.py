"""Is it alive, may it be sent work, and which release is it? Open to everybody: load balancers and installers ask."""

from __future__ import annotations

from typing import NamedTuple

from fastapi import APIRouter, Response

import tradewind
from tradewind.api.answers import Api, described, json_answer
from tradewind.api.auth.policy import open_to_all
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
from tradewind.model.errors import InternalError, StoreError
from tradewind.model.moments import iso
from tradewind.platform.progress import read_progress
from tradewind.wire.commands import PingResult

router = APIRouter(tags=["Monitor"])

_HEALTHY, _UNHEALTHY = "healthy", "unhealthy"


class _Part(NamedTuple):
    """How a process of ours is, by what its loop says of itself."""

    status: str | None
    """None: there is none, and none is missed."""
    heartbeat: int | None
    """When its loop turned last, microseconds."""
    problem: str = ""


class _State(NamedTuple):
    """Everything that both routes tell."""

    database: _Part
    scheduler: _Part
    host: _Part
    triggerer: _Part
    parser: _Part


@router.get("/api/v2/monitor/health", responses=described(Health))
@open_to_all()
def health(api: Api) -> Response:
    """The state of each part. The status of the answer is 200 whatever it says, as in Airflow; see `/api/tradewind/v1/ready`.

    The scheduler is healthy when it answers within a second and has no trouble of its own. The worker host and the parser
    (`dag_processor`) are healthy while their loops turn. The worker host looks after the triggerer, which is as healthy as it;
    without a host it is unhealthy where tasks wait for triggers, else null, as in Airflow without a triggerer.
    """
    state = _state(api)
    return json_answer(
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
    """200 when work can be taken and run now; 503 with a sentence for each part that is in the way."""
    reasons = [part.problem for part in _state(api) if part.status == _UNHEALTHY]
    return json_answer(Readiness(not reasons, reasons), status=503 if reasons else 200)


def _state(api: Services) -> _State:
    facts = None
    try:
        facts = api.reader().health_facts()
        database = _Part(_HEALTHY, None)
    except (StoreError, InternalError):  # whoever is not logged in need not know more
        database = _Part(_UNHEALTHY, None, "the database cannot be read; its reason is in the log of the web server")
    started = facts.scheduler_started_at if facts is not None else None
    ping = api.ping()
    if not ping.answers:
        scheduler = _Part(_UNHEALTHY, started, "the scheduler does not answer")
    elif ping.trouble:
        scheduler = _Part(_UNHEALTHY, started, "the scheduler is in trouble; tradewind info says which")
    else:
        scheduler = _Part(_HEALTHY, ping.state.now if ping.state is not None else None)
    host = _of_host(api, ping.state)
    parser = _by_progress(api, "parser", "the parser")
    if parser.heartbeat is None and facts is not None:
        parser = parser._replace(heartbeat=facts.last_parsed_at)
    return _State(database, scheduler, host, _of_triggerer(host, ping.state), parser)


def _of_host(api: Services, scheduler: PingResult | None) -> _Part:
    """A scheduler without a worker host can run nothing."""
    found = _worst([_by_progress(api, kind, "the worker host") for kind in api.config.progress if kind.startswith("host")])
    if scheduler is None or found.status == _UNHEALTHY:
        return found
    if not scheduler.host:
        return _Part(_UNHEALTHY, found.heartbeat, "no worker host is connected to the scheduler")
    if found.status is None:
        return _Part(_HEALTHY, scheduler.now)  # it is connected, and says nothing of its loop
    return found


def _worst(hosts: list[_Part]) -> _Part:
    """The worker host that stands for all: an unhealthy one if there is one, else a healthy one if there is one."""
    for status in (_UNHEALTHY, _HEALTHY):
        for host in hosts:
            if host.status == status:
                return host
    return _Part(None, None)


def _of_triggerer(host: _Part, scheduler: PingResult | None) -> _Part:
    if host.status == _HEALTHY:
        return _Part(_HEALTHY, host.heartbeat)
    if scheduler is not None and scheduler.triggers:
        return _Part(_UNHEALTHY, host.heartbeat, "tasks wait for triggers, and no worker host runs them")
    return _Part(None, None)


def _by_progress(api: Services, kind: str, name: str) -> _Part:
    path = api.config.progress.get(kind)
    found = read_progress(path, api.clock) if path else None
    if found is None:
        return _Part(None, None)
    heartbeat = api.clock.wall() - found.age
    if not found.alive:
        return _Part(_UNHEALTHY, heartbeat, f"{name} has died")
    if found.age > api.config.unhealthy_after:
        return _Part(_UNHEALTHY, heartbeat, f"{name} (process {found.pid}) has made no progress for {found.age // 1_000_000} s")
    return _Part(_HEALTHY, heartbeat)


@router.get("/api/v2/version", responses=described(Version))
@open_to_all()
def version() -> Response:
    """Which release answers."""
    return json_answer(Version(tradewind.__version__, None))
