"""`tradewind airflow …`, and the command `airflow` of the stand-in: the command line of Airflow 1.10, 2 and 3."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from tradewind.cli.airflow_command_table import FORMS
from tradewind.cli.airflow_output import IS_AIRFLOW
from tradewind.cli.airflow_translation import Translation, translate
from tradewind.model.errors import WrongArgument

OLD_DAG_LIST = f"\n\n{'-' * 67}\nDAGS\n{'-' * 67}"
"""The heading that `airflow list_dags` of Airflow 1.10 prints above the ids. Scripts expect it and remove it."""


@click.command(
    "airflow",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def airflow(context: click.Context, words: tuple[str, ...]) -> object:
    """Execute a command line of Airflow 1.10, 2 or 3.

    Each command of Airflow is translated into a command of Tradewind. If the words differ, a line on stderr names the command.
    Options keep their names of all generations (`--start_date`, `-sd`).
    """
    if not words or words[0] in ("-h", "--help", "help"):
        click.echo(overview())
        return 0
    if list(words) == ["version"]:
        from tradewind.airflow.names import VERSION  # lazy import: the table of names is large
        from tradewind.provider_packages.environment import installed_version

        click.echo(installed_version() or VERSION)
        return 0
    try:
        done = translate(words, options_of)
    except WrongArgument as error:
        own = own_command(words)
        sentence = f"airflow has no command {own!r}; Tradewind has it: tradewind {own}" if own else str(error)
        raise click.UsageError(sentence, context) from None
    for line in messages(done):
        click.echo(line, err=True)
    if done.form.unneeded:
        return 0
    if done.form.airflow == "list_dags":
        _list_dag_ids()
        return 0
    from tradewind.cli.main import cli

    parent = context.find_root()
    with cli.make_context("tradewind", done.words, parent=None, help_option_names=["-h", "--help"]) as root:
        root.meta.update(parent.meta)
        root.meta[IS_AIRFLOW] = True
        return cli.invoke(root)


def messages(done: Translation) -> list[str]:
    """The messages about a translated command: its words in Tradewind if they differ, and options without effect."""
    form = done.form
    named = (
        [] if form.unneeded or form.airflow == form.tradewind else [f"`airflow {form.shown}` runs: tradewind {form.tradewind}"]
    )
    return [*named, *(f"{note}." for note in done.notes)]


def own_command(words: Sequence[str]) -> str:
    """The words of the command of Tradewind with which a command line begins; empty: there is none."""
    from tradewind.cli.main import cli

    command: click.Command | None = cli
    with click.Context(cli, info_name="tradewind") as context:
        for count, word in enumerate(words, start=1):
            command = command.get_command(context, word) if isinstance(command, click.Group) else None
            if command is None:
                return ""
            if not isinstance(command, click.Group):
                return " ".join(words[:count])
    return ""


def options_of(path: str) -> dict[str, int]:
    """The options of a command of Tradewind: name → how many words follow it."""
    from tradewind.cli.main import cli

    command: click.Command | None = cli
    with click.Context(cli, info_name="tradewind") as context:
        for word in path.split():
            command = command.get_command(context, word) if isinstance(command, click.Group) else None
    if command is None:
        raise LookupError(f"the table names a command that does not exist: {path}")
    from tradewind.cli.command_groups import add_folder_options, add_verbose_option

    add_verbose_option(command)
    add_folder_options(command)
    found = {"-h": 0, "--help": 0}
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            count = 0 if parameter.is_flag or parameter.count else parameter.nargs
            found.update(dict.fromkeys((*parameter.opts, *parameter.secondary_opts), count))
    return found


def _list_dag_ids() -> None:
    from tradewind.cli.common import reading

    with reading() as store:
        click.echo("\n".join([OLD_DAG_LIST, *sorted(plan.dag_id for plan in store.plans() if plan.is_active)]))


def overview() -> str:
    """The commands of Airflow and those of Tradewind, for `airflow --help`."""
    width = max(len(form.shown) for form in FORMS) + 2
    lines = ["Commands of Airflow 1.10, 2 and 3, and the command of Tradewind that executes each of them:", ""]
    for form in FORMS:
        lines.append(f"  {form.shown:<{width}}{f'tradewind {form.tradewind}' if form.tradewind else f'(none) {form.sentence}'}")
    return "\n".join([*lines, "", "Options: tradewind COMMAND --help"])


def main(arguments: Sequence[str] | None = None) -> int:
    """The console script `airflow` of the stand-in. If a genuine Airflow is in this environment, its command is executed. A
    stand-in is never installed beside a genuine Airflow, but a later installation may add one.
    """
    from tradewind.cli.main import main as run
    from tradewind.provider_packages.environment import genuine_airflow

    words = list(sys.argv[1:] if arguments is None else arguments)
    if genuine_airflow():
        os.execv(sys.executable, [sys.executable, "-m", "airflow", *words])
    return run(["airflow", *words])
