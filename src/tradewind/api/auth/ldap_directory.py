"""Checks a name and a password in an LDAP directory, such as OpenLDAP or Active Directory.

search   as the account of the settings (or anonymously): the one entry that the filter finds for the name
bind     as that entry, with the password of the person: this proves who it is
groups   from an attribute of the entry (`memberOf`), and from a search for the groups that name the entry
"""

from __future__ import annotations

import math
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tradewind.api.auth.external_accounts import Person
from tradewind.api.config import LdapConfig
from tradewind.model.accounts import Account
from tradewind.model.errors import ConfigError, Unreachable
from tradewind.observe.log import Log

if TYPE_CHECKING:
    from ldap3 import Connection

LOGINS_AT_ONCE = 2
"""How many logins may ask the directory at the same time. A slow directory must not occupy all threads of the API."""
GROUPS_MAX = 1_000
_IDS = ("entryUUID", "objectGUID")
"""Attributes of OpenLDAP and of Active Directory whose values never change."""

_log = Log("api")


class LdapDirectory:
    """See the module. Safe for several threads: each login has connections of its own."""

    def __init__(self, config: LdapConfig) -> None:
        self._config = config
        self._slots = threading.BoundedSemaphore(LOGINS_AT_ONCE)

    def person(self, name: str, password: str) -> Person | None:
        """The person with this name and password. None: the name or the password is wrong.

        Raises:
            ConfigError: the package ldap3 is missing.
            Unreachable: the directory does not answer, or refuses the account of the settings.
        """
        if not password or not name:
            return None  # a directory accepts a bind without a password as an anonymous bind
        with self._slot(), self._connection(self._config.bind_dn, self._config.bind_password) as searching:
            if searching is None:
                raise self._unreachable(f"it refuses ldap.bind_dn ({self._config.bind_dn or 'an anonymous search'})")
            entry = self._entry(searching, name)
            if entry is None:
                return None
            with self._connection(entry["dn"], password) as own:
                if own is None:
                    return None
            return self._described(searching, entry)

    def check(self) -> str:
        """Connect and search as a login does. Returns the result in words. Raises as `person`."""
        with self._connection(self._config.bind_dn, self._config.bind_password) as searching:
            if searching is None:
                raise self._unreachable(f"it refuses ldap.bind_dn ({self._config.bind_dn or 'an anonymous search'})")
            self._entry(searching, "nobody")
        return f"{self._config.url} answers, and can be searched below {self._config.search_base}"

    @contextmanager
    def _slot(self) -> Iterator[None]:
        if not self._slots.acquire(timeout=self._config.timeout):
            raise Unreachable("Too many people log in at this moment; try again.")
        try:
            yield
        finally:
            self._slots.release()

    @contextmanager
    def _connection(self, dn: str | None, password: str | None) -> Iterator[Connection | None]:
        """A connection after its bind. None: the directory refuses the name or the password. Raises Unreachable, ConfigError."""
        try:
            import ldap3  # lazy import: optional, the extra ldap
            from ldap3.core.exceptions import LDAPException
        except ImportError:
            raise ConfigError("Logins by LDAP need the package ldap3. Install it: pip install 'tradewind[ldap]'") from None

        config = self._config
        connection: Connection | None = None
        try:
            tls = ldap3.Tls(validate=ssl.CERT_REQUIRED, ca_certs_file=config.ca_file)
            server = ldap3.Server(config.url, get_info=ldap3.NONE, tls=tls, connect_timeout=config.timeout)
            connection = ldap3.Connection(
                server,
                user=dn,
                password=password,
                authentication=ldap3.SIMPLE if dn else ldap3.ANONYMOUS,
                receive_timeout=math.ceil(config.timeout),  # ldap3 wants whole seconds
                auto_referrals=False,
                read_only=True,
            )
            connection.open()
            if config.start_tls and not config.url.lower().startswith("ldaps:"):
                connection.start_tls(read_server_info=False)
            yield connection if connection.bind() else None
        except (LDAPException, OSError) as error:
            raise self._unreachable(str(error)) from error
        finally:
            if connection is not None:
                _close(connection)

    def _entry(self, searching: Connection, name: str) -> dict[str, Any] | None:
        """The only entry that the filter finds. If the filter finds several entries, the settings are wrong, and nobody can
        log in with this name.
        """
        from ldap3 import SUBTREE  # lazy import: as above
        from ldap3.utils.conv import escape_filter_chars

        config = self._config
        wanted = config.user_filter.replace("{name}", escape_filter_chars(name))
        attributes = [config.name_attribute, config.groups_attribute, "mail", "displayName", "cn", *_IDS]
        searching.search(config.search_base, wanted, SUBTREE, attributes=attributes, size_limit=2)
        self._need_success(searching, f"the search below {config.search_base} for {wanted}")
        found = [one for one in searching.response or () if one["type"] == "searchResEntry"]
        if len(found) > 1:
            _log.warning(
                "several people in the directory have this name: ldap.user_filter must find one", name=name, filter=wanted
            )
        return found[0] if len(found) == 1 else None

    def _described(self, searching: Connection, entry: dict[str, Any]) -> Person:
        attributes, dn = entry["attributes"], str(entry["dn"])
        groups = [str(one) for one in _all(attributes, self._config.groups_attribute)]
        groups += self._groups_with(searching, dn)
        name = _first(attributes, self._config.name_attribute)
        if not name:
            raise self._unreachable(
                f"the entry {dn} has no attribute {self._config.name_attribute} (setting: ldap.name_attribute)"
            )
        id = next((str(value) for value in (_first(attributes, one) for one in _IDS) if value), dn.lower())
        return Person(
            id=f"ldap {id}",
            name=name,
            email=_first(attributes, "mail"),
            full_name=_first(attributes, "displayName") or _first(attributes, "cn"),
            groups=tuple(dict.fromkeys(part for group in groups for part in (group, _short(group)) if part)),
        )

    def _groups_with(self, searching: Connection, dn: str) -> list[str]:
        from ldap3 import SUBTREE  # lazy import: as above
        from ldap3.utils.conv import escape_filter_chars

        config = self._config
        if config.group_search_base is None:
            return []
        wanted = config.group_filter.replace("{dn}", escape_filter_chars(dn))
        searching.search(config.group_search_base, wanted, SUBTREE, attributes=["cn"], size_limit=GROUPS_MAX)
        self._need_success(searching, f"the search below {config.group_search_base} for {wanted}")
        return [str(one["dn"]) for one in searching.response or () if one["type"] == "searchResEntry"]

    def _need_success(self, searching: Connection, what: str) -> None:
        result = searching.result or {}
        if result.get("description") not in ("success", "sizeLimitExceeded"):
            raise self._unreachable(f"{what} failed: {result.get('description')} {result.get('message') or ''}".rstrip())

    def _unreachable(self, why: str) -> Unreachable:
        _log.warning("the directory of logins cannot be used", url=self._config.url, why=why)
        return Unreachable(f"The directory {self._config.url} cannot be used now: {why}")


def directory_login(directory: LdapDirectory, account_of: Callable[[Person], Account]) -> Callable[[str, str], Account | None]:
    """Checks a name and a password, and returns the account."""

    def check(name: str, password: str) -> Account | None:
        person = directory.person(name, password)
        return None if person is None else account_of(person)

    return check


def _all(attributes: dict[str, Any], name: str) -> list[Any]:
    """The values of an attribute. Upper and lower case of its name do not matter."""
    for key, value in attributes.items():
        if key.lower() == name.lower():
            return list(value) if isinstance(value, list) else [value]
    return []


def _first(attributes: dict[str, Any], name: str) -> str:
    values = _all(attributes, name)
    if not values:
        return ""
    return values[0].hex() if isinstance(values[0], bytes) else str(values[0])


def _short(group: str) -> str:
    """`cn=data,ou=groups,dc=example` → `data`. Empty: the text is not a distinguished name."""
    first, mark, _ = group.partition(",")
    return first.partition("=")[2] if mark and "=" in first else ""


def _close(connection: Connection) -> None:
    from ldap3.core.exceptions import LDAPException  # lazy import: as above

    try:
        connection.unbind()
    except (LDAPException, OSError):
        pass  # the server has closed it
