"""Serves the web page: static files that were built from `ui/`, the same `index.html` for each of the page's addresses.

The page holds no data: it reads everything from the REST API, which asks for a login. Files below `/static` have a hash of their
content in their name, so browsers keep them for ever. Each text file has a compressed copy beside it (`.gz`).
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from pathlib import Path

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response

FOLDER = Path(__file__).parent / "web"

ADDRESSES = (
    "/",
    "/login",
    "/dags",
    "/dags/{rest:path}",
    "/runs",
    "/approvals",
    "/assets",
    "/assets/{rest:path}",
    "/pools",
    "/pools/{rest:path}",
    "/admin",
    "/admin/{rest:path}",
)
"""Addresses of pages. `ui/src/router.tsx` has the same."""

PROGRAMS = ("/api/", "/auth/", "/static/")
"""Prefixes of addresses that programs use. Their errors are answered with JSON, never with a page."""

REACT_ARIA_STYLE = "'sha256-38RhXrc7EdReTKsOm23ZPOCUgniTUUcjky8QOOrQx6o='"
"""React Aria adds one `<style>` to the page. It changes with its releases; a test in a browser finds a wrong hash."""

POLICY = (
    "default-src 'none'; script-src 'self'{scripts}; worker-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; "
    "style-src 'self' {react_aria}{styles}; style-src-attr 'unsafe-inline'; manifest-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""The policy allows only scripts and connections of this server. Style attributes are allowed, because lists place their rows
with them.
"""

_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".html": "text/html; charset=utf-8",
}
_FOR_EVER = "public, max-age=31536000, immutable"


def policy_of(html: str) -> str:
    """The Content-Security-Policy for this `index.html`. Hashes allow its script and style, which draw the first frame."""
    scripts, styles = (
        "".join(f" 'sha256-{_hash(text)}'" for text in re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL))
        for tag in ("script", "style")
    )
    return POLICY.format(scripts=scripts, styles=styles, react_aria=REACT_ARIA_STYLE)


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@lru_cache(maxsize=4)
def _policy_of_file(path: Path, changed_at: int) -> str:
    """The policy of a file. `changed_at` is part of the cache key, because the page may be built again while the server runs."""
    return policy_of(path.read_text(encoding="utf-8"))


def is_built(folder: Path = FOLDER) -> bool:
    """Whether this installation contains the built page."""
    return (folder / "index.html").is_file()


def add_page(app: FastAPI, not_built: str, folder: Path = FOLDER) -> None:
    """Add the routes of the page.

    Args:
        not_built: HTML to serve at `/` where the page was not built.
    """

    async def page(request: Request) -> Response:
        if not is_built(folder):
            return HTMLResponse(not_built, status_code=200 if request.url.path == "/" else 404)
        index = folder / "index.html"
        policy = _policy_of_file(index, index.stat().st_mtime_ns)
        headers = {"Content-Security-Policy": policy, "Cache-Control": "no-cache", "Cross-Origin-Opener-Policy": "same-origin"}
        return _answer(request, index, headers)

    async def static(request: Request) -> Response:
        return _answer(request, folder / "static" / request.path_params["name"], {"Cache-Control": _FOR_EVER})

    async def top(request: Request) -> Response:
        return _answer(request, folder / request.url.path.lstrip("/"), {"Cache-Control": "no-cache"})

    async def not_found(request: Request, error: Exception) -> Response:
        """An unknown address. People get the page, which shows the error; programs get JSON."""
        assert isinstance(error, HTTPException)
        for_people = request.method == "GET" and "text/html" in request.headers.get("accept", "") and is_built(folder)
        if not for_people or request.url.path.startswith(PROGRAMS):
            return JSONResponse({"detail": error.detail}, status_code=404, headers=error.headers)
        answer = await page(request)
        answer.status_code = 404
        return answer

    app.add_exception_handler(404, not_found)
    for path in ADDRESSES:
        app.add_route(path, page, ["GET"], include_in_schema=False)
    app.add_route("/static/{name}", static, ["GET"], include_in_schema=False)
    app.add_route("/favicon.svg", top, ["GET"], include_in_schema=False)


def _answer(request: Request, path: Path, headers: dict[str, str]) -> Response:
    """A file of the page, compressed if the browser accepts that. 404: there is no such file."""
    kind = _TYPES.get(path.suffix)
    if kind is None or not path.is_file():
        return Response(status_code=404)
    shown = {**headers, "Vary": "Accept-Encoding"}
    packed = path.with_name(path.name + ".gz")
    if "gzip" in request.headers.get("accept-encoding", "") and packed.is_file():
        path, shown = packed, {**shown, "Content-Encoding": "gzip"}
    return FileResponse(path, media_type=kind, headers=shown)
