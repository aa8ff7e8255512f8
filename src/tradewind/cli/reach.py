"""Explains who can open the web page, for the user who starts the server. Pure."""

from __future__ import annotations

from ipaddress import ip_address

EVERY_ADDRESS = ("0.0.0.0", "::")
"""A server that listens on one of these is reachable at every address of its machine."""


def is_this_machine(host: str) -> bool:
    """Whether only programs of this machine can connect to the server."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def reach(host: str, base_url: str | None) -> str:
    """Sentences about who can open the page, and what that means for passwords. Empty: only this machine can.

    Args:
        host: the address that the server listens on.
        base_url: the setting `api.base_url`.
    """
    if is_this_machine(host):
        return ""
    where = "on every network of this machine" if host in EVERY_ADDRESS else f"on the network of {host}"
    who = f"The web page can be opened {where}. Nothing can be seen without a login, but the connection is not encrypted: "
    if (base_url or "").startswith("https://"):
        return who + (
            f"let people use {base_url} only, and let only the reverse proxy reach this port (or listen on 127.0.0.1, "
            "if the proxy runs here)."
        )
    return who + (
        "passwords, tokens and logs can be read on the way. Put a reverse proxy with TLS before it, or listen on 127.0.0.1: "
        "docs/how-to/run-as-a-service.md"
    )
