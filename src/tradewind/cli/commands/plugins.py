"""`tradewind plugins`: the plugins of the plugins folder and of installed packages, as the parser found them."""

from __future__ import annotations

import json
from typing import Any

import click

from tradewind.cli.common import reading
from tradewind.cli.output import columns_option, output_option, show
from tradewind.settings import load

_BUNDLE = "plugins"
_COLUMNS = ("name", "source", "macros", "timetables", "recorded_only")


@click.command()
@columns_option
@output_option
def plugins(columns: str | None, output: str) -> int:
    """List the plugins that the parser found. The exit code is 1 if a plugin cannot be loaded."""
    settings = load()
    with reading(settings) as store:
        found: list[dict[str, Any]] = json.loads(store.plugins())
        broken = [view for view in store.import_errors(limit=None).rows if view.bundle_name == _BUNDLE]
    show(
        found,
        output,
        _COLUMNS,
        chosen=columns,
        empty=f"The parser has found no plugins in {settings.paths.plugins} and none in installed packages.",
    )
    for row in found if output == "table" else ():
        if row.get("recorded_only"):
            click.echo(f"{row['name']}: these parts have no effect yet: {', '.join(row['recorded_only'])}", err=True)
    for view in broken:
        click.echo(f"{view.filename} cannot be loaded: {view.message}", err=True)
    return 1 if broken else 0
