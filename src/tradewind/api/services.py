"""Shared objects of the routes: for each worker thread one reader of the database and one connection to the scheduler."""

from __future__ import annotations

import asyncio
import copy
import threading
import weakref
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from tradewind.api.auth.account_audit import AccountAudit
from tradewind.api.auth.accounts import Accounts
from tradewind.api.auth.dag_access import DagAccessIndex
from tradewind.api.auth.external_accounts import ExternalAccounts
from tradewind.api.auth.group_rights import GroupRules
from tradewind.api.auth.ldap_directory import LdapDirectory, directory_login
from tradewind.api.auth.login_log import LoginLog
from tradewind.api.auth.oidc import OidcProvider
from tradewind.api.auth.password_login import PasswordLogin
from tradewind.api.auth.permissions import Access
from tradewind.api.auth.policy import Policy
from tradewind.api.auth.throttle import Throttle
from tradewind.api.auth.tokens import Tokens
from tradewind.api.config import ApiConfig, LdapConfig, OidcConfig
from tradewind.api.connection_tests import ConnectionTests
from tradewind.api.event_hub import EventHub
from tradewind.api.grid_cells import GridCache
from tradewind.api.log_pieces import ErrorSearch
from tradewind.model.accounts import AccountSource
from tradewind.model.errors import TradewindError, Unreachable
from tradewind.platform.clock import Clock
from tradewind.storage.task_logs import open_logs
from tradewind.store.accounts import open_accounts
from tradewind.store.crypto import Vault, open_vault
from tradewind.store.port import Reader
from tradewind.wire.commands import Command, Ping, PingResult

R = TypeVar("R")

PING_SECONDS = 1.0
_PING_KEPT_US = 1_000_000


class Control(Protocol):
    """The part of `ControlClient` that the API uses."""

    def call(
        self, command: Command[R], /, *, actor: str | None = None, timeout: float | None = None, op: str | None = None
    ) -> R: ...

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
        self.accounts = Accounts(
            lambda: open_accounts(config.accounts, config.passwords, clock.wall()),
            clock,
            session_seconds=config.session_seconds,
            session_idle_seconds=config.session_idle_seconds,
        )
        self.tokens = Tokens(config.jwt_key, config.token_seconds, clock)
        self.throttle = Throttle(clock)
        self.logins = LoginLog(clock, lambda: self.control().call)
        self.account_audit = AccountAudit(self.accounts, lambda: self.control().call)
        self.dag_access = DagAccessIndex(clock)
        self._visible: frozenset[str] | None = None
        """The DAGs that `reader` shows; None: all."""
        self.oidc = None if config.oidc is None else OidcProvider(config.oidc, clock)
        """The identity provider; None: there is none."""
        self.oidc_accounts = self._external_accounts("oidc", config.oidc)
        directory = None
        if config.ldap is not None:
            directory = directory_login(LdapDirectory(config.ldap), self._external_accounts("ldap", config.ldap).account_of)
        self.password_login = PasswordLogin(self.accounts, self.throttle, self.logins, directory)
        self.grid = GridCache()
        self.logs = open_logs(config.logs, config.remote_logs, config.remote_logs_options)
        self.errors_in_logs = ErrorSearch()
        self.events = EventHub(config.scheduler_socket)
        self.connection_tests = ConnectionTests(clock)
        self.flush_is_scheduled = False
        """True while a timer runs that will flush `logins`."""
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
        self._wrap_control: Callable[[Control], Control] | None = None
        self._vault: Vault | None = None
        self._ping: tuple[int, SchedulerPing] | None = None

    def _external_accounts(self, source: AccountSource, config: OidcConfig | LdapConfig | None) -> ExternalAccounts:
        rules = GroupRules({}, "") if config is None else GroupRules(config.groups, config.default_role)
        create = config is not None and config.create_accounts
        return ExternalAccounts(self.accounts, self.clock, source, rules, create)

    def reader(self) -> Reader:
        """The reader of this thread. For an account that may not read all DAGs, it shows only the DAGs that the account may read.

        Raises:
            StoreError: the database cannot be opened, or does not exist yet.
        """
        if self._visible is None:
            return self.whole_reader()
        reader = self._open("limited_reader")
        reader.show_only(self._visible)
        return reader

    def whole_reader(self) -> Reader:
        """The reader of this thread that shows all DAGs: for decisions, and for numbers that name no DAG. Raises as `reader`."""
        return self._open("whole_reader")

    def limited_to(self, dag_ids: frozenset[str]) -> Services:
        """The same services with readers that show only these DAGs."""
        limited = copy.copy(self)
        limited._visible = dag_ids
        return limited

    def decides(self, access: Access, policy: Policy, dag_id: str) -> bool:
        """Whether an account may do this with this DAG, decided from the present rows. Raises as `reader`."""
        if access.role == "admin":
            return access.may(policy)
        (dag,) = self.dag_access.of(self.whole_reader(), self.accounts.store.team_dags(), [dag_id])
        return access.may_on(policy, dag)

    def visible_to(self, access: Access) -> frozenset[str] | None:
        """The DAGs that an account may read; None: all. Raises as `reader`."""
        if access.reads_all:
            return None
        return self.dag_access.visible(self.whole_reader(), self.accounts.store.team_dags(), access)

    def limited_to_permitted(self, access: Access, policy: Policy) -> Services:
        """The same services with readers that show only the DAGs for which an account has this permission. Raises as `reader`."""
        if access.may_on_all(policy):
            return self
        return self.limited_to(self.dag_access.permitted(self.whole_reader(), self.accounts.store.team_dags(), access, policy))

    def _open(self, kind: str) -> Reader:
        reader: Reader | None = getattr(self._per_thread, kind, None)
        if reader is not None and not reader.is_current:  # for example, a backup was restored
            with self._lock:
                self._opened.remove(reader)
            reader.close()
            reader = None
        if reader is None:
            reader = self._readers()
            reader.dags_folder, reader.bundle_folders = self.config.dags_folder, self.config.bundle_folders
            reader.bundle_pages = {name: bundle.spec.view_template for name, bundle in self.config.versioned.items()}
            setattr(self._per_thread, kind, reader)
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
        return control if self._wrap_control is None else self._wrap_control(control)

    def with_control(self, wrap: Callable[[Control], Control]) -> Services:
        """The same services whose `control` returns the connection of the thread, wrapped by `wrap`."""
        wrapped = copy.copy(self)
        wrapped._wrap_control = wrap
        return wrapped

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
        """Whether this token was revoked by a logout. Raises StoreError: the database cannot be read."""
        return self.logins.is_logged_out(jti) or self.reader().token_revoked(jti)

    def vault(self) -> Vault | None:
        """Decrypts variables. None: this process has no key. Raises ConfigError: the key is not valid."""
        if self._vault is None and (self.config.fernet_key is not None or self.config.fernet_key_file):
            self._vault = open_vault(self.config.fernet_key, self.config.fernet_key_file)
        return self._vault

    def close(self) -> None:
        self.logins.close()
        self.accounts.close()
        if self.oidc is not None:
            self.oidc.close()
        with self._lock:
            opened = list(self._opened)
            self._opened.clear()
        for one in opened:
            one.close()
