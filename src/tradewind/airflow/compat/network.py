"""`airflow.utils.net`."""

from __future__ import annotations

import socket

__all__ = ["get_host_ip_address", "get_hostname", "getfqdn"]


def getfqdn(name: str = "") -> str:
    """The full name of a machine; without an argument, of this machine."""
    return socket.getfqdn(name)


def get_host_ip_address() -> str:
    """The address of this machine."""
    return socket.gethostbyname(getfqdn())


def get_hostname() -> str:
    """The name of this machine as task instances show it."""
    return getfqdn()
