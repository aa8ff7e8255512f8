"""`airflow.configuration`: the settings, and the module-level functions of Airflow 1."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

from tradewind.sdk.conf import SettingsReader, conf
from tradewind.sdk.exceptions import AirflowConfigException

__all__ = [
    "AIRFLOW_CONFIG",
    "AIRFLOW_HOME",
    "ENV_VAR_PREFIX",
    "FERNET_KEY",
    "SECRET_KEY",
    "TEST_CONFIG_FILE",
    "TEST_DAGS_FOLDER",
    "TEST_PLUGINS_FOLDER",
    "WEBSERVER_CONFIG",
    "AirflowConfigException",
    "SettingsReader",
    "as_dict",
    "conf",
    "expand_env_var",
    "get",
    "get_airflow_config",
    "get_airflow_home",
    "getboolean",
    "getfloat",
    "getint",
    "getlist",
    "getsection",
    "has_option",
    "initialize_config",
    "load_test_config",
    "mkdir_p",
    "providers_configuration_loaded",
    "remove_option",
    "set",
    "test_mode",
]

AIRFLOW_HOME = os.environ.get("AIRFLOW_HOME") or os.environ.get("TRADEWIND_HOME") or os.path.expanduser("~/.tradewind")
"""The home folder. Airflow 1 and 2 have it here and in `airflow.settings`."""

AIRFLOW_CONFIG = os.environ.get("AIRFLOW_CONFIG") or os.path.join(AIRFLOW_HOME, "airflow.cfg")
"""The path that Airflow's configuration file would have."""

WEBSERVER_CONFIG = os.path.join(AIRFLOW_HOME, "webserver_config.py")
"""The path that the configuration of Airflow's web server would have."""
TEST_CONFIG_FILE = os.path.join(AIRFLOW_HOME, "unittests.cfg")
TEST_DAGS_FOLDER = os.path.join(AIRFLOW_HOME, "dags")
TEST_PLUGINS_FOLDER = os.path.join(AIRFLOW_HOME, "plugins")
"""Folders of tests in Airflow 1 and 2."""
ENV_VAR_PREFIX = "AIRFLOW__"
FERNET_KEY = SECRET_KEY = ""
"""Processes of user code have no keys."""

get = conf.get
getboolean = conf.getboolean
getint = conf.getint
getfloat = conf.getfloat
getlist = conf.getlist
has_option = conf.has_option
as_dict = conf.as_dict
getsection = conf.getsection
remove_option = conf.remove_option
set = conf.set
load_test_config = conf.load_test_config
test_mode = conf.load_test_config
"""Name of `load_test_config` until Airflow 1.8."""


_F = TypeVar("_F", bound=Callable[..., Any])


def providers_configuration_loaded(function: _F) -> _F:
    """Return a function unchanged: `conf` always knows the defaults of installed provider packages."""
    return function


def initialize_config() -> SettingsReader:
    """The settings of this process."""
    return conf


def get_airflow_home() -> str:
    """The home folder."""
    return AIRFLOW_HOME


def get_airflow_config(airflow_home: str = AIRFLOW_HOME) -> str:
    """The path that Airflow's configuration file would have."""
    return os.environ.get("AIRFLOW_CONFIG") or os.path.join(airflow_home, "airflow.cfg")


def expand_env_var(env_var: str | None) -> str | None:
    """A text with environment variables and `~` replaced by their values."""
    return env_var if not env_var else os.path.expanduser(os.path.expandvars(str(env_var)))


def mkdir_p(path: str) -> None:
    """Create a folder and its missing parent folders."""
    os.makedirs(path, exist_ok=True)
