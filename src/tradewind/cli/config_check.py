"""`tradewind config lint|update`: what Airflow's settings come to here."""

from __future__ import annotations

import configparser
import json
import os
from typing import NamedTuple

import click

from tradewind.cli.output import output_option, show
from tradewind.model.errors import NotFound
from tradewind.platform.private_file import create_private_file
from tradewind.settings import OPTIONS, Option, home, load, values

_COLUMNS = ("setting", "here", "value", "meaning")
_SECRET_NAMES = ("key", "password", "secret", "conn", "token", "dsn")


class Line(NamedTuple):
    """One setting of Airflow's and what it comes to: `here` is the name of ours, None where there is none."""

    setting: str
    here: str | None
    value: str
    meaning: str
    text: str | None = None
    """The value in our words."""


def airflow_config(path: str | None) -> str | None:
    """The airflow.cfg that is meant: the named one, else $AIRFLOW_CONFIG, else the one in $AIRFLOW_HOME; None: there is none.

    Raises:
        NotFound: a named one does not exist.
    """
    if path is not None:
        if not os.path.isfile(path):
            raise NotFound(f"there is no file {path}")
        return path
    home = os.environ.get("AIRFLOW_HOME") or os.path.expanduser("~/airflow")
    found = os.environ.get("AIRFLOW_CONFIG") or os.path.join(home, "airflow.cfg")
    return found if os.path.isfile(found) else None


def read_airflow_config(path: str) -> list[Line]:
    """Every setting of an airflow.cfg.

    Raises:
        click.ClickException: it cannot be read.
    """
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        with open(path, encoding="utf-8") as file:
            parser.read_file(file)
    except (configparser.Error, UnicodeDecodeError) as error:
        raise click.ClickException(f"{path} cannot be read: {' '.join(str(error).split())}") from None
    counterparts = {name: option for option in OPTIONS for name in option.airflow}
    return [
        _line(f"{section}.{key}", value, counterparts.get(f"{section}.{key}"))
        for section in parser.sections()
        for key, value in parser.items(section)
    ]


def _line(setting: str, value: str, option: Option | None) -> Line:
    shown = "***" if value and any(word in setting for word in _SECRET_NAMES) else value
    if option is None:
        return Line(setting, None, shown, "has no meaning here")
    if option.secret:
        return Line(setting, option.name, "***", f"a secret: give it in the environment ({option.env})")
    text = option.from_airflow(value) if option.from_airflow is not None else value
    try:
        values.read(option, text, values.Surroundings(home=home(), env=os.environ))
    except values.Refused as refused:
        return Line(setting, option.name, shown, f"is not taken over: {option.name} {refused}")
    return Line(setting, option.name, shown, f"= {text}", text)


@click.command()
@click.option("-f", "--file", "path", type=click.Path(dir_okay=False), help="An airflow.cfg; else the one in $AIRFLOW_HOME.")
@click.option("--section", help="Only this section.")
@click.option("--option", help="Only this option.")
@click.option("--ignore-section", "ignored_sections", multiple=True, help="Not this section.")
@click.option("--ignore-option", "ignored_options", multiple=True, help="Not this option.")
@output_option
def lint(
    path: str | None,
    section: str | None,
    option: str | None,
    ignored_sections: tuple[str, ...],
    ignored_options: tuple[str, ...],
    output: str,
) -> int:
    """What is set for Airflow (environment, airflow.cfg) and has no meaning here. The exit code is 1 when there is something."""
    settings = load()  # settings of ours that are wrong end it here, with their place and the nearest valid name
    lines = [Line(name, None, "***", "has no meaning here (environment)") for name in settings.unused]
    file = airflow_config(path)
    if file is not None:
        lines += [line for line in read_airflow_config(file) if line.here is None]

    def concerns(line: Line) -> bool:
        words = line.setting.removeprefix("AIRFLOW__").lower().replace("__", ".")
        first, _, rest = words.partition(".")
        wanted = (section is None or first == section.lower()) and (option is None or rest == option.lower())
        return wanted and first not in ignored_sections and rest not in ignored_options

    rows = [line._asdict() for line in lines if concerns(line)]
    show(rows, output, ("setting", "meaning"), empty="Everything that is set has a meaning here.")
    return 1 if rows else 0


@click.command()
@click.option("-f", "--file", "path", type=click.Path(dir_okay=False), help="An airflow.cfg; else the one in $AIRFLOW_HOME.")
@click.option("--fix", is_flag=True, help="Write the settings file; without it they are only shown.")
@click.option("--all-recommendations", is_flag=True, hidden=True)
@output_option
def update(path: str | None, fix: bool, all_recommendations: bool, output: str) -> None:
    """Take over an airflow.cfg: what of it means something here becomes tradewind.toml."""
    file = airflow_config(path)
    if file is None:
        raise NotFound("there is no airflow.cfg in $AIRFLOW_HOME; name one with --file. Settings of ours need no update")
    lines = [line for line in read_airflow_config(file) if line.here is not None]
    document = _as_toml(lines, file)
    show([line._asdict() for line in lines], output, _COLUMNS, empty=f"Nothing in {file} has a meaning here.")
    if not lines:
        return
    settings = load()
    settings.paths.prepare()
    target = settings.paths.config
    if not fix:
        click.echo(f"--fix writes these to {target}. Nothing was changed.", err=True)
    elif not create_private_file(target, document.encode()):
        raise click.ClickException(f"{target} exists and is left alone; this is what it could hold:\n{document}")
    else:
        click.echo(f"{target} is written.", err=True)


def _as_toml(lines: list[Line], file: str) -> str:
    """Our settings file. Texts may stand for numbers there: each option reads its own kind."""
    sections: dict[str, dict[str, str]] = {}
    for line in lines:
        if line.here is not None and line.text is not None:
            section, _, key = line.here.partition(".")
            sections.setdefault(section, {}).setdefault(key, line.text)

    def said(keys: dict[str, str]) -> list[str]:
        return [f"{key} = {json.dumps(text, ensure_ascii=False)}" for key, text in keys.items()]

    body = "\n\n".join("\n".join([f"[{name}]", *said(keys)]) for name, keys in sections.items())
    return f"# Taken over from {file}\n\n{body}\n"
