"""Settings: one table of options, read from environment, file and Airflow's names, checked and explained.

`load` gives the frozen `Settings` that a composition root takes apart into the plain values its parts receive.
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
