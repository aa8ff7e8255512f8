"""DAG files: their source, tags and warnings of their DAGs, and the request to read a file again."""

from __future__ import annotations

import base64
import os
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Header, HTTPException, Query, Response

from tradewind.api.auth.guard import need
from tradewind.api.auth.policy import Policy, allow
from tradewind.api.responses import (
    Api,
    Caller,
    Limit,
    Number,
    Offset,
    Order,
    Text,
    described,
    error_responses,
    json_response,
    page_size,
    total_of,
)
from tradewind.api.routes.ranges import Pattern, Prefix, conditions
from tradewind.api.services import Services
from tradewind.bundles.file_of_version import read_file_of_version
from tradewind.bundles.version_folders import FetchFailed
from tradewind.model.errors import NotFound
from tradewind.model.phrases import english, phrase
from tradewind.sdk.dag_files import is_zipped, source_text
from tradewind.store.views import BadQuery, DagWarningView
from tradewind.wire import commands as c

router = APIRouter(prefix="/api/v2", tags=["DAG"])

SOURCE_MAX = 4 * 1024 * 1024
"""Size of the largest file that is returned, bytes."""


class DagSource(msgspec.Struct, frozen=True):
    """The file of a DAG."""

    content: str | None
    dag_id: str
    version_number: int | None
    dag_display_name: str


class DagTags(msgspec.Struct, frozen=True):
    """A page of tags."""

    tags: list[str]
    total_entries: int


class DagWarnings(msgspec.Struct, frozen=True):
    """A page of warnings."""

    dag_warnings: list[DagWarningView]
    total_entries: int


def _with_text(responses: dict[int | str, dict[str, object]]) -> dict[int | str, dict[str, object]]:
    """The same answer as plain text."""
    content = responses[200]["content"]
    assert isinstance(content, dict)
    content["text/plain"] = {"schema": {"type": "string"}}
    return responses


@router.get("/dagSources/{dag_id}", tags=["DagSource"], responses=_with_text(described(DagSource, also=(400, 404, 406))))
@allow("read", "dag")
def get_dag_source(
    api: Api,
    dag_id: str,
    version_number: Annotated[
        Number | None, Query(description="The current version, or any version that was read from a bundle with versions.")
    ] = None,
    accept: Annotated[str, Header()] = "*/*",
) -> Response:
    """The file of a DAG as it is now, or of one of its versions, as JSON, or as text with `Accept: text/plain`.

    Bundles with versions (git, object stores) have the source of earlier versions of a DAG. A DAG folder has only the current one.
    """
    details = api.reader().dag_details(dag_id)
    current = details.latest_dag_version
    number = current.version_number if current is not None else None
    as_json = wants_json(accept)
    if version_number is not None and version_number != number:
        source, number = _source_of_version(api, dag_id, version_number, number), version_number
    else:
        source = _source(details.fileloc)
    if not as_json:
        return Response(source, media_type="text/plain")
    return json_response(DagSource(source, dag_id, number, details.dag_display_name))


def _source_of_version(api: Services, dag_id: str, number: int, current: int | None) -> str:
    bundle, version, file = api.reader().version_file(dag_id, number)
    known = api.config.versioned.get(bundle)
    if known is None or version is None:
        raise NotFound(english(phrase("error_source_not_kept", number=number, dag=dag_id, current=str(current))))
    try:
        return read_file_of_version(known, version, file, SOURCE_MAX).decode(errors="replace")
    except FetchFailed as failed:
        raise NotFound(english(phrase("error_source_unreadable", number=number, dag=dag_id, problem=str(failed)))) from None


def wants_json(accept: str) -> bool:
    """Whether the answer is JSON (True) or plain text. Raises 406: the client accepts neither."""
    kinds = [one.partition(";")[0].strip().lower() for one in accept.split(",")]
    for kind in kinds:
        if kind in ("*/*", "application/json", "application/*", ""):
            return True
        if kind in ("text/plain", "text/*"):
            return False
    raise HTTPException(406, "Only application/json or text/plain is supported")


def _source(path: str) -> str:
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > SOURCE_MAX:
                raise HTTPException(400, f"The file {path} is larger than {SOURCE_MAX} bytes.")
            return source_text(path) if is_zipped(path) else file.read(SOURCE_MAX).decode(errors="replace")
    except OSError as error:
        raise NotFound(english(phrase("error_file_unreadable", file=path, problem=str(error.strerror)))) from None


@router.put("/parseDagFile/{file_token}", status_code=201, tags=["DAG Parsing"], responses={
    201: {"description": "The parser reads the file again.", "content": {"application/json": {"schema": {"type": "null"}}}},
    **error_responses(404, 503),
})  # fmt: skip
@allow("edit", "dag", checks_objects=True)
def parse_dag_file(api: Api, caller: Caller, file_token: str) -> Response:
    """Have the parser read a DAG file again. `file_token` is a field of each DAG. The account must have permission to edit all
    DAGs of the file."""
    try:
        raw = base64.urlsafe_b64decode(file_token + "=" * (-len(file_token) % 4))
        bundle, file = msgspec.json.decode(raw, type=tuple[str, str])
    except (ValueError, msgspec.DecodeError):
        raise HTTPException(404, "This is not the file_token of a DAG.") from None
    edit = Policy("edit", "dag")
    if not caller.access.may_on_all(edit):
        dag_ids = api.whole_reader().dag_ids_of_file(bundle, file)
        if not dag_ids:
            raise HTTPException(404, "This is not the file_token of a DAG.")
        for dag_id in dag_ids:
            need(api, caller, edit, dag_id)
    api.control().call(c.ReadDagFile(bundle, file), actor=caller.name)
    return json_response(None, 201)


@router.get("/dagTags", responses=described(DagTags, also=(400,)))
@allow("read", "dag")
def list_tags(
    api: Api,
    limit: Limit = 50,
    offset: Offset = 0,
    tag_name_pattern: Pattern = None,
    tag_name_prefix_pattern: Prefix = None,
    order_by: Order = None,
) -> Response:
    """List the tags of all DAGs."""
    for field in order_by or ():
        if field.removeprefix("-") != "name":
            raise BadQuery(f"Tags cannot be ordered by {field.removeprefix('-')!r}; possible is: name.")
    found = api.reader().dag_tags(
        conditions=conditions({"name": tag_name_pattern}, {"name": tag_name_prefix_pattern}),
        limit=page_size(api, limit),
        offset=offset,
        descending=order_by is not None and order_by[:1] != [] and order_by[0].startswith("-"),
    )
    return json_response(DagTags(found.rows, total_of(found, offset)))


_WARNING_ORDERS = ("dag_id", "warning_type", "message", "timestamp")


@router.get("/dagWarnings", tags=["DagWarning"], responses=described(DagWarnings, also=(400,)))
@allow("read", "dag")
def list_warnings(
    api: Api,
    dag_id: Text = None,
    warning_type: Literal["asset conflict", "non-existent pool", "runtime varying value"] | None = None,
    limit: Limit = 50,
    offset: Offset = 0,
    order_by: Order = None,
) -> Response:
    """List the warnings of DAGs: problems of DAGs whose files can be imported."""
    found = [one for one in api.reader().dag_warnings(dag_id=dag_id) if warning_type in (None, one.warning_type)]
    for field in reversed(order_by or ()):
        name = field.removeprefix("-")
        if name not in _WARNING_ORDERS:
            raise BadQuery(f"Warnings cannot be ordered by {name!r}; possible are: {', '.join(_WARNING_ORDERS)}.")
        found.sort(key=lambda one: str(getattr(one, name)), reverse=field.startswith("-"))
    return json_response(DagWarnings(found[offset : offset + page_size(api, limit)], len(found)))
