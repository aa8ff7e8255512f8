"""`airflow.hooks`: hooks of Airflow itself that are not in a provider package."""

from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import quote, urlparse

from tradewind.sdk.variables import BaseHook

__all__ = ["FSHook", "PackageIndexHook"]


class FSHook(BaseHook):
    """A folder of this machine. The extra of the connection names the folder: `{"path": "/srv/data"}`.

    Args:
        fs_conn_id: the connection.
    """

    conn_name_attr = "fs_conn_id"
    default_conn_name = "fs_default"
    conn_type = "fs"
    hook_name = "File (path)"

    def __init__(self, fs_conn_id: str = default_conn_name, conn_id: str | None = None, **_kwargs: Any) -> None:
        super().__init__()
        self.conn = self.get_connection(conn_id or fs_conn_id)
        self.basepath = self.conn.extra_dejson.get("path", "")

    def get_conn(self) -> None:
        """Return None: nothing has to be opened."""

    def get_path(self) -> str:
        """The folder."""
        return str(self.basepath)

    def test_connection(self) -> tuple[bool, str]:
        """Whether the folder exists."""
        if not self.basepath:
            return False, "the extra of the connection has no path"
        if not os.path.exists(self.basepath):
            return False, f"there is no folder {self.basepath}"
        return True, f"the folder {self.basepath} exists"


class PackageIndexHook(BaseHook):
    """A Python package index, from a connection: its host is the URL.

    Args:
        pi_conn_id: the connection.
    """

    conn_name_attr = "pi_conn_id"
    default_conn_name = "package_index_default"
    conn_type = "package_index"
    hook_name = "Package Index (Python)"

    def __init__(self, pi_conn_id: str = default_conn_name, **_kwargs: Any) -> None:
        super().__init__()
        self.pi_conn_id = pi_conn_id
        self.conn: Any = None

    def get_connection_url(self) -> str:
        """The URL with the login and password of the connection.

        Raises:
            ValueError: the connection has no host.
        """
        conn = self.get_connection(self.pi_conn_id)
        host = conn.host or ""
        if not host:
            raise ValueError(f"connection {self.pi_conn_id!r} has no host; write the URL of the package index there")
        if not conn.login:
            return host
        url = urlparse(host)
        password = f":{quote(conn.password, safe='')}" if conn.password else ""
        return url._replace(netloc=f"{quote(conn.login, safe='')}{password}@{re.sub(r'^.*@', '', url.netloc)}").geturl()

    get_conn = get_connection_url
