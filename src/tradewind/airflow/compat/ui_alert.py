"""`UIAlert`: a message for Airflow's dashboard, as `airflow_local_settings` defines them. It is kept, and not shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["UIAlert"]


class UIAlert:
    """A message.

    Args:
        message, text: two names of the same: Airflow 2 has the first, Airflow 3 the second.
        category: `info`, `warning` or `error`.
        roles: the roles that see it; None: all.
        html: the message is HTML.
    """

    def __init__(
        self,
        message: Any = None,
        category: str = "info",
        roles: Iterable[str] | None = None,
        html: bool = False,
        *,
        text: Any = None,
    ) -> None:
        self.message = self.text = text if message is None else message
        self.category = category
        self.roles = None if roles is None else list(roles)
        self.html = html

    def should_show(self, _application: Any = None) -> bool:
        """Whether the present person sees it: nobody does."""
        return False
