"""The settings that user code may read. They contain no secrets."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tradewind.cli.reach import EVERY_ADDRESS, is_this_machine

if TYPE_CHECKING:
    from tradewind.settings import Settings


def prepare_for_user_code(settings: Settings) -> None:
    """Prepare the environment of a process that starts user code: remove secrets, and set the plugins folder and other settings."""
    from tradewind.model.secret_names import HIDE_VARIABLE, NAMES_VARIABLE
    from tradewind.sdk.import_paths import PLUGINS_FOLDER
    from tradewind.settings import SECRET_ENVIRONMENT

    os.environ[PLUGINS_FOLDER] = settings.paths.plugins
    os.environ["TRADEWIND__OPERATORS__DEFAULT_DEFERRABLE"] = str(settings.operators.default_deferrable).lower()

    os.environ[HIDE_VARIABLE] = str(settings.core.hide_sensitive_var_conn_fields).lower()
    os.environ[NAMES_VARIABLE] = settings.core.sensitive_var_conn_names or ""
    for name in SECRET_ENVIRONMENT:
        os.environ.pop(name, None)


def use_secret_names(settings: Settings) -> None:
    """Set which names mark a secret value in this process. The names come from the settings."""
    from tradewind.model.secret_names import configure

    configure(settings.core.sensitive_var_conn_names or "", settings.core.hide_sensitive_var_conn_fields)


def user_settings(settings: Settings) -> dict[str, str]:
    """The settings that user code may read: all settings that are not secret, under Tradewind's and Airflow's names, and the
    values of the airflow.cfg.

    A setting without a value is left out, so that `conf.get` returns Airflow's default or the fallback of the caller.
    """
    from tradewind.settings import OPTIONS

    found = settings.airflow.for_user_code()
    for option in OPTIONS:
        if option.secret:
            continue
        section, _, key = option.name.partition(".")
        is_none = getattr(getattr(settings, section), key) is None
        if is_none and not option.empty_is_none:
            continue
        for name in (*option.airflow, option.name):
            found[name] = "" if is_none else settings.explanations[option.name].value
    if settings.api.base_url is None and settings.api.port:
        for name in ("api.base_url", "webserver.base_url"):
            found[name] = _own_address(settings.api.host, settings.api.port)
    return found


def _own_address(host: str, port: int) -> str:
    """The address of the web server on this machine, for links such as `ti.log_url`. `api.base_url` replaces it."""
    if host in EVERY_ADDRESS or is_this_machine(host):
        host = "localhost"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
