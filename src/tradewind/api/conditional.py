"""Responses that a client may cache: ETags, 304, and compression."""

from __future__ import annotations

import gzip
import hashlib
from typing import Any

import msgspec
from fastapi import Request, Response

COMPRESS_ABOVE = 4 * 1024
"""Bytes. Smaller bodies are sent as they are."""

_LEVEL = 4

_encode = msgspec.json.Encoder().encode

NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "The client has the current answer (If-None-Match)."}}
"""For the `responses=` of routes with ETags."""


def etag_of(*parts: object) -> str:
    """An ETag that changes when one of the parts changes."""
    text = "\0".join(map(str, parts))
    return f'"{hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()}"'


def is_known(request: Request, etag: str) -> bool:
    """Whether the client has this version already (If-None-Match). Proxies that compress make an ETag weak: `W/"…"`."""
    given = request.headers.get("if-none-match", "")
    return any(one.strip().removeprefix("W/") == etag for one in given.split(","))


def changing_json(request: Request, shape: object) -> Response:
    """JSON whose ETag is made from its content. A client that has this content already gets 304."""
    body = _encode(shape)
    etag = etag_of(body)
    return not_modified(etag) if is_known(request, etag) else kept_json(request, body, etag)


def not_modified(etag: str) -> Response:
    """304: the copy of the client is current."""
    return Response(status_code=304, headers=_headers(etag))


def accepts_gzip(request: Request) -> bool:
    return "gzip" in request.headers.get("accept-encoding", "").lower()


def compressed_json(request: Request, shape: object) -> Response:
    """JSON without an ETag, compressed if the client accepts that."""
    body = _encode(shape)
    if len(body) > COMPRESS_ABOVE and accepts_gzip(request):
        headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
        return Response(gzip.compress(body, _LEVEL, mtime=0), headers=headers, media_type="application/json")
    return Response(body, media_type="application/json")


def kept_json(request: Request, body: bytes, etag: str) -> Response:
    """JSON with an ETag, compressed if the client accepts that."""
    if len(body) > COMPRESS_ABOVE and accepts_gzip(request):
        return packed_json(request, gzip.compress(body, _LEVEL, mtime=0), etag)
    return Response(body, headers=_headers(etag), media_type="application/json")


def packed_json(request: Request, packed: bytes, etag: str) -> Response:
    """JSON with an ETag, from a body that is compressed already (gzip)."""
    if not accepts_gzip(request):
        return Response(gzip.decompress(packed), headers=_headers(etag), media_type="application/json")
    return Response(packed, headers={**_headers(etag), "Content-Encoding": "gzip"}, media_type="application/json")


def _headers(etag: str) -> dict[str, str]:
    return {"ETag": etag, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding, Authorization, Cookie"}
