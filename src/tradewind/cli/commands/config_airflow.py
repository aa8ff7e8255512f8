"""`tradewind config lint` and `update`: check and convert the settings of Airflow."""

from __future__ import annotations

import configparser
import json
import os
from typing import NamedTuple

import click

from tradewind.cli.output import output_option, show
from tradewind.model.errors import NotFound
from tradewind.platform.private_file import create_private_file
from tradewind.sdk.conf_defaults import default_of
from tradewind.settings import OPTIONS, Option, Settings, home, load, values
from tradewind.settings.airflow_options import (
    FILE_OPTIONS_NOT_USED,
    NO_MEANING,
    READABLE,
    UNKNOWN,
    USED,
    all_names,
    meaning_of_log_folder,
    outcome_of,
)

_COLUMNS = ("setting", "here", "value", "meaning")
_SECRET_NAMES = ("key", "password", "secret", "conn", "token", "dsn", "broker_url", "result_backend")


class Line(NamedTuple):
    """One setting of Airflow and its counterpart: `here` is the name in Tradewind, None if it has no counterpart."""

    setting: str
    here: str | None
    value: str
    meaning: str
    text: str | None = None
    """The value as Tradewind writes it; None if it is not converted."""


def airflow_config(path: str | None) -> str | None:
    """Path of the airflow.cfg: the given path, otherwise $AIRFLOW_CONFIG, otherwise in $AIRFLOW_HOME; None: there is no file.

    Raises:
        NotFound: the given path does not exist.
    """
    if path is not None:
        if not os.path.isfile(path):
            raise NotFound(f"there is no file {path}")
        return path
    home = os.environ.get("AIRFLOW_HOME") or os.path.expanduser("~/airflow")
    found = os.environ.get("AIRFLOW_CONFIG") or os.path.join(home, "airflow.cfg")
    return found if os.path.isfile(found) else None


def read_airflow_config(path: str) -> list[Line]:
    """Read every setting of an airflow.cfg.

    Raises:
        click.ClickException: the file cannot be read.
    """
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
    except (configparser.Error, UnicodeDecodeError) as error:
        raise click.ClickException(f"{path} cannot be read: {' '.join(str(error).split())}") from None
    counterparts = {name: option for option in OPTIONS for name in all_names(option)}
    return [
        _line(f"{section}.{key}", value, counterparts.get(f"{section}.{key}"))
        for section in parser.sections()
        for key, value in parser.items(section)
    ]


def _shown(setting: str, value: str) -> str:
    """A value, or `***` if its name is like that of a secret."""
    return "***" if value and any(word in setting.lower() for word in _SECRET_NAMES) else value


def _line(setting: str, value: str, option: Option | None) -> Line:
    shown = _shown(setting, value)
    if option is None:
        return Line(setting, None, shown, "has no effect in Tradewind")
    if option.secret:
        return Line(setting, option.name, "***", f"is a secret: set it in the environment ({option.env})")
    text = option.from_airflow(value) if option.from_airflow is not None else value
    try:
        values.read(option, text, values.Context(home=home(), env=os.environ))
    except values.InvalidValue as invalid:
        return Line(setting, option.name, shown, f"is not converted: {option.name} {invalid}")
    return Line(setting, option.name, shown, f"= {text}", text)


@click.command("airflow")
@click.option(
    "-f", "--file", "path", type=click.Path(dir_okay=False), help="Path of the airflow.cfg. Default: $AIRFLOW_HOME/airflow.cfg."
)
@click.option("--section", help="Only this section.")
@click.option("--unknown", "only_unknown", is_flag=True, help="Show only options that no release of Airflow has.")
@output_option
def airflow_settings(path: str | None, section: str | None, only_unknown: bool, output: str) -> None:
    """Show for each setting of Airflow (environment, airflow.cfg) how Tradewind uses it.

    An airflow.cfg is used where AIRFLOW_CONFIG or AIRFLOW_HOME names it in the environment. Its other options can be read by DAG
    files.
    """
    settings = load()
    rows = [_environment_row(settings, name) for name in sorted(os.environ) if name.startswith("AIRFLOW__")]
    file = airflow_config(path)
    if file is not None:
        rows += [_file_row(line) for line in read_airflow_config(file)]
    rows = [row for row in rows if section is None or row["setting"].startswith(f"{section.lower()}.")]
    rows = [row for row in rows if not only_unknown or row["kind"] == UNKNOWN]
    nothing = "Every given setting is one of Airflow's." if only_unknown else "No setting of Airflow is given."
    show(rows, output, ("setting", "value", "source", "meaning"), empty=nothing)
    if file is not None and settings.airflow.path is None:
        click.echo(f"{file} is not used: set AIRFLOW_CONFIG={file}, or convert it: tradewind config update --fix", err=True)
    for sentence in settings.ignored:
        click.echo(sentence, err=True)


def _environment_row(settings: Settings, variable: str) -> dict[str, str]:
    section, _, key = variable.removeprefix("AIRFLOW__").lower().partition("__")
    value = _shown(f"{section}.{key}", os.environ[variable])
    row = _outcome_row(f"{section}.{key}", value, f"environment variable {variable}", is_from_file=False)
    return row if os.environ[variable] else row | {"kind": NO_MEANING, "meaning": "is empty, so it is not used"}


def _file_row(line: Line) -> dict[str, str]:
    return _outcome_row(line.setting.lower(), line.value, "airflow.cfg", is_from_file=True)


def _outcome_row(name: str, value: str, source: str, *, is_from_file: bool) -> dict[str, str]:
    found = outcome_of(name.removesuffix("_cmd"))
    if found.kind == USED and is_from_file and name in FILE_OPTIONS_NOT_USED:
        meaning = f"has no meaning here: {meaning_of_log_folder()}"
    elif found.option is not None and found.option.secret and is_from_file:
        meaning = "has no meaning here: secrets are not taken from this file; tradewind import-airflow reads it"
    elif found.kind == USED:
        schema = ", if it names PostgreSQL: the tables of Tradewind are in the schema tradewind of this database"
        meaning = f"used as {found.text}{schema if found.text == 'database.url' else ''}"
    elif found.kind == READABLE:
        meaning = found.text
    elif found.kind == UNKNOWN:
        meaning = f"unknown: no release of Airflow has it. {found.text}".rstrip()
    else:
        meaning = f"has no meaning here: {found.text}"
    return {"setting": name, "value": value, "source": source, "kind": found.kind, "meaning": meaning}


@click.command()
@click.option(
    "-f", "--file", "path", type=click.Path(dir_okay=False), help="Path of the airflow.cfg. Default: $AIRFLOW_HOME/airflow.cfg."
)
@click.option("--section", help="Only this section.")
@click.option("--option", help="Only this option.")
@click.option("--ignore-section", "ignored_sections", multiple=True, help="Leave out this section.")
@click.option("--ignore-option", "ignored_options", multiple=True, help="Leave out this option.")
@output_option
def lint(
    path: str | None,
    section: str | None,
    option: str | None,
    ignored_sections: tuple[str, ...],
    ignored_options: tuple[str, ...],
    output: str,
) -> int:
    """List Airflow settings (environment, airflow.cfg) that have no effect in Tradewind, except values that are Airflow's
    defaults. The exit code is 1 if there are any.
    """
    settings = load()  # fails if a setting of Tradewind is wrong, and names its place and the nearest valid name
    rows = [_environment_row(settings, name) for name in settings.unused if os.environ[name]]
    file = airflow_config(path)
    if file is not None:
        rows += [_file_row(line) for line in read_airflow_config(file) if line.here is None and not _is_default(line)]

    def concerns(row: dict[str, str]) -> bool:
        first, _, rest = row["setting"].partition(".")
        wanted = (section is None or first == section.lower()) and (option is None or rest == option.lower())
        return wanted and first not in ignored_sections and rest not in ignored_options

    rows = [row for row in rows if row["kind"] in (NO_MEANING, UNKNOWN) and concerns(row)]
    show(rows, output, ("setting", "source", "meaning"), empty="All settings have an effect in Tradewind.")
    return 1 if rows else 0


def _is_default(line: Line) -> bool:
    section, _, key = line.setting.lower().partition(".")
    default = default_of(section, key)
    return line.value == "" if default is None else line.value.strip().lower() == default.strip().lower()


@click.command()
@click.option(
    "-f", "--file", "path", type=click.Path(dir_okay=False), help="Path of the airflow.cfg. Default: $AIRFLOW_HOME/airflow.cfg."
)
@click.option("--fix", is_flag=True, help="Write the settings file. Without this option the settings are only shown.")
@click.option("--all-recommendations", is_flag=True, hidden=True)
@output_option
def update(path: str | None, fix: bool, all_recommendations: bool, output: str) -> None:
    """Convert an airflow.cfg: write the settings that have an effect in Tradewind to tradewind.toml."""
    file = airflow_config(path)
    if file is None:
        raise NotFound(
            "there is no airflow.cfg in $AIRFLOW_HOME; name one with --file. The settings of Tradewind need no update"
        )
    lines = [line for line in read_airflow_config(file) if line.here is not None]
    document = _as_toml(lines, file)
    show([line._asdict() for line in lines], output, _COLUMNS, empty=f"No setting in {file} has an effect in Tradewind.")
    if not lines:
        return
    settings = load()
    settings.paths.prepare()
    target = settings.paths.config
    if not fix:
        click.echo(f"With --fix these are written to {target}. Nothing was changed.", err=True)
    elif not create_private_file(target, document.encode()):
        raise click.ClickException(f"{target} exists and was not changed. These are the settings to add:\n{document}")
    else:
        click.echo(f"{target} is written.", err=True)


def _as_toml(lines: list[Line], file: str) -> str:
    """The text of tradewind.toml. All values are written as strings; each option converts its own."""
    sections: dict[str, dict[str, str]] = {}
    for line in lines:
        if line.here is not None and line.text is not None:
            section, _, key = line.here.partition(".")
            sections.setdefault(section, {}).setdefault(key, line.text)

    def lines_of(keys: dict[str, str]) -> list[str]:
        return [f"{key} = {json.dumps(text, ensure_ascii=False)}" for key, text in keys.items()]

    body = "\n\n".join("\n".join([f"[{name}]", *lines_of(keys)]) for name, keys in sections.items())
    return f"# Converted from {file}\n\n{body}\n"
