"""Reads the airflow.cfg of an Airflow that `AIRFLOW_CONFIG` or `AIRFLOW_HOME` names in the environment.

Its values have the lowest priority. A value that Tradewind cannot use is not an error, because the file was not written for
Tradewind. Values of `AIRFLOW__SECTION__KEY_CMD` are the output of a command, as in Airflow.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from tradewind.model.errors import ConfigError
from tradewind.settings.frozen import Frozen
from tradewind.settings.values import expand_user

COMMAND_SECONDS = 10.0
_SECRET_WORDS = ("fernet_key", "secret_key", "jwt_secret", "sql_alchemy_conn", "broker_url", "result_backend")
"""Options with credentials of Airflow's own services. User code does not get them."""


class AirflowFile(Frozen):
    """The content of an airflow.cfg.

    Attributes:
        path: path of the file; None: the environment names no file, or the file does not exist.
        values: `section.key` → text, in lower case.
        problem: why the file cannot be read; None: it was read.
    """

    path: str | None
    values: Mapping[str, str]
    problem: str | None = None

    def for_user_code(self) -> dict[str, str]:
        """The values that DAG files may read: all except credentials of Airflow's services."""
        return {name: text for name, text in self.values.items() if not any(word in name for word in _SECRET_WORDS)}


def file_of_environment(env: Mapping[str, str]) -> str | None:
    """The airflow.cfg that the environment names: `AIRFLOW_CONFIG`, else `$AIRFLOW_HOME/airflow.cfg`. None: neither is set."""
    if env.get("AIRFLOW_CONFIG"):
        return os.path.abspath(expand_user(env["AIRFLOW_CONFIG"], env))
    if env.get("AIRFLOW_HOME"):
        return os.path.join(os.path.abspath(expand_user(env["AIRFLOW_HOME"], env)), "airflow.cfg")
    return None


def read_airflow_file(env: Mapping[str, str]) -> AirflowFile:
    """Read the airflow.cfg that the environment names. `$NAME`, `~` and `{AIRFLOW_HOME}` in values are replaced."""
    path = file_of_environment(env)
    if path is None:
        return AirflowFile(path=None, values={})
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return AirflowFile(path=None, values={})
    except (OSError, UnicodeDecodeError) as error:
        return AirflowFile(path=path, values={}, problem=f"{path} cannot be read: {error}")

    import configparser  # lazy import: only where there is such a file

    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        return AirflowFile(path=path, values={}, problem=f"{path} cannot be read: {' '.join(str(error).split())}")
    home = env.get("AIRFLOW_HOME") or os.path.dirname(path)
    values = {
        f"{section}.{key}".lower(): _expanded(value, env, home)
        for section in parser.sections()
        for key, value in parser.items(section)
    }
    return AirflowFile(path=path, values=values)


def _expanded(value: str, env: Mapping[str, str], home: str) -> str:
    value = value.replace("{AIRFLOW_HOME}", home)
    value = re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda found: env.get(found.group(1) or found.group(2), found.group(0)), value)
    return expand_user(value, env) if value.startswith("~") else value


def command_output(command: str, name: str) -> str:
    """The output of the command of a `_CMD` variable, without the line end.

    Args:
        name: name of the variable, for messages.

    Raises:
        ConfigError: the command fails or takes too long. The message does not contain the output, which may be a secret.
    """
    import shlex  # lazy imports: only where such a variable is set
    import subprocess

    try:
        done = subprocess.run(shlex.split(command), capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False)
    except (OSError, ValueError) as error:
        raise ConfigError(f"environment variable {name}: the command cannot be started: {error}") from None
    except subprocess.TimeoutExpired:
        raise ConfigError(f"environment variable {name}: the command did not end within {COMMAND_SECONDS:g} s") from None
    if done.returncode:
        raise ConfigError(f"environment variable {name}: the command ended with status {done.returncode}")
    return done.stdout.rstrip("\n")
