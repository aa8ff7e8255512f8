"""Parts that all routes share: JSON responses, errors as {"detail": …}, types of parameters, and Airflow's rules for pages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import Depends, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import AfterValidator, AwareDatetime, Field

from tradewind.api.auth.guard import Identity
from tradewind.api.services import Services
from tradewind.model import errors
from tradewind.model.errors import did_you_mean
from tradewind.model.moments import parse_moment, to_micros
from tradewind.store.search_patterns import begins, like
from tradewind.store.views import BadQuery, Listing, TooBroad, UnknownValue

Row = TypeVar("Row")

_encode = msgspec.json.Encoder().encode

STATUS: tuple[tuple[type[errors.TradewindError], int], ...] = (
    (errors.NotFound, 404),
    (errors.WrongConf, 400),  # as in Airflow: 409 would say that the run exists
    (errors.WrongName, 400),
    (errors.Protected, 400),
    (errors.RunTypeNotAllowed, 400),
    (errors.NoDates, 422),
    (errors.WrongBackfill, 422),
    (errors.Conflict, 409),
    (errors.Stale, 409),
    (errors.StoreRefused, 409),
    (UnknownValue, 422),
    (BadQuery, 400),
    (TooBroad, 400),
    (errors.DefinitionError, 400),
    (errors.WrongArgument, 422),
    (errors.LoginRefused, 403),
    (errors.Unreachable, 503),
    (errors.StoreError, 503),
    (errors.WireError, 502),
    (errors.ConfigError, 500),
    (errors.InternalError, 500),
)
"""HTTP status by class of error; the first entry that fits counts."""


DESCRIBED_SHAPES: dict[str, type[msgspec.Struct]] = {}
"""Every shape that a route returns, by name. Filled when the routes are imported."""


def json_response(shape: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON response. `shape`: a msgspec struct, a mapping or a list."""
    return Response(_encode(shape), status, headers, "application/json")


def described(shape: type[msgspec.Struct], status: int = 200, also: tuple[int, ...] = ()) -> dict[int | str, dict[str, Any]]:
    """The `responses=` of a route that returns `shape`, or one of the errors of `error_responses`.

    The OpenAPI document gets the schema of each shape that a route names here.
    """
    DESCRIBED_SHAPES[shape.__name__] = shape
    reference = {"schema": {"$ref": f"#/components/schemas/{shape.__name__}"}}
    found: dict[int | str, dict[str, Any]] = {
        status: {
            "description": (shape.__doc__ or shape.__name__).strip().splitlines()[0],
            "content": {"application/json": reference},
        }
    }
    return {**found, **error_responses(*also)}


def described_any(*shapes: type[msgspec.Struct], also: tuple[int, ...] = ()) -> dict[int | str, dict[str, Any]]:
    """The `responses=` of a route that returns one of several shapes."""
    found = described(shapes[0], also=also)
    for shape in shapes:
        DESCRIBED_SHAPES[shape.__name__] = shape
    choices = [{"$ref": f"#/components/schemas/{shape.__name__}"} for shape in shapes]
    found[200]["content"]["application/json"]["schema"] = {"anyOf": choices}
    return found


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses=` of a route that returns no body: its errors, which always include 400, 401 and 403."""
    error = {"schema": {"$ref": "#/components/schemas/Problem"}}
    return {
        status: {"description": _REASONS[status], "content": {"application/json": error}}
        for status in (400, 401, 403, *statuses)
    }


_REASONS = {
    400: "The request cannot be understood.",
    401: "The request has no valid token.",
    403: "The role has no permission.",
    404: "It does not exist; the detail names the nearest.",
    406: "The client accepts no form that this route has.",
    409: "It exists already, or its state forbids this.",
    429: "Too many attempts: wait.",
    502: "Another server gave an answer that cannot be used.",
    503: "The scheduler or the database cannot be reached now.",
}


async def services_of(request: Request) -> Services:
    """The services. For an account that may not read all DAGs, their readers show only the DAGs that it may read."""
    found: Services = request.app.state.services
    identity: Identity | None = getattr(request.state, "identity", None)
    visible = None if identity is None else found.visible_to(identity.access)
    return found if visible is None else found.limited_to(visible)


async def identity_of(request: Request) -> Identity:
    found: Identity = request.state.identity
    return found


def _in_range(moment: datetime) -> datetime:
    to_micros(moment)  # raises ValueError for a date that does not exist in UTC
    return moment


Api = Annotated[Services, Depends(services_of)]
Caller = Annotated[Identity, Depends(identity_of)]
Number = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
"""An integer that the database and the messages to the scheduler can contain. All integers of requests have these bounds or
narrower ones.
"""
Limit = Annotated[int, Query(ge=0, le=2**63 - 1, description="Rows of the page, up to the configured maximum.")]
Offset = Annotated[int, Query(ge=0, le=2**62)]
Order = Annotated[list[str] | None, Query(description="Fields to order by; with - in front in descending order.")]
Names = Annotated[list[str] | None, Query()]
Text = Annotated[str | None, AfterValidator(lambda text: text or None)]
"""A filter by one text. An empty text is no filter, as in Airflow."""
Indexes = Annotated[list[Number] | None, Query()]
Moment = Annotated[AwareDatetime, AfterValidator(_in_range)]
"""A date and time in a body."""
When = Annotated[
    str | None,
    Query(
        description="ISO 8601; without a time zone: UTC. Or a Unix time in seconds.", json_schema_extra={"format": "date-time"}
    ),
]


def page_size(api: Services, limit: int) -> int:
    """The number of rows of a page. Airflow's rule: more than the maximum means the maximum."""
    return min(limit, api.config.page_limit_max)


def page_of_names(
    api: Services,
    rows: Iterable[Row],
    name: Callable[[Row], str],
    limit: int,
    offset: int,
    *,
    pattern: str | None = None,
    prefix: str | None = None,
    order_by: Sequence[str] | None = None,
    orders: Mapping[str, Callable[[Row], Any]] = MappingProxyType({}),
) -> tuple[list[Row], int]:
    """One page of the rows whose name matches, and how many there are in all.

    Args:
        rows: in the order of their names.
        orders: field → its value; null comes first.

    Raises:
        BadQuery: `order_by` names an unknown field.
    """
    regex = like(pattern) if pattern is not None and pattern != "~" else None
    found = [row for row in rows if (regex is None or regex.search(name(row))) and begins(name(row), prefix)]
    for field in reversed(order_by or ()):
        key = orders.get(field.removeprefix("-"))
        if key is None:
            near = did_you_mean(field.removeprefix("-"), orders)
            raise BadQuery(
                f"This list cannot be ordered by {field.removeprefix('-')!r}; possible are: {', '.join(orders)}.{near}"
            )
        found.sort(key=lambda row, key=key: _order_key(key(row)), reverse=field.startswith("-"))  # type: ignore[misc]
    return found[offset : offset + page_size(api, limit)], len(found)


def _order_key(value: Any) -> tuple[bool, Any]:
    return value is not None, 0 if value is None else value


def total_of(listing: Listing[Any], offset: int) -> int:
    """The total of a list, for routes where Airflow's clients need a number. A lower bound where counting takes too long."""
    return offset + len(listing.rows) if listing.total is None else listing.total


def moments(given: dict[str, str | None]) -> dict[str, int]:
    """The range filters of a request in microseconds. Raises 422 for a text that is not a date."""
    found = {}
    for name, text in given.items():
        if text is not None:
            try:
                found[name] = _moment(text)
            except ValueError as error:
                raise invalid(("query", name), f"{name}: {error}") from None
    return found


def _moment(text: str) -> int:
    """The microseconds of a date in a query. A number is a Unix time in seconds, as in Airflow."""
    if re.fullmatch(r"\d{9,11}(\.\d{1,6})?", text):
        return round(float(text) * 1_000_000)
    return parse_moment(text.replace(" ", "+") if "T" in text else text)  # a + in a query is decoded as a blank


def invalid(place: tuple[str | int, ...], why: str) -> RequestValidationError:
    """The error 422 for one value, in FastAPI's form. `place`: ("query" or "body", name, …)."""
    return RequestValidationError([{"loc": place, "msg": why, "type": "value_error"}])


def status_of(error: errors.TradewindError) -> int:
    return next((status for kind, status in STATUS if isinstance(error, kind)), 500)
