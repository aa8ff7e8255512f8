"""Commands of Airflow that Tradewind does not have under this name. Each says what to use instead."""

from __future__ import annotations

import click

from tradewind.cli.airflow_command_table import FORMS
from tradewind.cli.airflow_translation import find_form
from tradewind.model.errors import NotYetSupported


def command_of_airflow(name: str) -> click.Command | None:
    """A command that fails with the name of the command to use, or with the reason why there is none. None: the name is not a
    command of Airflow.
    """
    if not any(form.airflow.partition(" ")[0] == name for form in FORMS):
        return None

    @click.command(
        name, hidden=True, add_help_option=False, context_settings={"ignore_unknown_options": True, "allow_extra_args": True}
    )
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    @click.pass_context
    def refuse(context: click.Context, words: tuple[str, ...]) -> None:
        form, _ = find_form([name, *words])
        if form.tradewind:
            raise click.UsageError(f"{form.shown!r} is a name of Airflow; use: tradewind {form.tradewind}", context.parent)
        raise NotYetSupported(form.sentence)

    refuse.help = "A command of Airflow: the error says what to use instead."
    return refuse
