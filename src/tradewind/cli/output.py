"""How results are written: a table for people, or rows for programs (`-o table|json|yaml|plain`).

On a terminal a table is drawn by rich; in a pipe it is aligned text with `|` between, which needs no library.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

Row = Mapping[str, Any]
FORMATS = ("table", "json", "yaml", "plain")

_Command = TypeVar("_Command", bound=Callable[..., Any])


def output_option(command: _Command) -> _Command:
    """`-o/--output`, handed over as `output`."""
    return click.option(
        "-o", "--output", type=click.Choice(FORMATS), default="table", show_default=True, help="How to write the result."
    )(command)


def columns_option(command: _Command) -> _Command:
    """`--columns a,b`, handed over as `columns`."""
    return click.option("--columns", metavar="NAMES", help="Only these columns, commas between.")(command)


def show(rows: Sequence[Row], output: str, columns: Sequence[str], *, chosen: str | None = None, empty: str = "") -> None:
    """Write rows.

    Args:
        columns: of a table; json and yaml carry every field of the rows, unless columns are chosen.
        chosen: what `--columns` said.
        empty: said on stderr when there are no rows and people read along.

    Raises:
        click.UsageError: a chosen column does not exist.
    """
    if chosen is not None:
        columns = _chosen(chosen, rows, columns)
    if output in ("json", "yaml"):
        plain = [{name: row.get(name) for name in columns} if chosen is not None else dict(row) for row in rows]
        sys.stdout.write(_json(plain) if output == "json" else _yaml(plain))
        return
    if not rows and empty:
        click.echo(empty, err=True)
        return
    cells = [[text(row.get(name)) for name in columns] for row in rows]
    if output == "table" and sys.stdout.isatty():
        _rich(columns, cells)
    else:
        sys.stdout.write(aligned(columns, cells, plain=output == "plain"))


def show_one(row: Row, output: str) -> None:
    """Write one thing: its fields below each other, or as JSON or YAML."""
    if output in ("json", "yaml"):
        sys.stdout.write(_json(row) if output == "json" else _yaml(dict(row)))
        return
    width = max((len(name) for name in row), default=0)
    for name, value in row.items():
        click.echo(f"{name.ljust(width)}  {text(value)}".rstrip())


def text(value: Any) -> str:
    """A value in a cell: None is empty, lists have commas, mappings are JSON."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    if isinstance(value, list | tuple):
        return ", ".join(text(item) for item in value)
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False, default=str) if value else ""
    return str(value)


def aligned(columns: Sequence[str], cells: Sequence[Sequence[str]], *, plain: bool) -> str:
    """A table of text; `plain` has blanks between its columns and no rule, for awk and cut."""
    rows = [[_one_line(cell) for cell in row] for row in cells]
    widths = [max([len(name), *(len(row[place]) for row in rows)]) for place, name in enumerate(columns)]
    between = "  " if plain else " | "

    def line(row: Sequence[str]) -> str:
        return between.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n"

    rule = "" if plain else "=+=".join("=" * width for width in widths) + "\n"
    return line(columns) + rule + "".join(line(row) for row in rows)


def _one_line(cell: str) -> str:
    return cell.replace("\r", " ").replace("\n", " ⏎ ")


def _chosen(chosen: str, rows: Sequence[Row], columns: Sequence[str]) -> list[str]:
    from tradewind.model.errors import did_you_mean

    names = [name.strip() for name in chosen.split(",") if name.strip()]
    known = list(dict.fromkeys([*columns, *(rows[0] if rows else ())]))
    for name in names:
        if name not in known:
            raise click.UsageError(f"there is no column {name!r}.{did_you_mean(name, known)} There are: {', '.join(known)}.")
    return names


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n"


def _yaml(value: Any) -> str:
    import yaml  # lazy door: only for -o yaml

    found: str = yaml.safe_dump(json.loads(json.dumps(value, default=str)), sort_keys=False, allow_unicode=True)
    return found


def _rich(columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    from rich.console import Console  # lazy door: 60 ms that only a terminal needs
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold")
    for name in columns:
        table.add_column(name, overflow="fold")
    for row in cells:
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    Console().print(table)


_STYLES = {
    "success": "green",
    "running": "bright_green",
    "failed": "bold red",
    "upstream_failed": "yellow",
    "skipped": "magenta",
}
