"""Reads the sources of settings: the environment and one TOML file. Finds each given value with its place.

A value for a setting that does not exist is a problem, reported with its place and the nearest valid name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from tradewind.model.errors import ConfigError, nearest
from tradewind.settings.frozen import Frozen
from tradewind.settings.options import BY_AIRFLOW_NAME, BY_NAME, OPTIONS, SECTIONS, Option
from tradewind.settings.values import Context, InvalidValue, expand_user, read

_PREFIX = "TRADEWIND__"
_AIRFLOW_PREFIX = "AIRFLOW__"
_NOT_SETTINGS = ("TRADEWIND_VAR_", "TRADEWIND_CONN_")
"""Prefixes of variables and connections in the environment; the tasks read them."""


class GivenValue(Frozen):
    """A value that a source gives for a setting.

    Attributes:
        option: the setting.
        raw: the value as text or as a TOML value.
        place: `environment variable NAME` or `/path/tradewind.toml:12`.
        airflow: the value was given under Airflow's name.
    """

    option: Option
    raw: object
    place: str
    airflow: bool = False


def home(env: Mapping[str, str]) -> str:
    """The absolute path of the home folder: TRADEWIND_HOME, otherwise ~/.tradewind."""
    return os.path.abspath(expand_user(env.get("TRADEWIND_HOME") or "~/.tradewind", env))


def config_file(env: Mapping[str, str], home_folder: str) -> tuple[str, bool]:
    """The absolute path of the settings file, and whether it must exist (because TRADEWIND_CONFIG names it)."""
    named = env.get("TRADEWIND_CONFIG")
    if named:
        return os.path.abspath(expand_user(named, env)), True
    return os.path.join(home_folder, "tradewind.toml"), False


def from_environment(env: Mapping[str, str], problems: list[str]) -> Iterator[GivenValue]:
    """The values of `TRADEWIND__SECTION__KEY` variables; unknown names are added to `problems`."""
    lookalikes = {option.name.replace(".", "_"): option for option in OPTIONS}
    for name in sorted(env):
        if name.startswith(_PREFIX):
            option = next((o for o in OPTIONS if o.env == name), None)
            if option is not None:
                yield GivenValue(option=option, raw=env[name], place=f"environment variable {name}")
                continue
            section, _, key = name.removeprefix(_PREFIX).lower().partition("__")
            hint = suggestion(section, key, as_env=True)
            problems.append(f"environment variable {name}: there is no setting {section}.{key}.{hint}")
        elif name.startswith("TRADEWIND_") and not name.startswith(_NOT_SETTINGS):
            meant = lookalikes.get(re.sub("_+", "_", name.removeprefix("TRADEWIND_")).lower())
            if meant is not None:
                problems.append(
                    f"environment variable {name} is not read: a setting has two underscores before and after its section. "
                    f"Did you mean {meant.env}?"
                )


def from_airflow_environment(env: Mapping[str, str], unused: list[str]) -> Iterator[GivenValue]:
    """The values of `AIRFLOW__SECTION__KEY` variables for settings of Tradewind, newest Airflow name first.

    An empty variable is ignored, because Airflow's own compose file sets empty ones. Variables without effect are added to
    `unused`.
    """
    used = set()
    for option in OPTIONS:
        for name in option.airflow_envs:
            if env.get(name) or (option.empty_is_none and name in env):
                used.add(name)
                raw = option.from_airflow(env[name]) if option.from_airflow is not None else env[name]
                yield GivenValue(option=option, raw=raw, place=f"environment variable {name}", airflow=True)
    used |= {f"{name}_CMD" for option in OPTIONS if option.secret for name in option.airflow_envs}
    unused.extend(name for name in sorted(env) if name.startswith(_AIRFLOW_PREFIX) and name not in used)


def from_airflow_commands(env: Mapping[str, str], problems: list[str]) -> Iterator[GivenValue]:
    """The values of `AIRFLOW__SECTION__KEY_CMD` variables: the output of a command. Airflow has them for secrets only."""
    for option in OPTIONS:
        for name in option.airflow_envs if option.secret else ():
            command = env.get(f"{name}_CMD")
            if env.get(f"{name}_SECRET"):
                problems.append(
                    f"environment variable {name}_SECRET: settings are not read from secrets backends; "
                    f"set {option.env} or {name}_CMD"
                )
            elif command and not env.get(name):
                from tradewind.settings.airflow_file import (
                    command_output,
                )  # lazy import: few installations have such a variable

                try:
                    raw = command_output(command, f"{name}_CMD")
                except ConfigError as error:
                    problems.append(str(error))
                    continue
                raw = option.from_airflow(raw) if option.from_airflow is not None else raw
                yield GivenValue(option=option, raw=raw, place=f"environment variable {name}_CMD", airflow=True)


def from_airflow_file(values: Mapping[str, str], path: str, context: Context, ignored: list[str]) -> Iterator[GivenValue]:
    """The values of an airflow.cfg for settings of Tradewind, newest name first. A value that cannot be used is added to `ignored`.

    Secrets, and the folder of logs, which Airflow writes to, are never taken from the file.
    """
    from tradewind.settings.airflow_options import FILE_OPTIONS_NOT_USED, all_names  # lazy import: only with an airflow.cfg

    for option in OPTIONS:
        for name in all_names(option):
            text = values.get(name, "")
            if not (text or (option.empty_is_none and name in values)) or option.secret or name in FILE_OPTIONS_NOT_USED:
                continue
            raw = option.from_airflow(text) if option.from_airflow is not None else text
            try:
                read(option, raw, context)
            except InvalidValue as invalid:
                ignored.append(f"{path}: {name} = {text!r} is not used: {option.name} {invalid}")
                continue
            yield GivenValue(option=option, raw=raw, place=f"{path} ({name})", airflow=True)


def from_file(path: str, required: bool, problems: list[str]) -> Iterator[GivenValue]:
    """The values in the TOML file at `path`; if the file cannot be read, and for unknown names, `problems` are added."""
    try:
        with open(path, encoding="utf-8") as file:
            content = file.read()
    except (FileNotFoundError, NotADirectoryError):
        if required:
            problems.append(f"TRADEWIND_CONFIG names {path}, but there is no such file")
        return
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{path}: cannot be read: {error}")
        return

    import tomllib  # lazy import: only needed if there is a settings file

    try:
        tables = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"\(at line (\d+), column \d+\)$", str(error))
        problems.append(f"{path}{':' + at.group(1) if at else ''}: not valid TOML: {error}")
        return
    lines = _lines(content)
    for section, table in tables.items():
        place = _place(path, lines.get((section, "")))
        if not isinstance(table, dict):
            place = _place(path, lines.get(("", section)))
            problems.append(f"{place}: {section!r} is outside of a [section].{suggestion('', section)}")
        elif section not in SECTIONS:
            near = nearest(section, SECTIONS)
            hint = f" Did you mean [{near}]?" if near else ""
            problems.append(f"{place}: there is no section [{section}].{hint} Sections: {', '.join(SECTIONS)}")
        else:
            yield from _from_table(path, section, table, lines, problems)


def _from_table(
    path: str, section: str, table: Mapping[str, object], lines: Mapping[tuple[str, str], int], problems: list[str]
) -> Iterator[GivenValue]:
    for key, raw in table.items():
        place = _place(path, lines.get((section, key)) or lines.get((section, "")))
        option = BY_NAME.get(f"{section}.{key}")
        if option is None:
            problems.append(f"{place}: there is no setting {section}.{key}.{suggestion(section, key)}")
        elif option.secret:
            problems.append(
                f"{place}: {option.name} is a secret and is not read from this file; "
                f"set {option.env}, or use the key file in the home folder"
            )
        else:
            yield GivenValue(option=option, raw=raw, place=place)


def suggestion(section: str, key: str, *, as_env: bool = False) -> str:
    """' Did you mean …?' for a name that does not exist, or ''.

    Tried in this order: the name itself (given in the wrong case), Airflow's name of a setting, the same key in another section,
    the nearest full name, the nearest key of any section.
    """
    name = f"{section}.{key}"
    meant = BY_AIRFLOW_NAME.get(name)
    if meant is not None and name not in BY_NAME:
        return f" This is Airflow's name; use {meant.env if as_env else meant.name}."
    meant = BY_NAME.get(name) or next((option for option in OPTIONS if option.key == key), None)
    if meant is None:
        near = nearest(name, BY_NAME)
        meant = BY_NAME[near] if near else None
    if meant is None:
        near = nearest(key, (option.key for option in OPTIONS))
        meant = next((option for option in OPTIONS if option.key == near), None)
    return "" if meant is None else f" Did you mean {meant.env if as_env else meant.name}?"


def _place(path: str, line: int | None) -> str:
    return path if line is None else f"{path}:{line}"


# The patterns are not compiled here: re compiles each at its first use, and most commands use none of them.
_HEADER = r"\s*\[\s*([^\[\]]+?)\s*\]"
_KEY = r"\s*([\w\-.\"' \t]+?)\s*="


def _lines(content: str) -> dict[tuple[str, str], int]:
    """The line number of each (section, key), and of each header as (section, ''); tomllib does not give line numbers.

    The search is not a full TOML parser, but good enough for error messages; if it finds no line, the message has only the file
    name.
    """
    lines: dict[tuple[str, str], int] = {}
    section = ""
    for number, line in enumerate(content.splitlines(), start=1):
        header = re.match(_HEADER, line)
        pair = re.match(_KEY, line)
        if header is not None:
            section = ".".join(_parts(header.group(1)))
            lines.setdefault((section, ""), number)
        elif pair is not None:
            names = ([section] if section else []) + _parts(pair.group(1))
            key = (names[0], names[1]) if len(names) > 1 else ("", names[0])
            lines.setdefault(key, number)
            lines.setdefault((names[0], ""), number)
    return lines


def _parts(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]
