"""Shared objects of the routes: for each worker thread one reader of the database and one connection to the scheduler."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from tradewind.api.auth.login_log import LoginLog
from tradewind.api.auth.throttle import Throttle
from tradewind.api.auth.tokens import Tokens
from tradewind.api.auth.users import Users
from tradewind.api.config import ApiConfig
from tradewind.model.errors import TradewindError, Unreachable
from tradewind.platform.clock import Clock
from tradewind.store.crypto import Vault, open_vault
from tradewind.store.port import Reader
from tradewind.wire.commands import Command, Ping, PingResult

R = TypeVar("R")

PING_SECONDS = 1.0
_PING_KEPT_US = 1_000_000


class Control(Protocol):
    """The part of `ControlClient` that the API uses."""

    def call(self, command: Command[R], /, *, actor: str | None = None, timeout: float | None = None) -> R: ...

    def close(self) -> None: ...


class SchedulerPing(NamedTuple):
    """Whether the scheduler answers, and its state."""

    answers: bool
    state: PingResult | None = None
    """None: it does not answer, or answers with an error."""
    trouble: str | None = None


ReaderFactory = Callable[[], Reader]
ControlFactory = Callable[[], Control]


class Services:
    """One for each application. `reader()` and `control()` return the objects of the calling thread."""

    def __init__(self, config: ApiConfig, readers: ReaderFactory, controls: ControlFactory, clock: Clock) -> None:
        self.config = config
        self.clock = clock
        self.users = Users(config.passwords)
        self.tokens = Tokens(config.jwt_key, config.token_seconds, clock)
        self.throttle = Throttle(clock)
        self.logins = LoginLog(clock, lambda: self.control().call)
        self.flush_is_scheduled = False
        """A timer runs that will flush `logins`."""
        self.tasks: set[asyncio.Task[None]] = set()
        """Running tasks of the event loop, which itself keeps no reference to them."""
        self.query_names: dict[object, frozenset[str]] = {}
        """Function of a route → its query parameters. Filled by `create_app`."""
        self._readers = readers
        self._controls = controls
        self._per_thread = threading.local()
        self._lock = threading.Lock()
        self._opened: weakref.WeakSet[Reader | Control] = weakref.WeakSet()
        """Readers and connections of living threads. The server ends idle threads and starts new ones."""
        self._vault: Vault | None = None
        self._ping: tuple[int, SchedulerPing] | None = None

    def reader(self) -> Reader:
        """The reader of this thread. Raises StoreError: the database cannot be opened, or does not exist yet."""
        reader: Reader | None = getattr(self._per_thread, "reader", None)
        if reader is not None and not reader.is_current:  # for example, a backup was restored
            with self._lock:
                self._opened.remove(reader)
            reader.close()
            reader = self._per_thread.reader = None
        if reader is None:
            reader = self._readers()
            reader.dags_folder = self.config.dags_folder
            self._per_thread.reader = reader
            with self._lock:
                self._opened.add(reader)
        return reader

    def control(self) -> Control:
        """The connection of this thread to the scheduler."""
        control: Control | None = getattr(self._per_thread, "control", None)
        if control is None:
            control = self._per_thread.control = self._controls()
            with self._lock:
                self._opened.add(control)
        return control

    def ping(self) -> SchedulerPing:
        """The state of the scheduler, at most a second old."""
        now = self.clock.monotonic()
        with self._lock:
            kept = self._ping
        if kept is not None and now - kept[0] < _PING_KEPT_US:
            return kept[1]
        try:
            state = self.control().call(Ping(), timeout=PING_SECONDS)
        except Unreachable:
            found = SchedulerPing(answers=False)
        except TradewindError as error:
            found = SchedulerPing(answers=True, trouble=str(error))
        else:
            found = SchedulerPing(answers=True, state=state, trouble=state.trouble)
        with self._lock:
            self._ping = (now, found)
        return found

    def is_revoked(self, jti: str) -> bool:
        """Was this token revoked by a logout? Raises StoreError: the database cannot be read."""
        return self.logins.is_logged_out(jti) or self.reader().token_revoked(jti)

    def vault(self) -> Vault | None:
        """Decrypts variables. None: this process has no key. Raises ConfigError: the key is not valid."""
        if self._vault is None and (self.config.fernet_key is not None or self.config.fernet_key_file):
            self._vault = open_vault(self.config.fernet_key, self.config.fernet_key_file)
        return self._vault

    def close(self) -> None:
        self.logins.close()
        with self._lock:
            opened = list(self._opened)
            self._opened.clear()
        for one in opened:
            one.close()
