"""`UIAlert`: a message for Airflow's dashboard, as defined in `airflow_local_settings`. It has no effect."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["UIAlert"]


class UIAlert:
    """A message.

    Args:
        message, text: the text; `message` is the name in Airflow 2, `text` in Airflow 3.
        category: `info`, `warning` or `error`.
        roles: the roles that see the message; None: all.
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
        """Return False: the message is not shown."""
        return False
