"""`airflow.configuration`: settings as Airflow 1 read them, with functions of the module."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

from tradewind.sdk.conf import SettingsReader, conf
from tradewind.sdk.exceptions import AirflowConfigException

__all__ = [
    "AIRFLOW_HOME",
    "AirflowConfigException",
    "SettingsReader",
    "as_dict",
    "conf",
    "get",
    "getboolean",
    "getfloat",
    "getint",
    "getlist",
    "has_option",
    "providers_configuration_loaded",
]

AIRFLOW_HOME = os.environ.get("AIRFLOW_HOME") or os.environ.get("TRADEWIND_HOME") or os.path.expanduser("~/.tradewind")
"""The home folder. Airflow 1 and 2 have it here and in `airflow.settings`."""

get = conf.get
getboolean = conf.getboolean
getint = conf.getint
getfloat = conf.getfloat
getlist = conf.getlist
has_option = conf.has_option
as_dict = conf.as_dict


_F = TypeVar("_F", bound=Callable[..., Any])


def providers_configuration_loaded(function: _F) -> _F:
    """Leave a function as it is: `conf` knows the defaults of installed provider packages always."""
    return function
