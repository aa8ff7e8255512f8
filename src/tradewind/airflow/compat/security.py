"""`airflow.security`: Kerberos tickets and names of principals."""

from __future__ import annotations

import re
import socket
import subprocess

from tradewind.sdk.conf import conf
from tradewind.sdk.exceptions import AirflowException

__all__ = [
    "get_components",
    "get_fqdn",
    "get_hostname",
    "get_kerberos_principle",
    "principal_from_username",
    "renew_from_kt",
    "replace_hostname_pattern",
]


def get_fqdn(hostname_or_ip: str | None = None) -> str:
    """The full name of a host in lower case; without an argument, of this host."""
    found = hostname_or_ip
    if not found or found in ("0.0.0.0", "127.0.0.1"):
        found = socket.getfqdn()
    return found.lower()


get_hostname = get_fqdn


def get_components(principal: str) -> list[str] | None:
    """The three parts of a Kerberos principal: name, host and realm."""
    return re.split(r"[/@]", str(principal)) if principal else None


def replace_hostname_pattern(components: list[str], host: str | None = None) -> str:
    """A principal from its parts, with `_HOST` replaced by the name of this host."""
    name = components[1]
    if not name or name.lower() == "_host":
        name = get_fqdn(host)
    return f"{components[0]}/{name}@{components[2]}"


def principal_from_username(username: str, realm: str) -> str:
    """The principal of a user. A name that already has a realm is unchanged."""
    return username if "@" in username or not realm else f"{username}@{realm}"


def get_kerberos_principle(principal: str | None = None) -> str:
    """The principal of the settings (`kerberos.principal`), with `_HOST` replaced by the name of this host."""
    return (principal or conf.get("kerberos", "principal", fallback="airflow")).replace("_HOST", get_fqdn())


def renew_from_kt(principal: str | None, keytab: str, exit_on_fail: bool = True) -> int:
    """Get a ticket with `kinit`.

    Returns:
        The exit code of `kinit`.

    Raises:
        AirflowException: `kinit` failed, and `exit_on_fail` is set.
    """
    done = subprocess.run(
        [
            conf.get("kerberos", "kinit_path", fallback="kinit"),
            "-k",
            *("-t", keytab),
            *("-c", conf.get("kerberos", "ccache", fallback="/tmp/airflow_krb5_ccache")),
            get_kerberos_principle(principal),
        ],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode and exit_on_fail:
        raise AirflowException(f"kinit failed with exit code {done.returncode}: {done.stderr.strip()}")
    return done.returncode
