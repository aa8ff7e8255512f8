"""Airflow 2's REST API, `/api/v1`, for clients that have not moved yet.

Each request is translated to the request of `/api/v2` that does the same, and the answer is translated back: `execution_date`
for the logical date, `is_active`, `external_trigger` and so on. So both APIs have the same rules, permissions and errors.
Requests may have basic authentication, as in Airflow 2. A path without a counterpart answers 404 and names the path that
replaces it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

import anyio.to_thread
from fastapi import Request, Response
from starlette.types import ASGIApp, Message

from tradewind.api.auth.guard import ACCEPTS_BASIC
from tradewind.api.responses import json_response
from tradewind.api.services import Services
from tradewind.model.definition import DeltaSchedule, Schedule
from tradewind.model.ids import named_run_id
from tradewind.model.moments import iso, parse_moment
from tradewind.model.states import RunType
from tradewind.store.port import Reader

Json = Any
Translate = Callable[[Json], Json]


class Form(NamedTuple):
    """How one operation of Airflow 2 is served.

    Args:
        method, path: in `/api/v2`; `{…}` are the parts of the old path by name. Empty: as in Airflow 2.
        body: translates the body.
        query: fixed parameters.
    """

    method: str = ""
    path: str = ""
    body: Translate | None = None
    query: tuple[tuple[str, str], ...] = ()


_RUN = "dags/{dag}/dagRuns/{run}"
_TASK = _RUN + "/taskInstances/{task}"


def _trigger(body: Json) -> Json:
    """A run without a date gets the current time (`_NOW` is its placeholder), and the id has the date, as in Airflow 2."""
    given = {"logical_date": _NOW, **body}
    if "dag_run_id" not in given and isinstance(given["logical_date"], str) and given["logical_date"] != _NOW:
        try:
            at = parse_moment(given["logical_date"])
        except ValueError:
            return given  # `/api/v2` names the error
        given["dag_run_id"] = named_run_id(RunType.MANUAL, at)
    return given


_NOW = "\0now"


def _batch(body: Json) -> Json:
    return {name: value for name, value in body.items() if value is not None}


def _clear(body: Json) -> Json:
    return {name: value for name, value in body.items() if name not in ("include_subdags", "include_parentdag")}


def _mark(body: Json) -> Json:
    return {name: value for name, value in body.items() if name.startswith("include_") or name in ("new_state", "note")}


def _pool(body: Json) -> Json:
    return {"pool" if name == "name" else name: value for name, value in body.items()}


FORMS: dict[tuple[str, str], Form] = {
    **{("GET", path): Form() for path in (
        "dags", "dags/{dag}", "dags/{dag}/details", "dags/{dag}/tasks", "dags/{dag}/tasks/{task}",
        "dags/{dag}/dagRuns", _RUN, _RUN + "/taskInstances", _TASK, _TASK + "/listMapped", _TASK + "/{index}",
        _TASK + "/tries", _TASK + "/tries/{try}", _TASK + "/{index}/tries", _TASK + "/{index}/tries/{try}",
        _TASK + "/dependencies", _TASK + "/{index}/dependencies", _TASK + "/links",
        _TASK + "/logs/{try}", _TASK + "/xcomEntries",
        "variables", "variables/{key}", "connections", "connections/{key}", "pools", "pools/{key}",
        "eventLogs", "eventLogs/{key}", "importErrors", "importErrors/{key}", "dagStats", "dagWarnings", "version",
        "plugins", "providers", "config", "config/section/{section}/option/{option}",
    )},
    ("GET", _TASK + "/xcomEntries/{key}"): Form(query=(("stringify", "true"),)),
    ("GET", "health"): Form(path="monitor/health"),
    ("PATCH", "dags"): Form(),
    ("PATCH", "dags/{dag}"): Form(),
    ("DELETE", "dags/{dag}"): Form(),
    ("POST", "dags/{dag}/dagRuns"): Form(body=_trigger),
    ("POST", "dags/~/dagRuns/list"): Form(body=_batch),
    ("POST", "dags/~/dagRuns/~/taskInstances/list"): Form(body=_batch),
    ("PATCH", _RUN): Form(),
    ("DELETE", _RUN): Form(),
    ("POST", _RUN + "/clear"): Form(),
    ("PATCH", _RUN + "/setNote"): Form("PATCH", _RUN),
    ("POST", "dags/{dag}/clearTaskInstances"): Form(body=_clear),
    ("PATCH", _TASK): Form(body=_mark),
    ("PATCH", _TASK + "/{index}"): Form(body=_mark),
    ("PATCH", _TASK + "/setNote"): Form("PATCH", _TASK),
    ("PATCH", _TASK + "/{index}/setNote"): Form("PATCH", _TASK + "/{index}"),
    ("POST", "connections/test"): Form(),
    ("PUT", "parseDagFile/{token}"): Form(),
    **{(method, kind): Form() for method in ("POST",) for kind in ("variables", "connections", "pools")},
    ("PATCH", "pools/{key}"): Form(body=_pool),
    **{(method, kind + "/{key}"): Form() for method in ("PATCH", "DELETE") for kind in ("variables", "connections")},
    ("DELETE", "pools/{key}"): Form(),
}  # fmt: skip
"""(method, path in Airflow 2) → how it is served."""

PATHS_NOT_SERVED = {
    "datasets": "assets",
    "roles": "",
    "permissions": "",
    "users": "",
    "dagSources": "dagSources/{dag_id}",
    "updateTaskInstancesState": "dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}",
    "upstreamDatasetEvents": "dags/{dag_id}/dagRuns/{dag_run_id}/upstreamAssetEvents",
}
"""A part of a path that is not served → the path in `/api/v2`; empty: users are managed with `tradewind users`."""


def _compiled(path: str) -> re.Pattern[str]:
    parts = re.split(r"(\{\w+\})", path)
    return re.compile("".join(f"(?P<{part[1:-1]}>[^/]+)" if part[:1] == "{" else re.escape(part) for part in parts))


_PATTERNS = [(method, _compiled(path), path, form) for (method, path), form in FORMS.items()]
_PATTERNS.sort(key=lambda one: (one[2].count("{"), -len(one[2])))


def find(method: str, path: str) -> tuple[str, str, Form] | None:
    """(method, path in `/api/v2`, form) of a request; None: it is not served."""
    for wanted, pattern, _, form in _PATTERNS:
        match = pattern.fullmatch(path) if wanted == method else None
        if match is not None:
            target = form.path.format(**match.groupdict()) if form.path else path
            return form.method or method, target, form
    return None


def replacement(path: str) -> str:
    """The sentence for a path that is not served."""
    for part, target in PATHS_NOT_SERVED.items():
        if part in path.split("/"):
            where = f"use /api/v2/{target}" if target else "users and roles are managed with: tradewind users"
            return f"/api/v1/{path} is not served; {where}."
    return f"/api/v1/{path} is not served; use /api/v2/{path} (see /docs)."


# --- requests ---------------------------------------------------------------------------------------------------------

_PARAMETERS = {"only_active": "exclude_stale", "execution_date": "logical_date"}


def query_of(query: str, form: Form) -> str:
    """The query in the names of `/api/v2`. `fields` and `return_deferred`-like parameters of Airflow 2 have no effect."""
    found = []
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in ("fields", "session", "include_subdags"):
            continue
        name = _PARAMETERS.get(name, name.replace("execution_date", "logical_date"))
        if name == "order_by":
            value = value.replace("execution_date", "logical_date")
        if name in ("tags", "state", "pool", "queue", "dag_ids") and "," in value:
            found += [(name, one) for one in value.split(",")]
        else:
            found.append((name, value))
    return urlencode([*found, *form.query])


def body_of(body: Json, form: Form, now: int) -> Json:
    """The body in the names of `/api/v2`."""
    if not isinstance(body, dict):
        return body
    body = {name.replace("execution_date", "logical_date"): value for name, value in body.items()}
    found = form.body(body) if form.body is not None else body
    return {name: iso(now) if value == _NOW else value for name, value in found.items()}


# --- answers ----------------------------------------------------------------------------------------------------------


def answer_of(found: Json) -> Json:
    """An answer of `/api/v2` with the fields of Airflow 2 added."""
    if isinstance(found, list):
        return [answer_of(one) for one in found]
    if not isinstance(found, dict):
        return found
    answer = {name: value if name in _OPAQUE else answer_of(value) for name, value in found.items()}
    if "logical_date" in answer or "run_after" in answer:
        answer["execution_date"] = answer.get("logical_date") or answer.get("run_after")
        if answer.get("logical_date") is None and "run_after" in answer:
            answer["logical_date"] = answer["run_after"]
    if "run_type" in answer and "dag_run_id" in answer:
        answer["external_trigger"] = answer["run_type"] not in ("scheduled", "backfill")
        answer["run_type"] = _RUN_TYPES.get(answer["run_type"], answer["run_type"])
    if "timetable_summary" in answer:
        answer.update(_dag(answer))
    if "retry_exponential_backoff" in answer:
        answer["retry_exponential_backoff"] = bool(answer["retry_exponential_backoff"])
    if isinstance(answer.get("extra_links"), dict):
        links = answer["extra_links"].items()
        answer["extra_links"] = [{"class_ref": {}, "name": name, "href": url or ""} for name, url in links]
    if "try_number" in answer and "pool_slots" in answer:
        answer["sla_miss"] = None
        answer["unixname"] = answer["unixname"] or ""
        answer["state"] = answer["state"] if answer["state"] != "awaiting_input" else "deferred"
    if answer.get("total_entries", 0) is None:
        answer["total_entries"] = sum(len(value) for value in answer.values() if isinstance(value, list))
    return answer


_OPAQUE = frozenset({"conf", "rendered_fields", "extra", "params", "value", "trigger", "triggerer_job"})
"""Fields whose content belongs to users."""
_RUN_TYPES = {
    "operator_triggered": "manual",
    "asset_triggered": "dataset_triggered",
    "asset_materialization": "manual",
    "backfill": "backfill",
}


def _dag(dag: Json) -> Json:
    return {
        "root_dag_id": None,
        "is_active": not dag["is_stale"],
        "is_subdag": False,
        "last_pickled": None,
        "pickle_id": None,
        "scheduler_lock": None,
        "default_view": "grid",
        "schedule_interval": _schedule_interval(dag["timetable_summary"], None),
        "next_dagrun": dag["next_dagrun_logical_date"],
        "next_dagrun_create_after": dag["next_dagrun_run_after"],
        "tags": [{"name": tag["name"]} for tag in dag["tags"]],
    }


def _schedule_interval(written: str | None, schedule: Schedule | None) -> Json | None:
    """The schedule as the author wrote it, in the form of Airflow 2."""
    if isinstance(schedule, DeltaSchedule) and not schedule.delta.parts:
        whole = timedelta(microseconds=schedule.delta.micros)
        return {"__type": "TimeDelta", "days": whole.days, "seconds": whole.seconds, "microseconds": whole.microseconds}
    return None if written is None else {"__type": "CronExpression", "value": written}


def add_written_schedules(answer: Json, reader: Reader) -> None:
    """Replace the schedules of the DAGs in an answer by the texts of their authors: `@daily`, not `0 0 * * *`."""
    for dag in [answer, *(answer.get("dags") or ())]:
        if "schedule_interval" in dag and (plan := reader.dag(dag["dag_id"])) is not None:
            found = reader.definition(plan.version)
            dag["schedule_interval"] = _schedule_interval(found.schedule_summary, found.schedule)


# --- the route --------------------------------------------------------------------------------------------------------


class Airflow2Api:
    """Serves `/api/v1/…` with the routes of an application.

    Args:
        app: the application, called for `/api/v2`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        path = request.path_params["rest"].strip("/")
        found = find(request.method, path)
        if found is None:
            return json_response(_problem({"detail": replacement(path)}, 404), 404)
        method, target, form = found
        api: Services = request.app.state.services
        headers = dict(request.headers)
        body = await request.body()
        if body:
            try:
                body = json.dumps(body_of(json.loads(body), form, api.clock.wall())).encode()
            except ValueError:
                return json_response(_problem({"detail": "The body is not JSON."}, 400), 400)
        wants_log = "/logs/" in target
        plain = wants_log and "application/json" not in headers.get("accept", "")
        if wants_log:
            headers["accept"] = "application/x-ndjson"
        status, sent, content = await self._call(request, method, target, query_of(request.url.query, form), headers, body)
        if wants_log and status == 200:
            return _log(content, plain)
        if not content or "json" not in sent.get("content-type", ""):
            return Response(content, status, media_type=sent.get("content-type"))
        answer = json.loads(content)
        if status >= 400:
            return json_response(_problem(answer, status), status)
        shown = answer_of(answer)
        if isinstance(shown, dict) and ("schedule_interval" in shown or "dags" in shown):
            await anyio.to_thread.run_sync(lambda: add_written_schedules(shown, api.reader()))
        return json_response(shown, status)

    async def _call(
        self, request: Request, method: str, target: str, query: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        """(status, headers, body) of the answer of `/api/v2`."""
        headers["content-length"] = str(len(body))
        scope = {
            **{
                name: value
                for name, value in request.scope.items()
                if name not in ("endpoint", "path_params", "route", "state")
            },
            "method": method,
            "path": f"/api/v2/{target}",
            "raw_path": f"/api/v2/{target}".encode(),
            "query_string": query.encode(),
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
            "state": {},
            ACCEPTS_BASIC: True,
        }
        status, sent, chunks, read = 500, dict[str, str](), list[bytes](), False

        async def receive() -> Message:
            """Return the body once. Afterwards pass on the next message of the server: the client has disconnected."""
            nonlocal read
            if read:
                return await request.receive()
            read = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                sent = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in message.get("headers", [])}
            else:
                chunks.append(message.get("body", b""))

        await self._app(scope, receive, send)
        return status, sent, b"".join(chunks)


def _problem(answer: Json, status: int) -> Json:
    """Airflow 2's form of errors (RFC 7807)."""
    detail = answer.get("detail") if isinstance(answer, dict) else answer
    if isinstance(detail, list):
        detail = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in detail)
    return {"detail": detail, "status": status, "title": _TITLES.get(status, "Error"), "type": "about:blank"}


_TITLES = {400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 409: "Conflict", 422: "Bad Request"}


def _log(content: bytes, plain: bool) -> Response:
    """A log as text, or as the text in JSON."""
    lines = [json.loads(line) for line in content.splitlines() if line]
    text = "\n".join(" ".join(str(one[name]) for name in ("timestamp", "level", "event") if one.get(name)) for one in lines)
    if plain:
        return Response(text + "\n", media_type="text/plain")
    return json_response({"content": text, "continuation_token": ""})
