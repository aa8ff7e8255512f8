"""Attempts that a Celery worker hands to the worker host beside it.

The Celery worker connects to a Unix socket and sends each message of the broker as an `Offer`. The worker host treats the
workload like one from the scheduler, and reports its start and its end to the Celery worker. If the Celery worker dies, its
process group ends with it.
"""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Callable
from functools import partial
from typing import Protocol

import msgspec

from tradewind.model.states import Outcome
from tradewind.observe.log import Log
from tradewind.platform.loop import Loop
from tradewind.wire.celery_messages import (
    EnvelopeRefused,
    Offer,
    OfferState,
    StopOffer,
    decode_from_pool,
    task_id,
    unchecked_workload,
    unseal,
)
from tradewind.wire.connection import Connection
from tradewind.wire.messages import AttemptKey, Report, Workload, encode

log = Log("host")


Checker = Callable[[str, str, Callable[[str], None]], None]
"""See `Offers`."""


def signature_check(key: bytes) -> Checker:
    """Return the signature check of a worker host that has the key."""

    def check(id: str, envelope: str, call: Callable[[str], None]) -> None:
        problem = ""
        try:
            unseal(envelope, key)
        except EnvelopeRefused as refused:
            problem = str(refused)
        call(problem)

    return check


class OfferTaker(Protocol):
    """The interface of the worker host that `Offers` uses."""

    def take_offer(self, workload: Workload) -> str:
        """Take an attempt. Returns "": it was taken, `refused`: the worker host has it already, `busy`: the worker host takes
        nothing now.
        """
        ...

    def stop_attempt(self, key: AttemptKey, reason: str) -> None:
        """Stop an attempt."""


class Offers:
    """See the module.

    Args:
        path: of the socket.
        check: checks the signature of an envelope: (id, envelope, call) → calls `call` with the reason of a refusal, or with "".
    """

    def __init__(self, path: str, check: Checker, taker: OfferTaker, loop: Loop) -> None:
        self._path = path
        self._check = check
        self._taker = taker
        self._loop = loop
        self._pools: list[Connection] = []
        self._offered: dict[AttemptKey, Connection] = {}
        self._started: set[AttemptKey] = set()
        self._listener: socket.socket | None = None

    def listen(self) -> None:
        """Accept the Celery worker.

        Raises:
            OSError: the socket cannot be made.
        """
        try:
            os.unlink(self._path)
        except FileNotFoundError:
            pass
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            self._listener.bind(self._path)
        finally:
            os.umask(before)
        self._listener.listen(4)
        self._listener.setblocking(False)
        self._loop.watch(self._listener, selectors.EVENT_READ, self._accept)

    def _accept(self, events: int) -> None:
        assert self._listener is not None
        try:
            link, _ = self._listener.accept()
        except OSError:
            return
        self.accept(Connection(link, self._loop, self.on_document, self.on_close))

    def accept(self, connection: Connection) -> None:
        """Add the connection of a Celery worker."""
        self._pools.append(connection)

    def on_close(self, connection: Connection) -> None:
        """The Celery worker has ended, or connects again."""
        self._pools.remove(connection)
        for key in [key for key, pool in self._offered.items() if pool is connection]:
            del self._offered[key]

    def on_document(self, connection: Connection, document: bytes) -> None:
        """Handle a message of the Celery worker."""
        try:
            message: Offer | StopOffer = decode_from_pool(document)
        except msgspec.MsgspecError as error:
            log.error("a message of the Celery worker cannot be read", error=str(error))
            return
        if isinstance(message, StopOffer):
            for key in self._offered:
                if task_id(key) == message.id:
                    self._taker.stop_attempt(key, "its Celery task was revoked")
            return
        self._check(message.id, message.envelope, partial(self._checked, connection, message))

    def _checked(self, connection: Connection, message: Offer, problem: str) -> None:
        """Take an attempt whose signature was checked. `problem`: the reason of a refusal, or ""."""
        if connection not in self._pools:
            return  # the Celery worker has ended; the broker gives the message to another worker
        try:
            if problem:
                raise EnvelopeRefused(problem)
            workload = unchecked_workload(message.envelope)
        except EnvelopeRefused as refused:
            log.warning("a message of the broker is refused", why=str(refused))
            connection.send(encode(OfferState(message.id, "refused", ok=False, reason=str(refused))))
            return
        known = self._offered.get(workload.key)
        if known is not None and known is not connection:
            self._offered[workload.key] = connection  # the Celery worker has connected again
            if workload.key in self._started:
                connection.send(encode(OfferState(message.id, "started")))
            return
        answer = self._taker.take_offer(workload) if known is None else "refused"
        if answer:
            connection.send(encode(OfferState(message.id, answer, reason="it is here already" if answer == "refused" else "")))
        else:
            self._offered[workload.key] = connection

    def started(self, key: AttemptKey, pid: int) -> None:
        """The scheduler has accepted the start of an attempt."""
        connection = self._offered.get(key)
        if connection is not None and key not in self._started:
            self._started.add(key)
            connection.send(encode(OfferState(task_id(key), "started", pid=pid)))

    def ended(self, key: AttemptKey, report: Report | None) -> None:
        """An attempt has ended, or is not run."""
        connection = self._offered.pop(key, None)
        if connection is None:
            return
        was_started = key in self._started
        self._started.discard(key)
        ok = report is not None and report.outcome not in (Outcome.FAILED, Outcome.FAILED_FINAL, Outcome.LOST)
        reason = (report.reason or "") if report is not None else "it was stopped"
        connection.send(encode(OfferState(task_id(key), "ended" if was_started else "refused", ok=ok, reason=reason)))

    def given_back(self, keys: list[AttemptKey]) -> None:
        """Return attempts that the stopping worker host does not run, so that another worker takes them."""
        for key in keys:
            connection = self._offered.pop(key, None)
            if connection is not None:
                connection.send(encode(OfferState(task_id(key), "busy")))

    def close(self) -> None:
        """Remove the socket."""
        if self._listener is not None:
            self._loop.unwatch(self._listener)
            self._listener.close()
            try:
                os.unlink(self._path)
            except FileNotFoundError:
                pass
