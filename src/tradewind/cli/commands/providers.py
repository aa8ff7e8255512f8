"""`tradewind providers …`: list the installed provider packages of Airflow and their contents, and install more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import click

from tradewind.cli.command_groups import CommandGroup
from tradewind.cli.output import Row, output_option, show, show_one
from tradewind.model.errors import NotFound, did_you_mean
from tradewind.provider_packages import installed, offers
from tradewind.provider_packages.installers import InstallerName


@click.group(cls=CommandGroup)
def providers() -> None:
    """List and install provider packages of Airflow."""


def _line(text: Any) -> str:
    """A description on one line, without reStructuredText."""
    return " ".join(str(text or "").translate(str.maketrans("", "", "`_<>")).split())


@providers.command("list")
@output_option
def list_providers(output: str) -> None:
    """List the installed provider packages."""
    rows = [
        {
            "package_name": one.package,
            "version": one.version,
            "description": _line(one.info.get("description")),
            "problem": one.problem,
        }
        for one in installed.providers().values()
    ]
    columns = ("package_name", "version", "description", *(["problem"] if any(row["problem"] for row in rows) else ()))
    show(rows, output, columns, empty="No provider package is installed. Install one: tradewind providers install postgres")


@providers.command()
@click.argument("provider_name")
@click.option("-f", "--full", is_flag=True, help="Show the whole provider info.")
@output_option
def get(provider_name: str, full: bool, output: str) -> None:
    """Show one installed provider package."""
    found = installed.providers()
    one = found.get(provider_name) or found.get(f"apache-airflow-providers-{provider_name}")
    if one is None:
        raise NotFound(f"no provider package {provider_name!r} is installed.{did_you_mean(provider_name, found)}")
    about = {"package_name": one.package, "version": one.version, "description": _line(one.info.get("description"))}
    show_one({**one.info, **about} if full else about, output)


@providers.command()
@click.argument("names", nargs=-1)
@click.option(
    "-r", "--requirement", "files", multiple=True, metavar="FILE", help="Install the packages of a requirements file."
)
@click.option(
    "-c", "--constraint", "constraints", multiple=True, metavar="FILE", help="Constraints file or its URL, such as Airflow's."
)
@click.option("--airflow", metavar="VERSION", help="Airflow version of the stand-in package, such as 2.9.3.")
@click.option(
    "--installer",
    type=click.Choice(["pip", "uv"]),
    help="The program that installs. Default: uv in an environment that uv has made, or without pip; else pip.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be installed.")
def install(
    names: tuple[str, ...],
    files: tuple[str, ...],
    constraints: tuple[str, ...],
    airflow: str | None,
    installer: InstallerName | None,
    dry_run: bool,
) -> None:
    """Install provider packages, without Airflow.

    \b
    tradewind providers install postgres amazon
    tradewind providers install 'http==5.0.0' 'amazon[s3fs]'
    tradewind providers install -r requirements.txt

    A small local package takes the place of `apache-airflow`, which the packages require. A line of a file that cannot be
    installed beside Tradewind is changed or left out, and listed.
    """
    from tradewind.cli.commands import providers_install  # lazy import: only needed to install packages

    providers_install.install(
        names, files, constraints=constraints, airflow=airflow, dry_run=dry_run, wanted_installer=installer
    )


def _hooks() -> Iterator[Row]:
    for hook in offers.hooks().values():
        yield {
            "connection_type": hook.connection_type,
            "class": hook.class_name,
            "package_name": hook.package,
            "hook_name": hook.hook_name,
        }


def _widgets() -> Iterator[Row]:
    for hook in offers.hooks().values():
        for field, about in sorted((hook.form.get("conn-fields") or {}).items()):
            yield {
                "connection_parameter_name": f"extra__{hook.connection_type}__{field}",
                "class": hook.class_name,
                "package_name": hook.package,
                "field_type": about.get("schema", {}).get("type", "unknown"),
            }


def _behaviours() -> Iterator[Row]:
    for hook in offers.hooks().values():
        if "ui-field-behaviour" in hook.form:
            yield {"field_behaviours": hook.connection_type}


def _triggers() -> Iterator[Row]:
    for one in offers.triggers():
        yield {"package_name": one.package, "class": one.class_name, "integration_name": one.integration_name}


def _dialects() -> Iterator[Row]:
    for one in offers.dialects().values():
        yield {"dialect_name": one.name, "class": one.dialect_class_name}


def _decorators() -> Iterator[Row]:
    for name, class_name in sorted(offers.task_decorators().items()):
        yield {"decorator": f"@task.{name}", "class": class_name}


def _asset_uris() -> Iterator[Row]:
    for scheme, handler in sorted(offers.asset_uri_handlers().items()):
        yield {"scheme": scheme, "handler": handler}


def _configs() -> Iterator[Row]:
    for section, about in sorted(offers.config_sections().items()):
        yield {"provider_config": section, "options": sorted(about["options"])}


def _plugins() -> Iterator[Row]:
    for package, name, class_name in offers.plugins():
        yield {"package_name": package, "plugin": name, "class": class_name}


def _names(column: str, read: Callable[[], list[str]]) -> Callable[[], Iterator[Row]]:
    """Rows of one column."""

    def rows() -> Iterator[Row]:
        for name in read():
            yield {column: name}

    return rows


_LISTS: dict[str, tuple[str, Callable[[], Iterator[Row]]]] = {
    "hooks": ("Hooks by connection type.", _hooks),
    "widgets": ("Fields of connection forms.", _widgets),
    "behaviours": ("Connection types whose form differs from the usual one.", _behaviours),
    "triggers": ("Modules of triggers.", _triggers),
    "dialects": ("SQL dialects.", _dialects),
    "decorators": ("Task decorators.", _decorators),
    "links": ("Extra links of operators.", _names("extra_link_class_name", offers.extra_links)),
    "notifications": ("Notifiers.", _names("notification_class_name", offers.notifications)),
    "secrets": ("Secrets backends.", _names("secrets_backend_class_name", offers.secrets_backends)),
    "logging": ("Handlers of remote task logs.", _names("logging_class_name", offers.logging_handlers)),
    "email-backends": ("Functions that send e-mail.", _names("email_backend", offers.email_backends)),
    "filesystems": ("File systems of object storage paths.", _names("filesystem_module", offers.filesystems)),
    "asset-uris": ("Checks of asset URIs by scheme.", _asset_uris),
    "executors": ("Executors.", _names("executor_class_names", offers.executors)),
    "auth-managers": ("Auth managers.", _names("auth_managers_module", offers.auth_managers)),
    "queues": ("Message queues.", _names("queue_class_names", offers.queues)),
    "configs": ("Sections of settings.", _configs),
    "plugins": ("Plugins.", _plugins),
}
"""Command → (help, rows). Columns are Airflow's where Airflow has the command."""


def _command(name: str, text: str, read: Callable[[], Iterator[Row]]) -> None:
    @providers.command(name, help=text)
    @output_option
    def listing(output: str) -> None:
        rows = list(read())
        columns = list(dict.fromkeys(field for row in rows for field in row)) or ["package_name"]
        show(rows, output, columns, empty=f"No installed provider package has {text[0].lower()}{text[1:].rstrip('.')}.")


for _name, (_text, _read) in _LISTS.items():
    _command(_name, _text, _read)


@providers.command("lazy-loaded")
def lazy_loaded() -> None:
    """Print how provider packages are loaded."""
    click.echo("Descriptions of provider packages are read when a command needs them.")
