"""Requests over HTTP, against a real server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.execution.world import World, carry_out, pushed
from tests.unit.operators.servers import HttpServer, http_server
from tradewind import DAG
from tradewind.execution.run_task import TaskResult
from tradewind.hooks.http import HttpHook
from tradewind.model.errors import DefinitionError
from tradewind.model.states import Outcome
from tradewind.operators.http import HttpOperator, SimpleHttpOperator
from tradewind.sdk.variables import Connection
from tradewind.sensors import base
from tradewind.sensors.base import PokeReturnValue
from tradewind.sensors.http import HttpSensor


@pytest.fixture
def server(world: World) -> Iterator[HttpServer]:
    """An HTTP server whose connection is `http_default`, with a login and a header."""
    with http_server() as found:
        extra = {"X-Team": "weather", "timeout": 30}
        world.connections["http_default"] = {
            "conn_type": "http",
            "host": found.url,
            "login": "ada",
            "password": "l",
            "extra": json.dumps(extra),
        }
        yield found


def _run(cls: Any = HttpOperator, **kwargs: Any) -> TaskResult:
    with DAG("d", schedule=None):
        return carry_out(cls(task_id="t", **kwargs))


def _told(**kwargs: Any) -> Any:
    result = _run(**kwargs)
    assert result.outcome is Outcome.SUCCESS, result.reason
    return pushed(result).get("return_value")


# --- operator ----------------------------------------------------------------------------------------------------------


def test_a_request_is_sent_and_the_response_pushed(server: HttpServer) -> None:
    text = _told(endpoint="/at/{{ ds }}", data={"day": "{{ ds }}"}, headers={"X-Run": "{{ run_id }}"})
    assert json.loads(text) == {"method": "POST", "path": "/at/2024-03-05", "query": {}, "body": "day=2024-03-05"}
    headers = server.asked[0]["headers"]
    assert (headers["X-Team"], headers["X-Run"], headers["Authorization"]) == ("weather", "r1", "Basic YWRhOmw=")


@pytest.mark.parametrize(
    ("kwargs", "query", "body"),
    [
        ({"method": "GET", "data": {"a": "1"}}, {"a": "1"}, ""),
        ({"method": "get", "data": "a=1&b=2"}, {"a": "1", "b": "2"}, ""),
        ({"data": '{"a": 1}'}, {}, '{"a": 1}'),
        ({"method": "PUT", "request_kwargs": {"json": {"a": "{{ ds }}"}}}, {}, '{"a":"2024-03-05"}'),
        ({"method": "GET", "endpoint": "x?c=3"}, {"c": "3"}, ""),
    ],
)
def test_data_is_the_query_or_the_body(server: HttpServer, kwargs: Any, query: Any, body: str) -> None:
    _told(**kwargs)
    assert server.asked[0]["query"] == query
    assert server.asked[0]["body"].replace(" ", "") == body.replace(" ", "")


def test_response_check_and_failed_responses(server: HttpServer) -> None:
    assert "AirflowException: 503:Service Unavailable" in str(_run(endpoint="status/503").reason)
    assert _told(endpoint="status/503", extra_options={"check_response": False})
    assert json.loads(_told(endpoint="moved", method="GET"))["path"] == "/here"
    assert _run(endpoint="moved", method="GET", extra_options={"allow_redirects": False}).outcome is Outcome.SUCCESS
    check: Any = lambda response, ds: response.json()["path"] == f"/{ds}"  # noqa: E731
    assert _run(endpoint="{{ ds }}", response_check=check).outcome is Outcome.SUCCESS
    assert "response_check returned a false value" in str(_run(endpoint="x", response_check=check).reason)
    assert _told(endpoint="x", response_filter=lambda response: response.json()["path"]) == "/x"


def test_pagination_requests_all_pages(server: HttpServer) -> None:
    def following(response: Any) -> Any:
        page = response.json()["next"]
        return {"data": {"n": page}} if page else None

    def rows(responses: Any) -> list[int]:
        return [row for one in responses for row in one.json()["rows"]]

    assert _told(endpoint="page", method="GET", pagination_function=following, response_filter=rows) == [1, 2, 3]
    assert len(_told(endpoint="page", method="GET", pagination_function=following)) == 3
    assert "some of the keys endpoint, data" in str(_run(endpoint="page", pagination_function=lambda response: {"x": 1}).reason)


def test_invalid_arguments_are_errors(server: HttpServer, world: World) -> None:
    assert "extra_options has the unknown key 'timeuot'" in str(_run(extra_options={"timeuot": 1}).reason)
    world.connections["nowhere"] = {"conn_type": "http", "host": "127.0.0.1", "port": 1}
    assert "POST http://127.0.0.1:1/x: ConnectError" in str(_run(endpoint="x", http_conn_id="nowhere").reason)
    world.connections["empty"] = {"conn_type": "http"}
    assert "connection 'empty' has no host" in str(_run(http_conn_id="empty").reason)
    with DAG("d", schedule=None), pytest.raises(DefinitionError, match="HttpOperator"):
        SimpleHttpOperator(task_id="b", pagination_function=len)


@pytest.mark.parametrize(
    ("parts", "url"),
    [
        ({"host": "h"}, "http://h/x"),
        ({"host": "h", "schema": "https", "port": 8443}, "https://h:8443/x"),
        ({"host": "https://h/base/"}, "https://h/base/x"),
    ],
)
def test_urls_of_connections(world: World, parts: Any, url: str) -> None:
    world.connections["c"] = {"conn_type": "http", **parts}
    assert HttpHook(http_conn_id="c").url_from_endpoint("/x") == url
    assert HttpHook(http_conn_id="c").url_from_endpoint("ftp://other") == "ftp://other"


def test_get_hook_returns_the_hook_of_a_connection(server: HttpServer) -> None:
    hook = Connection.get("http_default").get_hook(hook_params={"method": "GET"})
    assert isinstance(hook, HttpHook)
    assert hook.run("x").json()["method"] == "GET"
    assert hook.test_connection() == (True, "the server responds")


# --- sensor ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(base, "_sleep", found.append)
    return found


def test_a_sensor_waits_for_the_response(server: HttpServer, waits: list[float]) -> None:
    server.statuses = [404, 404]
    assert _run(HttpSensor, endpoint="ready", request_params={"day": "{{ ds }}"}).outcome is Outcome.SUCCESS
    assert waits == [60, 60]
    assert server.asked[-1]["query"] == {"day": "2024-03-05"}
    server.statuses = [503]
    assert "503:Service Unavailable" in str(_run(HttpSensor, endpoint="ready").reason)
    server.statuses = [503]
    assert _run(HttpSensor, endpoint="ready", response_error_codes_allowlist=["503"]).outcome is Outcome.SUCCESS
    server.statuses = [404]
    assert _run(HttpSensor, endpoint="ready", response_error_codes_allowlist=[]).outcome is Outcome.FAILED


def test_a_sensor_can_check_the_response(server: HttpServer, waits: list[float]) -> None:
    def check(response: Any, ds: str) -> Any:
        return PokeReturnValue(len(server.asked) == 3, response.json()["path"] + ds)

    result = _run(HttpSensor, endpoint="x", response_check=check)
    assert (len(waits), pushed(result)) == (2, {"return_value": "/x2024-03-05"})


# --- the extra ---------------------------------------------------------------------------------------------------------


def test_the_error_of_a_missing_package_names_the_pip_command(server: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    assert "pip install 'tradewind[http]'" in str(_run().reason)


def test_importing_the_operators_does_not_import_httpx() -> None:
    modules = "tradewind.operators.http, tradewind.sensors.http, tradewind.hooks.http"
    code = f"import {modules}, sys; print(*(name for name in ('httpx', 'sqlalchemy') if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []
