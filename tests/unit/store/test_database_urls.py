"""URLs of databases: the servers that they name."""

from __future__ import annotations

import pytest

from tradewind.model.database_urls import server_addresses


@pytest.mark.parametrize(
    ("url", "addresses"),
    [
        ("postgresql://me:secret@db.example.org/tradewind", (("db.example.org", 5432),)),
        ("postgresql+psycopg2://me@db:6543/tradewind", (("db", 6543),)),
        ("postgresql://me@db-1:6543,db-2/tradewind", (("db-1", 6543), ("db-2", 5432))),
        ("postgresql://me@[::1]:6543/tradewind", (("::1", 6543),)),
        ("postgresql://me@[2001:db8::1]/tradewind", (("2001:db8::1", 5432),)),
        ("postgresql:///tradewind?host=db-1,db-2&port=6543", (("db-1", 6543), ("db-2", 6543))),
        ("postgresql:///tradewind?host=db-1,db-2&port=6543,6544", (("db-1", 6543), ("db-2", 6544))),
        ("postgresql:///tradewind?host=db&port=wrong", (("db", 5432),)),
        ("postgresql:///tradewind?hostaddr=2001:db8::1", (("2001:db8::1", 5432),)),
        ("postgresql://%2Fvar%2Frun%2Fpostgresql/tradewind", ()),
        ("postgresql://db/tradewind?hostaddr=192.0.2.7", (("192.0.2.7", 5432),)),
        ("postgresql:///tradewind?host=/var/run/postgresql", ()),
        ("postgresql:///tradewind", ()),
        ("postgresql://[broken", ()),
    ],
)
def test_the_servers_of_a_url(url: str, addresses: tuple[tuple[str, int], ...]) -> None:
    assert server_addresses(url) == addresses
