"""Attempts that a Celery worker has handed to its worker host, and that the host does not run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import msgspec

from tests.unit.worker.configs import host_config, workload
from tradewind.platform.clock import ManualClock
from tradewind.wire.celery_messages import Offer, OfferState, decode_offer_state, seal, task_id
from tradewind.wire.connection import Connection
from tradewind.worker.host import WorkerHost

KEY = b"k" * 32


class Pool:
    """The connection of a Celery worker."""

    def __init__(self) -> None:
        self.received: list[OfferState] = []

    def send(self, document: bytes) -> None:
        self.received.append(decode_offer_state(document))


def test_an_attempt_that_waits_when_the_lease_ends_is_given_back(tmp_path: Path) -> None:
    """Otherwise the worker host refuses every further message of this attempt: it seems to be here already."""
    config = msgspec.structs.replace(host_config(tmp_path), slots=1, offers_socket=str(tmp_path / "offers"), offers_key=KEY)
    host, pool, work = WorkerHost(config, ManualClock()), Pool(), workload()
    assert host.offers is not None
    host.attempts[9, 9, 9] = cast(Any, Mock())  # the only slot is in use
    connection = cast(Connection, pool)
    host.offers.accept(connection)
    offer = msgspec.msgpack.encode(Offer(task_id(work.key), seal(work, KEY)))
    host.offers.on_document(connection, offer)
    assert [one.key for one in host.pending] == [work.key]
    host.lease_ended("no contact", 0)
    assert [one.state for one in pool.received] == ["busy"], "the broker gives it to another worker"
    host.offers.on_document(connection, offer)
    assert [one.key for one in host.pending] == [work.key], "it is taken again"
