"""Reads the settings of logins at an identity provider and in a directory, and checks that they make sense together."""

from __future__ import annotations

import importlib.util
from urllib.parse import urlsplit

from tradewind.api.auth.group_rights import rules_of
from tradewind.api.auth.oidc import is_private_address
from tradewind.api.config import LdapConfig, OidcConfig
from tradewind.model.errors import ConfigError
from tradewind.settings import Settings


def oidc_of(settings: Settings) -> OidcConfig | None:
    """The identity provider; None: no provider is configured. Raises ConfigError: the settings are wrong; the message says how
    to correct them.
    """
    oidc = settings.oidc
    if oidc.issuer is None:
        return None
    if not is_private_address(oidc.issuer, oidc.issuer):
        raise ConfigError(
            f"oidc.issuer is {oidc.issuer!r}. It must begin with https:// (http:// only on this machine): the address that the "
            "provider's discovery document names as issuer."
        )
    _need_package("httpx", "oidc", "Logins by OpenID Connect")
    rules = rules_of("oidc.groups", oidc.groups, oidc.default_role)
    return OidcConfig(
        issuer=oidc.issuer,
        client_id=oidc.client_id,
        client_secret=oidc.client_secret,
        label=oidc.label,
        scopes=oidc.scopes,
        name_claim=oidc.name_claim,
        groups_claim=oidc.groups_claim,
        groups=dict(rules.groups),
        default_role=rules.default_role,
        create_accounts=oidc.create_accounts,
        ca_file=oidc.ca_file,
    )


def ldap_of(settings: Settings) -> LdapConfig | None:
    """The directory; None: no directory is configured. Raises ConfigError: the settings are wrong; the message says how to
    correct them.
    """
    ldap = settings.ldap
    if ldap.url is None:
        return None
    parts = urlsplit(ldap.url)
    if parts.scheme not in ("ldap", "ldaps") or not parts.hostname:
        raise ConfigError(f"ldap.url is {ldap.url!r}. Write it like this: ldaps://ldap.example.com")
    if ldap.search_base is None:
        raise ConfigError(
            "ldap.url is set, so ldap.search_base is necessary, too: where people are, like ou=people,dc=example,dc=com"
        )
    for name, text, mark in (("user_filter", ldap.user_filter, "{name}"), ("group_filter", ldap.group_filter, "{dn}")):
        if mark not in text:
            raise ConfigError(f"ldap.{name} is {text!r}. It must contain {mark}.")
    if ldap.bind_dn is not None and ldap.bind_password is None:
        raise ConfigError(
            "ldap.bind_dn is set, so its password is necessary, too. It is read from the environment only: "
            "TRADEWIND__LDAP__BIND_PASSWORD"
        )
    _need_package("ldap3", "ldap", "Logins by LDAP")
    rules = rules_of("ldap.groups", ldap.groups, ldap.default_role)
    return LdapConfig(
        url=ldap.url,
        start_tls=ldap.start_tls,
        ca_file=ldap.ca_file,
        bind_dn=ldap.bind_dn,
        bind_password=ldap.bind_password,
        search_base=ldap.search_base,
        user_filter=ldap.user_filter,
        name_attribute=ldap.name_attribute,
        groups_attribute=ldap.groups_attribute,
        group_search_base=ldap.group_search_base,
        group_filter=ldap.group_filter,
        groups=dict(rules.groups),
        default_role=rules.default_role,
        create_accounts=ldap.create_accounts,
        timeout=ldap.timeout,
    )


def _need_package(name: str, extra: str, what: str) -> None:
    if importlib.util.find_spec(name) is None:
        raise ConfigError(f"{what} need the package {name}. Install it: pip install 'tradewind[{extra}]'")
