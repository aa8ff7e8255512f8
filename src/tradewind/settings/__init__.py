"""Settings: a table of options, read from the environment and a file, checked and explained.

`load` returns the frozen `Settings`. The composition root passes plain values from it to the parts.
"""

from __future__ import annotations

from tradewind.settings.load import Explanation, Settings, explain, home, listing, load
from tradewind.settings.options import OPTIONS, SECRET_ENVIRONMENT, Option
from tradewind.settings.paths import Paths, paths_below

__all__ = [
    "OPTIONS",
    "SECRET_ENVIRONMENT",
    "Explanation",
    "Option",
    "Paths",
    "Settings",
    "explain",
    "home",
    "listing",
    "load",
    "paths_below",
]
