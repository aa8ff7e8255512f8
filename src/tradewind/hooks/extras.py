"""Libraries of Tradewind's extras, imported when they are used."""

from __future__ import annotations

import importlib
from typing import Any

from tradewind.model.errors import ConfigError


def import_library(module: str, extra: str) -> Any:
    """Import a library that belongs to one of Tradewind's extras.

    Raises:
        ConfigError: the library is not installed; the message contains the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise ConfigError(
            f"{module} is not installed for this interpreter; install it with: pip install 'tradewind[{extra}]'"
        ) from None
