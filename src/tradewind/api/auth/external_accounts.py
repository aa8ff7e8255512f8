"""Accounts of people whom an identity provider (OIDC) or a directory (LDAP) has identified.

The first login creates the account. Later logins find the account by the id that the provider or the directory gives the
person, and not by the name. So nobody gets the account of another person by taking their name. If groups give rights, each
login sets the rights again.
"""

from __future__ import annotations

from typing import NamedTuple

from tradewind.api.auth.accounts import Accounts
from tradewind.api.auth.group_rights import GroupRules, Rights, managed, rights_of
from tradewind.api.auth.passwords import new_stamp
from tradewind.model.accounts import NAME_MAX, Account, AccountSource
from tradewind.model.errors import Conflict, LoginRefused, NotFound
from tradewind.observe.log import Log
from tradewind.platform.clock import Clock

TEXT_MAX = 500
"""Characters of an e-mail address or a full name that are kept."""

_log = Log("api")


class Person(NamedTuple):
    """Somebody whom a provider or a directory has identified."""

    id: str
    """The id of the person. It never changes, and no other person has it."""
    name: str
    """The name of a new account."""
    email: str
    full_name: str
    groups: tuple[str, ...]


class ExternalAccounts:
    """Finds or creates the account of a person.

    Args:
        source: `oidc` or `ldap`.
        create: whether a first login creates the account.
    """

    def __init__(self, accounts: Accounts, clock: Clock, source: AccountSource, rules: GroupRules, create: bool) -> None:
        self._accounts = accounts
        self._clock = clock
        self._source: AccountSource = source
        self._rules = rules
        self._create = create

    def account_of(self, person: Person) -> Account:
        """The account of this person, with the rights that the person's groups give now.

        Raises:
            LoginRefused: the groups permit no login, the account is disabled, or its name belongs to another person.
            Conflict: the person is the only admin and would lose this role.
            StoreError: the accounts cannot be read or written.
        """
        rights = rights_of(person.groups, self._rules)
        if rights is None:
            _log.warning(
                "a login was refused: no group of this person gives rights",
                name=person.name,
                source=self._source,
                groups=", ".join(person.groups[:20]) or "none",
            )
            raise LoginRefused(
                f"{person.name} has no group that may use this server. An administrator decides which groups do."
            )
        store = self._accounts.store
        account = store.external_account(person.id)
        if account is None:
            account = self._new(person, rights)
        if not account.is_active:
            raise LoginRefused(f"The account {account.name} is disabled. An administrator can enable it.")
        account = store.change_account(
            account.name,
            at=self._clock.wall(),
            actor=self._source,
            role=rights.role if self._rules.groups else None,
            email=person.email[:TEXT_MAX] or None,
            full_name=person.full_name[:TEXT_MAX] or None,
        )
        self._set_memberships(account, rights)
        return account

    def _new(self, person: Person, rights: Rights) -> Account:
        store, name = self._accounts.store, person.name
        if not self._create:
            _log.warning(
                "a login was refused: the account does not exist",
                name=name,
                source=self._source,
            )
            raise LoginRefused(f"There is no account for {name} here. An administrator has to permit new accounts.")
        if not name or len(name) > NAME_MAX or "/" in name or not name.isprintable():
            raise LoginRefused(f"{name[:NAME_MAX]!r} cannot be the name of an account here.")
        try:
            return store.create_account(
                name,
                rights.role,
                stamp=new_stamp(),
                at=self._clock.wall(),
                actor=self._source,
                source=self._source,
                external_id=person.id,
                email=person.email[:TEXT_MAX],
                full_name=person.full_name[:TEXT_MAX],
            )
        except Conflict:
            found = store.external_account(person.id)  # created by another request of the same person
            if found is not None:
                return found
            _log.warning("a login was refused: its name belongs to another account", name=name, source=self._source)
            raise LoginRefused(
                f"The name {name} belongs to another account here. An administrator can delete that one: "
                f"tradewind users delete -u {name}"
            ) from None

    def _set_memberships(self, account: Account, rights: Rights) -> None:
        """Grant and revoke the custom roles and the teams that the rules name."""
        store, at = self._accounts.store, self._clock.wall()
        roles, teams = managed(self._rules)
        known_roles, known_teams = set(store.roles()) if roles else set(), set(store.teams()) if teams else set()
        for kind, missing in (("role", roles - known_roles), ("team", teams - known_teams)):
            if missing:
                names = ", ".join(sorted(missing))
                _log.warning(f"the groups of logins name a {kind} that does not exist", names=names, source=self._source)
        before = store.memberships(account.name)
        try:
            if roles:
                kept = set(before.roles) - roles
                store.set_roles(account.name, kept | (rights.custom_roles & known_roles), at=at, actor=self._source)
            now_in = {member.team: member.role for member in before.teams}
            for team in teams & known_teams:
                if now_in.get(team) != rights.teams.get(team):
                    store.set_member(team, account.name, rights.teams.get(team), at=at, actor=self._source)
        except NotFound as error:
            raise LoginRefused(f"The rights of {account.name} changed during the login; log in again.") from error
