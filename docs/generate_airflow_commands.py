"""Writes `reference/airflow-commands.md` from the table of Airflow's commands.

python docs/generate_airflow_commands.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tradewind.cli.airflow_command_table import FORMS, OptionRule

PAGE = Path(__file__).parent / "reference" / "airflow-commands.md"

INTRODUCTION = """\
# Commands of Airflow

<!-- Written by docs/generate_airflow_commands.py from tradewind/cli/airflow_command_table.py. -->

`tradewind airflow …` executes the command lines of Airflow 1.10, 2 and 3: `tradewind airflow list_dags`. The stand-in that
`tradewind providers install` installs ([provider packages](../how-to/use-provider-packages.md)) also brings the command `airflow`,
so that scripts need no change. A line on stderr names our command where the words differ. Results on stdout stay as scripts read
them.

Options have the names of all generations: `--start_date` and `--start-date`, `-sd` and `--subdir`, abbreviated as Airflow's parser
allows. The columns of the table: a command of Airflow, the generations that have it, the command of Tradewind, and options that
are different.
"""


def spelling(rule: OptionRule) -> str:
    """One rule for an option, in words."""
    names = " ".join(f"`{name}`" for name in rule.names)
    if rule.refused is not None:
        return f"{names} is refused: {rule.refused}"
    if rule.to is not None:
        return f"{names} → {'an argument' if rule.to == '{}' else f'`{rule.to}`'}"
    return f"{names} has no effect" + (f": {rule.dropped}" if rule.dropped else "")


def rows() -> Iterator[str]:
    """The lines of the table."""
    for form in FORMS:
        generations = f"{form.since}" if form.since == form.until else f"{form.since}–{form.until}"
        ours = f"`tradewind {form.tradewind}`" if form.tradewind else ""
        text = form.sentence or "; ".join(spelling(rule) for rule in form.options)
        yield f"| `{form.shown}` | {generations} | {ours} | {text.replace('|', chr(92) + '|')} |"


def page() -> str:
    """The text of the page."""
    return "\n".join([INTRODUCTION, "| Airflow | generations | Tradewind | different |", "|---|---|---|---|", *rows(), ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
