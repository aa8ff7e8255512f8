"""Hides secrets in texts, in every form in which they may appear.

A secret is searched for unchanged, quoted as in a URI, escaped as in JSON and as in Python's `repr`, and line by line if it has
several lines. One compiled pattern finds all forms; the longest forms are tried first. The number of forms is limited.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

from tradewind.model.secret_names import MASK, SHORTEST_SECRET, is_secret, is_secret_setting, secret_texts, secrets_in

FORMS_MAX = 5_000
"""Maximum number of forms in one mask; further secrets are not hidden."""
_NEVER = frozenset({"airflow"})
"""Values that are too common to be hidden. Source: SECRETS_TO_SKIP_MASKING of Airflow's masker."""
_VARIABLES = ("TRADEWIND_VAR_", "AIRFLOW_VAR_")
_CONNECTIONS = ("TRADEWIND_CONN_", "AIRFLOW_CONN_")
_SETTING = re.compile(r"(?:TRADEWIND|AIRFLOW)__")
_SECRET_SETTING = re.compile(r"FERNET|SQL_ALCHEMY_CONN|BROKER_URL|RESULT_BACKEND")


class SecretMask:
    """An immutable set of secrets. `plus` returns a larger mask."""

    __slots__ = ("_forms", "_pattern")

    def __init__(self, secrets: Iterable[str] = (), *, base: SecretMask | None = None) -> None:
        known = dict.fromkeys(base._forms) if base is not None else {}
        for secret in secrets:
            for form in forms_of(secret):
                if len(known) < FORMS_MAX:
                    known[form] = None
        self._forms: tuple[str, ...] = tuple(known)
        self._pattern: re.Pattern[str] | None = None

    def __bool__(self) -> bool:
        return bool(self._forms)

    def plus(self, secrets: Iterable[str]) -> SecretMask:
        """Return a mask with additional secrets; the same object if it already has all of them."""
        found = SecretMask(secrets, base=self)
        return self if len(found._forms) == len(self._forms) else found

    def text(self, text: str, replacement: str = MASK) -> str:
        """Return the text with each secret replaced by `***`, or by another text."""
        if not self._forms:
            return text
        if self._pattern is None:
            self._pattern = re.compile("|".join(re.escape(form) for form in sorted(self._forms, key=len, reverse=True)))
        return self._pattern.sub(lambda found: replacement, text)

    def value(self, value: Any) -> Any:
        """Return a JSON value with the secrets in all its texts replaced, keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.value(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value


def forms_of(secret: str) -> Iterator[str]:
    """Yield the forms in which a secret may appear in a text; no form if it is too short or too common to be hidden."""
    lines = [line.strip() for line in secret.splitlines()] if "\n" in secret or "\r" in secret else []
    # the first and last line of a key in PEM format are not secret
    for plain in (secret, *(line for line in lines if not line.startswith("-----"))):
        if len(plain) < SHORTEST_SECRET or plain.lower() in _NEVER:
            continue
        yield from {
            plain: None,
            quote(plain, safe="", errors="replace"): None,
            quote(plain, errors="replace"): None,
            quote_plus(plain, errors="replace"): None,
            json.dumps(plain)[1:-1]: None,
            json.dumps(plain, ensure_ascii=False)[1:-1]: None,
            repr(plain)[1:-1]: None,
        }


def secrets_of_environment(environment: Mapping[str, str]) -> list[str]:
    """Return the secrets in an environment.

    Connections (`AIRFLOW_CONN_…`, `TRADEWIND_CONN_…`): password and extra. Variables (`AIRFLOW_VAR_…`, `TRADEWIND_VAR_…`): the
    value, if the name is the name of a secret; otherwise the parts of a JSON value that have such a name. Settings: the secret
    ones.
    """
    found: list[str] = []
    for name, value in environment.items():
        prefix = next((one for one in (*_VARIABLES, *_CONNECTIONS) if name.startswith(one)), "")
        if prefix in _CONNECTIONS:
            found += _in_connection(value)
        elif prefix:
            found += secrets_in(value, is_secret(name.removeprefix(prefix)))
        elif _SETTING.match(name) and (is_secret_setting(name) or _SECRET_SETTING.search(name)):
            found.append(value)
    return found


def _in_connection(text: str) -> list[str]:
    """Return the secrets in a connection, written as a URI or as JSON."""
    if text.lstrip().startswith("{"):
        try:
            parts = json.loads(text)
        except ValueError:
            return [text]
        extra = parts.get("extra")
        return secret_texts({**parts, "extra": json.dumps(extra) if isinstance(extra, dict) else extra})
    credentials, at, _ = urlsplit(text).netloc.rpartition("@")
    _, colon, password = credentials.partition(":")
    found = [unquote(password), password] if at and colon else []
    for name, value in parse_qsl(urlsplit(text).query):
        if name == "__extra__":
            found += secret_texts({"extra": value})
        elif is_secret(name):
            found.append(value)
    return found
