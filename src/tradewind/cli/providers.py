"""`tradewind providers …`: which of Airflow's provider packages are installed, by what they say of themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import click

from tradewind.cli.lazy import HelpfulGroup
from tradewind.cli.output import output_option, show, show_one
from tradewind.model.errors import NotFound, did_you_mean

GROUP = "apache_airflow_provider"
NOT_LOADED = (
    "Operators of these packages are written for Airflow and are not loaded here; their place takes tradewind.operators."
)

_KINDS = {
    "hooks": ("connection-types", "Hooks and their types of connections."),
    "widgets": ("connection-types", "Types of connections, which have forms in Airflow's pages."),
    "behaviours": ("connection-types", "Types of connections, whose forms differ in Airflow's pages."),
    "links": ("extra-links", "Links that operators show."),
    "triggers": ("triggers", "Triggers."),
    "executors": ("executors", "Executors."),
    "logging": ("logging", "Handlers of remote logs."),
    "secrets": ("secrets-backends", "Backends of secrets."),
    "notifications": ("notifications", "Notifiers."),
    "queues": ("queues", "Queues of messages."),
    "configs": ("config", "Sections of settings."),
    "auth-managers": ("auth-managers", "Managers of logins."),
}


@click.group(cls=HelpfulGroup)
def providers() -> None:
    """Airflow's provider packages that are installed beside us, and what they say they bring."""


def installed() -> Iterator[dict[str, Any]]:
    """What each package says: name, version, and its own description, which is a function of it."""
    from importlib.metadata import entry_points  # lazy door: only whoever asks for packages needs it

    for entry in sorted(entry_points(group=GROUP), key=lambda one: one.dist.name if one.dist is not None else one.name):
        package = entry.dist.name if entry.dist is not None else entry.name
        try:
            said: dict[str, Any] = dict(entry.load()())
            problem = None
        except Exception as error:  # somebody else's code
            said, problem = {}, f"{type(error).__name__}: {error}"
        version = entry.dist.version if entry.dist is not None else None
        yield {
            "package_name": package,
            "version": version,
            "description": _line(said.get("description")),
            "info": said,
            "problem": problem,
        }


def _line(text: Any) -> str:
    return " ".join(str(text or "").replace("`", "").split())


@providers.command("list")
@output_option
def list_providers(output: str) -> None:
    """The packages."""
    rows = [{name: value for name, value in one.items() if name != "info"} for one in installed()]
    show(rows, output, ("package_name", "version", "description"), empty="No provider package of Airflow is installed.")
    if rows and output == "table":
        click.echo(NOT_LOADED, err=True)


@providers.command()
@click.argument("provider_name")
@click.option("-f", "--full", is_flag=True, help="All that it says of itself.")
@output_option
def get(provider_name: str, full: bool, output: str) -> None:
    """One package."""
    found = {one["package_name"]: one for one in installed()}
    if provider_name not in found:
        raise NotFound(f"no provider package {provider_name!r} is installed.{did_you_mean(provider_name, found)}")
    one = found[provider_name]
    show_one(
        {**one["info"], **one} if full else {name: one[name] for name in ("package_name", "version", "description")}, output
    )


def _command(name: str, key: str, text: str) -> Callable[..., None]:
    @providers.command(name, help=text)
    @output_option
    def listing(output: str) -> None:
        rows = []
        for one in installed():
            for item in one["info"].get(key) or ():
                about = item if isinstance(item, dict) else {"name": item}
                rows.append({"package_name": one["package_name"], **about})
        columns = list(dict.fromkeys(field for row in rows for field in row)) or ["package_name"]
        show(
            rows,
            output,
            columns,
            empty=f"No installed provider package of Airflow has {text[0].lower()}{text[1:].rstrip('.')}.",
        )

    return listing


for _name, (_key, _text) in _KINDS.items():
    _command(_name, _key, _text)


@providers.command("lazy-loaded")
def lazy_loaded() -> None:
    """Always no: descriptions are read when they are asked for, and nothing else is loaded."""
    click.echo("Descriptions of provider packages are read when they are asked for; nothing of them is loaded otherwise.")
