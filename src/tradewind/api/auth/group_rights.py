"""Which rights a person gets from the groups that an identity provider or a directory names. Pure.

The setting is JSON: `{"data-eng": "op", "finance": ["viewer", "team:finance:user", "role:auditor"]}`. Each word is a built-in role,
`team:NAME:ROLE` for a role in a team, or `role:NAME` for a custom role.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tradewind.model.accounts import ROLES, highest
from tradewind.model.errors import ConfigError, did_you_mean

GroupWords = Mapping[str, tuple[str, ...]]
"""Group → words, as the setting has them."""


class Rights(NamedTuple):
    """The rights of an account."""

    role: str
    custom_roles: frozenset[str]
    teams: Mapping[str, str]
    """Team → the role in it."""


class GroupRules(NamedTuple):
    """The groups that give rights, and the role of everybody who may log in."""

    groups: GroupWords
    default_role: str
    """Empty: a person without one of the groups may not log in."""


def rules_of(setting: str, text: str | None, default_role: str) -> GroupRules:
    """Read the two settings.

    Args:
        setting: name of the setting with the groups, for messages.
        text: its value; None: groups give no rights.
        default_role: a role, or `none`.

    Raises:
        ConfigError: the text is not JSON of the right form, or a word has no meaning.
    """
    example = '{"data-eng": "op", "finance": ["viewer", "team:finance:user"]}'
    try:
        found = json.loads(text or "{}")
    except ValueError as error:
        raise ConfigError(f"{setting} is not JSON ({error}). Write it like this: {example}") from None
    if not isinstance(found, dict):
        raise ConfigError(f"{setting} must be a JSON object: group → role. Write it like this: {example}")
    groups = {group: _words(setting, group, value) for group, value in found.items()}
    if not groups and default_role == "none":
        prefix = setting.partition(".")[0]
        raise ConfigError(
            f"Nobody could log in: {setting} names no group, and {prefix}.default_role is none. "
            f"Set {setting} (like {example}), or {prefix}.default_role to the role of everybody: viewer"
        )
    return GroupRules(groups, "" if default_role == "none" else default_role)


def _words(setting: str, group: str, value: object) -> tuple[str, ...]:
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise ConfigError(f"{setting}: the value of the group {group!r} must be a word or a list of words, not {value!r}.")
    for word in words:
        _check_word(setting, group, word)
    return tuple(words)


def _check_word(setting: str, group: str, word: str) -> None:
    kind, _, rest = word.partition(":")
    if word in ROLES or (kind == "role" and rest):
        return
    team, _, role = rest.rpartition(":")
    if kind == "team" and team and role in ROLES:
        return
    if kind == "team":
        why = f"a team is written team:NAME:ROLE, with one of the roles {', '.join(ROLES)}.{did_you_mean(role, ROLES)}"
    else:
        why = f"possible are {', '.join(ROLES)}, team:NAME:ROLE and role:NAME.{did_you_mean(word, ROLES)}"
    raise ConfigError(f"{setting}: {word!r} of the group {group!r} has no meaning: {why}")


def rights_of(groups: Iterable[str], rules: GroupRules) -> Rights | None:
    """The rights of a person with these groups. None: the person may not log in."""
    words = [word for group in groups for word in rules.groups.get(group, ())]
    if not words and not rules.default_role:
        return None
    teams: dict[str, str] = {}
    for word in words:
        if word.startswith("team:"):
            team, _, role = word.removeprefix("team:").rpartition(":")
            teams[team] = highest(role, teams.get(team, ROLES[0]))
    return Rights(
        role=highest(rules.default_role or ROLES[0], *(word for word in words if word in ROLES)),
        custom_roles=frozenset(word.removeprefix("role:") for word in words if word.startswith("role:")),
        teams=teams,
    )


def managed(rules: GroupRules) -> tuple[frozenset[str], frozenset[str]]:
    """(custom roles, teams) that the rules name. A login grants and revokes only these; an administrator grants the others."""
    words = [word for one in rules.groups.values() for word in one]
    roles = frozenset(word.removeprefix("role:") for word in words if word.startswith("role:"))
    teams = frozenset(word.removeprefix("team:").rpartition(":")[0] for word in words if word.startswith("team:"))
    return roles, teams
