"""`tradewind variables …`. Values are encrypted in the database and shown only on request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from tradewind.cli.airflow_output import is_airflow, say
from tradewind.cli.command_groups import CommandGroup
from tradewind.cli.common import command_client, reading
from tradewind.cli.completers import complete_variables
from tradewind.cli.data_files import format_option, read_mapping, write_mapping
from tradewind.cli.lost_database import database_exists
from tradewind.cli.output import output_option, show
from tradewind.model.counts import counted
from tradewind.model.errors import Conflict, NotFound, did_you_mean
from tradewind.settings import Settings, load

if TYPE_CHECKING:
    from tradewind.model.rows import VariableRow
    from tradewind.store.port import Reader


@click.group(cls=CommandGroup)
def variables() -> None:
    """Manage variables: values that tasks read by name."""


def plain_values(settings: Settings, rows: list[VariableRow]) -> dict[str, str]:
    """The decrypted values, by key."""
    from tradewind.store.crypto import open_vault

    if not any(row.is_encrypted for row in rows):
        return {row.key: row.value.decode() for row in rows}
    vault = open_vault(settings.secrets.fernet_key, settings.paths.fernet_key)
    return {
        row.key: vault.decrypt(row.value.decode(), f"variable {row.key!r}") if row.is_encrypted else row.value.decode()
        for row in rows
    }


def _find(store: Reader, key: str) -> VariableRow | None:
    return store.variable(key)


@variables.command("list")
@click.option("--show-values", is_flag=True, help="Decrypt and show the values.")
@click.option("--hide-sensitive", is_flag=True, help="With --show-values: hide values whose key looks like a secret.")
@output_option
def list_variables(show_values: bool, hide_sensitive: bool, output: str) -> None:
    """List all stored variables. Their values are shown only with --show-values.

    Variables of the environment (AIRFLOW_VAR_NAME) are named below the list. Those of a secrets backend are not listed.
    """
    from tradewind.api.masking import masked_text
    from tradewind.sdk.variables import VARIABLE_PREFIXES, in_environment

    settings = load()
    with reading(settings) as store:
        rows = store.variables()
    found: list[dict[str, Any]] = [{"key": row.key, "description": row.description} for row in rows]
    columns = ["key", "description"]
    if show_values:
        values = plain_values(settings, rows)
        for row in found:
            value = values[row["key"]]
            row["val"] = masked_text(value, row["key"]) if hide_sensitive else value
        columns = ["key", "val", "description"]
    show(found, output, columns, empty="There are no variables in the database.")
    if output == "table" and (names := in_environment(VARIABLE_PREFIXES)):
        click.echo(f"Variables of the environment: {', '.join(names)}", err=True)


@variables.command()
@click.argument("key", shell_complete=complete_variables)
@click.option("-d", "--default", help="Value to print if the variable does not exist.")
@click.option("-j", "--json", "as_json", is_flag=True, help="Check that the value is JSON.")
def get(key: str, default: str | None, as_json: bool) -> None:
    """Print the value of one variable, as tasks read it: from the secrets backend, the environment or the database."""
    from tradewind.sdk.variables import variable_outside_database

    value, exists = default, True
    outside = variable_outside_database(key)
    if outside is not None:
        value, place = outside
        click.echo(f"The value is from {place}.", err=True)
    else:
        settings = load()
        with reading(settings) as store:
            row = _find(store, key)
            if row is None and default is None and is_airflow():
                raise NotFound(f"Variable {key} does not exist")
            if row is None and default is None:
                raise NotFound(f"there is no variable {key!r}.{did_you_mean(key, [one.key for one in store.variables()])}")
        exists = row is not None
        if row is not None:
            value = plain_values(settings, [row])[key]
    if as_json and exists:
        try:
            value = json.dumps(json.loads(value or ""), ensure_ascii=False)
        except ValueError as error:
            raise click.ClickException(f"the variable {key!r} is not JSON: {error}") from None
    click.echo(value)


@variables.command("set")
@click.argument("key")
@click.argument("value")
@click.option("-j", "--json", "as_json", is_flag=True, help="Check that the value is JSON.")
@click.option("--description", help="Description.")
def set_variable(key: str, value: str, as_json: bool, description: str | None) -> None:
    """Create or change a variable."""
    from tradewind.wire import commands as c

    if as_json:
        try:
            json.loads(value)
        except ValueError as error:
            raise click.BadParameter(f"not JSON: {error}", param_hint="VALUE") from None
    command_client().call(c.SetVariable(key, value, description))
    say(f"Variable {key} is set.", f"Variable {key} created")
    _warn_if_hidden(key)


def _warn_if_hidden(key: str) -> None:
    """Print that tasks do not read a stored variable, because another place has one with this key."""
    from tradewind.sdk.variables import variable_outside_database

    outside = variable_outside_database(key)
    if outside is not None:
        click.echo(f"Tasks do not read this value: {outside[1]} has another one, and it is read first.", err=True)


@variables.command()
@click.argument("key", shell_complete=complete_variables)
def delete(key: str) -> None:
    """Delete a variable."""
    from tradewind.wire import commands as c

    command_client().call(c.DeleteVariable(key))
    say(f"Variable {key} is deleted.", f"Variable {key} deleted")


@variables.command("import")
@click.argument("file", type=click.File("rb"))
@click.option(
    "-a",
    "--action-on-existing-key",
    "action",
    type=click.Choice(["overwrite", "fail", "skip"]),
    default="overwrite",
    show_default=True,
    help="What to do with existing variables.",
)
def import_variables(file: BinaryIO, action: str) -> None:
    """Import variables from a .json, .yaml or .env file: {"key": value} or {"key": {"value": …, "description": …}}."""
    from tradewind.wire import commands as c

    found = read_mapping(file, "variables")
    settings = load()
    known: set[str] = set()
    if database_exists(settings):
        with reading(settings) as store:
            known = {row.key for row in store.variables()}
    clash = sorted(known & set(found))
    if clash and action == "fail":
        raise Conflict(f"these variables already exist: {', '.join(clash)}; nothing was imported")
    client = command_client(settings)
    done = 0
    for key, value in found.items():
        if key in known and action == "skip":
            continue
        description = None
        if isinstance(value, dict) and "value" in value and set(value) <= {"value", "description"}:
            description, value = value.get("description"), value["value"]
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        client.call(c.SetVariable(key, text, description))
        done += 1
    say(
        f"Imported {done} of {counted(len(found), 'variable')}.",
        f"{done} of {len(found)} variables successfully updated.",
    )


@variables.command("export")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True))
@format_option
def export_variables(file: str, file_format: str | None) -> None:
    """Export all variables, decrypted, to a file that only you can read; `-` is stdout."""
    settings = load()
    with reading(settings) as store:
        rows = store.variables()
    values = plain_values(settings, rows)
    as_text = file_format == "env" or file.endswith(".env")
    found: dict[str, Any] = {}
    for row in rows:
        value = values[row.key] if as_text else _from_json(values[row.key])
        found[row.key] = {"value": value, "description": row.description} if row.description and not as_text else value
    write_mapping(file, found, "variables", file_format)


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
