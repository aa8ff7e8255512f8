"""`tradewind config …`: list and explain settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tradewind.cli.airflow_output import config_text, is_airflow
from tradewind.cli.command_groups import LazyCommand, LazyGroup
from tradewind.cli.output import columns_option, output_option, show, show_one
from tradewind.model.errors import ConfigError, did_you_mean
from tradewind.settings import OPTIONS, load

if TYPE_CHECKING:
    from tradewind.settings import Explanation


class Config(LazyGroup):
    lazy = {
        "lint": LazyCommand("config_airflow:lint", "List Airflow settings that have no effect in Tradewind."),
        "airflow": LazyCommand("config_airflow:airflow_settings", "Show for each setting of Airflow how Tradewind uses it."),
        "update": LazyCommand("config_airflow:update", "Convert an airflow.cfg into tradewind.toml."),
    }


@click.group(cls=Config)
def config() -> None:
    """Show the settings and the source of each value."""


def _fields(one: Explanation) -> dict[str, Any]:
    section, _, option = one.name.partition(".")
    return {
        "name": one.name,
        "section": section,
        "option": option,
        "value": one.value,
        "source": one.source,
        "default": one.default,
        "unit": one.unit,
        "environment": one.env,
        "airflow": list(one.airflow),
        "shadowed": list(one.shadowed),
        "effective": one.effective,
        "description": one.description,
    }


@config.command("list")
@click.option("--section", help="Only this section.")
@click.option("--changed", is_flag=True, help="Only settings that differ from their default.")
@click.option("-a", "--defaults", is_flag=True, help="Show the defaults.")
@click.option("-d", "--include-descriptions", is_flag=True, help="Show the descriptions.")
@click.option("-V", "--include-env-vars", is_flag=True, help="Show the environment variables.")
@click.option("-s", "--include-sources", is_flag=True, hidden=True)
@columns_option
@output_option
def list_settings(
    section: str | None,
    changed: bool,
    defaults: bool,
    include_descriptions: bool,
    include_env_vars: bool,
    include_sources: bool,
    columns: str | None,
    output: str,
) -> None:
    """List all settings."""
    settings = load()
    sections = sorted({option.section for option in OPTIONS})
    if section is not None and section not in sections:
        raise ConfigError(
            f"there is no section {section!r}.{did_you_mean(section, sections)} There are: {', '.join(sections)}."
        )
    rows = [
        _fields(one)
        for one in settings.listing()
        if (section is None or one.name.startswith(f"{section}.")) and not (changed and one.source == "default")
    ]
    if is_airflow() and output == "table" and columns is None:
        click.echo(config_text(rows), nl=False)
        return
    more = {"default": defaults, "environment": include_env_vars, "description": include_descriptions}
    shown = ("name", "value", "unit", "source", *(name for name, wanted in more.items() if wanted))
    show(rows, output, shown, chosen=columns, empty="Every setting has its default value.")
    if settings.unused and output == "table":
        click.echo(f"Set, but without effect in Tradewind: {', '.join(settings.unused)}", err=True)


@config.command()
@click.argument("name", metavar="SECTION.OPTION")
@output_option
def explain(name: str, output: str) -> None:
    """Show one setting: its value, the source of the value, and its meaning."""
    found = load().explain(name.lower())
    if output != "table":
        show_one(_fields(found), output)
        return
    unit = f" {found.unit}" if found.unit and found.value != "none" else ""
    click.echo(f"{found.name} = {found.value}{unit}")
    click.echo(f"  {found.description}")
    click.echo(f"  source       {found.source}")
    if found.shadowed:
        click.echo(f"  overrides    {', '.join(found.shadowed)}")
    if found.effective is not None:
        click.echo(f"  effective    {found.effective} (scaled by core.safety_net_scale)")
    click.echo(f"  default      {found.default}")
    click.echo(f"  set with     {found.env}, or in tradewind.toml")
    if found.airflow:
        click.echo(f"  in Airflow   {', '.join(found.airflow)}")


@config.command("get-value")
@click.argument("section")
@click.argument("option", required=False)
def get_value(section: str, option: str | None) -> None:
    """Print the value of one setting, given as SECTION OPTION or SECTION.OPTION. Airflow's names are accepted, too."""
    from tradewind.settings.options import BY_AIRFLOW_NAME, BY_NAME

    name = (section if option is None else f"{section}.{option}").lower()
    settings = load()
    if name not in BY_NAME and name in BY_AIRFLOW_NAME:
        name = BY_AIRFLOW_NAME[name].name
    given = settings.airflow.for_user_code().get(name) if name not in BY_NAME else None
    click.echo(settings.explain(name).value if given is None else given)
