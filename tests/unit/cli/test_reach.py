"""What a start says about who can reach the web server."""

from __future__ import annotations

import pytest

from tradewind.cli.reach import reach


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "::1", "localhost"])
def test_this_machine_only(host: str) -> None:
    assert reach(host, None) == ""


@pytest.mark.parametrize(
    ("host", "base_url", "words"),
    [
        ("0.0.0.0", None, ("on every network", "not encrypted", "reverse proxy with TLS")),
        ("::", None, ("on every network",)),
        ("192.168.3.4", None, ("on the network of 192.168.3.4",)),
        ("tradewind.internal", "http://x", ("on the network of tradewind.internal", "reverse proxy with TLS")),
        ("0.0.0.0", "https://tradewind.example.com", ("let people use https://tradewind.example.com only",)),
    ],
)
def test_what_changes_on_other_addresses(host: str, base_url: str | None, words: tuple[str, ...]) -> None:
    result = reach(host, base_url)
    assert all(word in result for word in words), result
