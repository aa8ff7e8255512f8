"""`airflow.utils.email`: reads e-mail addresses of DAG files."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["get_email_address_list"]


def get_email_address_list(addresses: str | Iterable[str]) -> list[str]:
    """A list of addresses, from one text with commas or semicolons, or from several texts."""
    if isinstance(addresses, str):
        return [part.strip() for part in re.split(r"\s*[,;]\s*", addresses) if part.strip()]
    return [address for part in addresses for address in get_email_address_list(part)]
