"""Libraries that only some tasks need: imported when they are used."""

from __future__ import annotations

import importlib
from typing import Any

from tradewind.model.errors import ConfigError


def library(module: str, extra: str) -> Any:
    """A module of one of Tradewind's extras.

    Raises:
        ConfigError: it is not installed; the message names the command.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise ConfigError(
            f"{module} is not installed for this interpreter; install it with: pip install 'tradewind[{extra}]'"
        ) from None
