"""Is it alive, and which release is it? Open to everybody: load balancers and installers ask."""

from __future__ import annotations

from fastapi import APIRouter, Response

import tradewind
from tradewind.api.answers import Api, described, json_answer
from tradewind.api.auth.policy import open_to_all
from tradewind.api.shapes import DagProcessorHealth, Health, PartHealth, SchedulerHealth, TriggererHealth, Version
from tradewind.model.errors import StoreError
from tradewind.model.moments import iso

router = APIRouter(prefix="/api/v2", tags=["Monitor"])

_HEALTHY, _UNHEALTHY = "healthy", "unhealthy"


@router.get("/monitor/health", responses=described(Health))
@open_to_all()
def health(api: Api) -> Response:
    """The state of each part.

    The scheduler is healthy when it answers now and has no trouble of its own; its heartbeat is that answer. The parser's
    heartbeat is what the scheduler says of it, else the last time a file was read. The triggerer is part of the worker host: with
    one it is healthy, without one unhealthy where tasks wait for triggers; otherwise it is null, as in Airflow without a triggerer.
    """
    facts = None
    try:
        facts = api.reader().health_facts()
    except StoreError:
        pass  # the answer says so
    ping = api.ping()
    alive = ping is not None and not ping.get("trouble")
    now = ping.get("now") if ping is not None and alive else None
    parser = ping.get("dag_processor") if ping is not None and alive else None
    parsed = parser if isinstance(parser, int) else (facts.last_parsed_at if facts is not None else None)
    started = facts.scheduler_started_at if facts is not None else None
    return json_answer(
        Health(
            metadatabase=PartHealth(_HEALTHY if facts is not None else _UNHEALTHY),
            scheduler=SchedulerHealth(
                _HEALTHY if alive else _UNHEALTHY, iso(now if isinstance(now, int) else None if alive else started)
            ),
            triggerer=_triggerer(ping if alive else None),
            dag_processor=DagProcessorHealth(_HEALTHY if isinstance(parser, int) else None, iso(parsed)),
        )
    )


def _triggerer(ping: dict[str, object] | None) -> TriggererHealth:
    now = ping.get("now") if ping is not None else None
    if ping is not None and ping.get("host"):
        return TriggererHealth(_HEALTHY, iso(now if isinstance(now, int) else None))
    return TriggererHealth(_UNHEALTHY if ping is not None and ping.get("triggers") else None, None)


@router.get("/version", responses=described(Version))
@open_to_all()
def version() -> Response:
    """Which release answers."""
    return json_answer(Version(tradewind.__version__, None))
