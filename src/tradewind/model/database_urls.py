"""URLs of databases: which server they name, and how they are shown to people."""

from __future__ import annotations

import re

POSTGRESQL_PORT = 5432
_HOST = re.compile(r"(\[[^\]]*\]|[^:]*)(?::(\d+))?")
"""`db`, `db:6543` or `[::1]:6543`."""


def on_server(url: str) -> bool:
    """Whether a URL names a database server, not a file. A path is no URL."""
    scheme, mark, _ = url.partition("://")
    return bool(mark) and scheme != "sqlite"


def client_url(url: str) -> str:
    """Convert a URL of PostgreSQL to the form of PostgreSQL's client library: without the name of a Python driver.

    SQLAlchemy's `?host=/var/run/postgresql` is understood by both.
    """
    _, mark, rest = url.partition("://")
    return f"postgresql://{rest}" if mark else url


def without_password(url: str) -> str:
    """Return a URL for messages: without passwords and options that do not say where the database is. A path stays unchanged."""
    if not on_server(url):
        return url
    from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit  # lazy import: only with a database server

    try:
        parts = urlsplit(client_url(url))
        user, host = parts.username, parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
        query = [(name, value) for name, value in parse_qsl(parts.query) if name in ("host", "port", "hostaddr", "service")]
    except ValueError:
        return "postgresql://…"
    shown_user = f"{quote(unquote(user))}@" if user else ""
    shown_query = f"?{urlencode(query, safe='/')}" if query else ""
    return f"postgresql://{shown_user}{host}{port}{parts.path}{shown_query}"


def server_addresses(url: str) -> tuple[tuple[str, int], ...]:
    """Host and port of each server that a URL names. Empty for a Unix socket: the server is on this machine."""
    from urllib.parse import parse_qsl, unquote, urlsplit  # lazy import: only with a database server

    try:
        parts = urlsplit(client_url(url))
    except ValueError:
        return ()
    query = dict(parse_qsl(parts.query))
    hosts = query.get("hostaddr") or query.get("host") or parts.netloc.rpartition("@")[2]
    ports = query.get("port", "").split(",")  # one for each host, or one for all
    found = []
    for number, written in enumerate(filter(None, hosts.split(","))):
        match = _HOST.fullmatch(written)
        host, port = match.groups() if match is not None else (written, None)
        port = port or ports[min(number, len(ports) - 1)]
        if not unquote(host).startswith("/"):
            found.append((host.strip("[]"), int(port) if port.isdecimal() else POSTGRESQL_PORT))
    return tuple(found)


def password_of(url: str) -> str | None:
    """The password in a URL; None if it has none."""
    from urllib.parse import parse_qsl, unquote, urlsplit  # lazy import: only with a database server

    try:
        parts = urlsplit(client_url(url))
        given = parts.password or dict(parse_qsl(parts.query)).get("password")
    except ValueError:
        return None
    return unquote(given) if given else None
