"""Import and export files of variables, connections and pools: JSON, YAML, and NAME=value lines."""

from __future__ import annotations

import json
import os
from typing import Any, BinaryIO

import click

from tradewind.cli import project_settings
from tradewind.model.counts import counted

FORMATS = ("json", "yaml", "env")
format_option = click.option(
    "--file-format",
    "--format",
    "file_format",
    type=click.Choice(FORMATS),
    help="Format of the file. Default: by its extension, otherwise json.",
)


def read_mapping(file: BinaryIO, what: str) -> dict[str, Any]:
    """Read a file with an object of names and values, or the file `airflow_settings.yaml` of a project of Astronomer. The extension
    is the format; JSON for any other extension.

    Raises:
        click.ClickException: the file does not contain such an object.
    """
    try:
        text = file.read().decode("utf-8")
        kind = _chosen_format(file.name, None)
        if kind == "yaml":
            import yaml  # lazy import: only for YAML files

            try:
                found = yaml.safe_load(text)
            except yaml.YAMLError as error:
                raise ValueError(" ".join(str(error).split())) from None
        else:
            found = _parse_env(text) if kind == "env" else json.loads(text)
        if isinstance(found, dict) and project_settings.is_project_settings(found):
            found = project_settings.values_of_project(found, what)
    except ValueError as error:
        raise click.ClickException(f"{file.name} cannot be read: {error}") from None
    if not isinstance(found, dict):
        raise click.ClickException(f'{file.name} must contain an object of {what} by name: {{"name": …}}')
    return {str(key): value for key, value in found.items()}


def write_mapping(path: str, values: dict[str, Any], what: str, file_format: str | None = None) -> None:
    """Write an object to a file that only its owner can read, and print that; `-` is stdout."""
    kind = _chosen_format(path, file_format)
    if kind == "yaml":
        import yaml  # lazy import: only for YAML files

        document = yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
    elif kind == "env":
        document = "".join(f"{name}={_line(value)}\n" for name, value in values.items())
    else:
        document = json.dumps(values, ensure_ascii=False, indent=4) + "\n"
    if path == "-":
        click.echo(document, nl=False)
        return
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as target:
        os.fchmod(target.fileno(), 0o600)
        target.write(document)
    click.echo(f"Exported {counted(len(values), what.removesuffix('s'))} to {path} (readable only by you).")


def _chosen_format(path: str, given: str | None) -> str:
    ending = path.rpartition(".")[2].lower()
    return given or {"yaml": "yaml", "yml": "yaml", "env": "env"}.get(ending, "json")


def _parse_env(text: str) -> dict[str, str]:
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        cleaned = line.strip()
        if cleaned and not cleaned.startswith("#"):
            name, equals, value = cleaned.partition("=")
            if not equals or not name.strip():
                raise ValueError(f"line {number} is not of the form NAME=value")
            found[name.strip()] = value.strip()
    return found


def _line(value: Any) -> str:
    """A value on one line."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if "\n" in text:
        raise click.ClickException("a value has several lines, which the env format does not support; use json or yaml")
    return text
