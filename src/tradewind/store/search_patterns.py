"""Airflow's search patterns, for texts outside of the database."""

from __future__ import annotations

import re


def like(pattern: str) -> re.Pattern[str]:
    """The regular expression of a pattern: part of the text in any case, `%` and `_` are wildcards, `|` means "or"."""
    parts = ["".join({"%": ".*", "_": "."}.get(sign, re.escape(sign)) for sign in part) for part in pattern.split("|") if part]
    return re.compile("|".join(parts), re.IGNORECASE | re.DOTALL)


def prefixes(prefix: str | None) -> tuple[str, ...]:
    """The beginnings that a prefix pattern allows: `|` means "or". Empty: every text matches (no pattern, or `~`)."""
    return () if prefix is None or prefix == "~" else tuple(part for part in prefix.split("|") if part)


def begins(text: str, prefix: str | None) -> bool:
    """Whether a text begins with one of the beginnings of a prefix pattern."""
    return text.startswith(prefixes(prefix) or "")
