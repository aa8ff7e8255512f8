"""The commands about bundles, the places that DAG files come from."""

from __future__ import annotations

import click

from tradewind.cli.command_groups import CommandGroup
from tradewind.cli.output import output_option, show
from tradewind.settings import load

_COLUMNS = ("name", "kind", "address", "ref", "version", "refreshed", "problem")
_MORE = ("failing_since", "to_do", "warnings")
"""Columns that are shown only if a bundle has a value in them."""


@click.group(cls=CommandGroup)
def bundles() -> None:
    """Show the bundles that DAG files come from."""


@bundles.command("list")
@output_option
def list_bundles(output: str) -> None:
    """List the configured bundles with their newest version on this machine. The exit code is 1 if a bundle's last fetch failed."""
    from tradewind.bundles.fetch_messages import state_of
    from tradewind.bundles.report import advice, failing_since
    from tradewind.bundles.specs import read_bundles
    from tradewind.cli.compose.bundles import DAGS_BUNDLE, versioned_bundles
    from tradewind.model.moments import iso

    settings = load()
    versioned, rows = versioned_bundles(settings), []
    for spec in read_bundles(settings.bundles.list, DAGS_BUNDLE):
        row = {"name": spec.name, "kind": spec.kind, "address": spec.place or spec.conn_id or settings.paths.dags}
        if spec.name in versioned:
            state = state_of(versioned[spec.name].folder)
            row |= {"ref": spec.ref, "version": versioned[spec.name].newest_version(), "problem": state.problem}
            row["refreshed"] = iso(state.refreshed_at) or "" if state.refreshed_at else ""
            row["warnings"] = "; ".join(state.warnings)
            row["failing_since"] = failing_since(versioned[spec.name]) or ""
            row["to_do"] = advice(state.problem, spec.conn_id) if state.problem else ""
        rows.append(dict.fromkeys([*_COLUMNS, *_MORE], "") | row)
    show(rows, output, (*_COLUMNS, *(name for name in _MORE if any(row[name] for row in rows))))
    if any(row["problem"] for row in rows):
        raise SystemExit(1)
