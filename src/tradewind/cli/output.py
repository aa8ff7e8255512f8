"""Prints results as a table for people, or as rows for programs (`-o table|json|yaml|plain`).

On a terminal rich draws the table; in a pipe the table is aligned text with `|` between columns, which needs no library.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import click

from tradewind.cli import airflow_output

Row = Mapping[str, Any]
FORMATS = ("table", "json", "yaml", "plain")

_Command = TypeVar("_Command", bound=Callable[..., Any])


def output_option(command: _Command) -> _Command:
    """Add `-o/--output`; the command gets it as `output`."""
    return click.option(
        "-o", "--output", type=click.Choice(FORMATS), default="table", show_default=True, help="Output format."
    )(command)


def columns_option(command: _Command) -> _Command:
    """Add `--columns a,b`; the command gets the text as `columns`."""
    return click.option("--columns", metavar="NAMES", help="Show only these columns, separated by commas.")(command)


def show(
    rows: Sequence[Row],
    output: str,
    columns: Sequence[str],
    *,
    chosen: str | None = None,
    known: Collection[str] = (),
    empty: str = "",
) -> None:
    """Print rows.

    Args:
        columns: the columns of a table; json and yaml contain every field of the rows, unless columns are chosen.
        chosen: the value of `--columns`.
        known: columns that repeat what the user has typed: a narrow terminal leaves them out first.
        empty: sentence for stderr if there are no rows and the format is for people.

    Raises:
        click.UsageError: a chosen column does not exist.
    """
    if chosen is not None:
        columns = _chosen(chosen, rows, columns)
    if _shown_as_airflow(rows, output, columns if chosen is not None else None):
        return
    if output in ("json", "yaml"):
        plain = [{name: row.get(name) for name in columns} if chosen is not None else dict(row) for row in rows]
        sys.stdout.write(_json(plain) if output == "json" else _yaml(plain))
        return
    if not rows and empty:
        click.echo(empty, err=True)
        return
    cells = [[text(row.get(name)) for name in columns] for row in rows]
    if output == "table" and on_terminal():
        _rich(columns, cells, known, all_of_them=chosen is not None)
    else:
        sys.stdout.write(aligned(columns, cells, plain=output == "plain"))


def _shown_as_airflow(rows: Sequence[Row], output: str, chosen: Sequence[str] | None) -> bool:
    """Print the rows as Airflow does, if the command was given as a command of Airflow that prints rows."""
    if not airflow_output.is_airflow():
        return False
    command = click.get_current_context().command_path.partition(" ")[2]
    found = airflow_output.rows_of(command, rows, chosen)
    if found is None:
        return False
    sys.stdout.write(airflow_output.text_of(found, output, aligned))
    return True


def on_terminal() -> bool:
    """Whether stdout is a terminal."""
    return sys.stdout.isatty()


def preview_format() -> str:
    """The output format of rows that are listed above a question."""
    return "table" if on_terminal() else "plain"


def show_one(row: Row, output: str) -> None:
    """Print one object: a line for each field, or as JSON or YAML."""
    if output != "table" and _shown_as_airflow([row], output, None):
        return
    if output in ("json", "yaml"):
        sys.stdout.write(_json(row) if output == "json" else _yaml(dict(row)))
        return
    width = max((len(name) for name in row), default=0)
    for name, value in row.items():
        click.echo(f"{name.ljust(width)}  {text(value)}".rstrip())


def text(value: Any) -> str:
    """The text of a table cell: None is empty, a list is separated by commas, a mapping is JSON."""
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
    """A table as text; with `plain` spaces between the columns and no rule, for awk and cut."""
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
    import yaml  # lazy import: only for -o yaml

    found: str = yaml.safe_dump(json.loads(json.dumps(value, default=str)), sort_keys=False, allow_unicode=True)
    return found


def _rich(columns: Sequence[str], cells: Sequence[Sequence[str]], known: Collection[str], *, all_of_them: bool) -> None:
    from rich.box import SIMPLE_HEAD  # lazy import: takes 60 ms, only needed on a terminal
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from tradewind.cli.table_layout import GAP, fit

    width = Console().width
    shown = fit(columns, cells, width, known=known, all_of_them=all_of_them, measure=cell_len)
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0), header_style="bold")
    for name, own in zip(shown.columns, shown.widths, strict=True):
        table.add_column(name, no_wrap=own is None, overflow="fold", width=own, min_width=None if own else cell_len(name))
    for row in shown.cells:
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    # ids that do not fit are not cut: they wrap at the edge of the terminal and can still be copied
    Console(width=max(width, shown.width)).print(table, crop=False)
    notes = [f"Times are in {shown.zone}."] if shown.zone else []
    notes += [f"Columns not shown: {', '.join(shown.left_out)} (-o json shows all)."] if shown.left_out else []
    if notes:
        click.echo(" ".join(notes), err=True)


_STYLES = {
    "success": "green",
    "running": "bright_green",
    "failed": "bold red",
    "upstream_failed": "yellow",
    "skipped": "magenta",
}
