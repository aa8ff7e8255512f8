"""`tradewind doctor`: examines DAG files or requirements files that were written for Airflow."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from tradewind.bundles.fetch_messages import FetchAnswer, FetchRequest
from tradewind.bundles.specs import BundleSpec
from tradewind.cli.commands.providers_install import read_requirements
from tradewind.cli.compose.bundles import configured_bundles, read_bundles, versioned_bundles
from tradewind.cli.compose.parser import parser_config
from tradewind.cli.lookups import from_database
from tradewind.cli.output import on_terminal, show
from tradewind.doctor.bundle_report import (
    UNREADABLE,
    BundleReport,
    bundle_lines,
    look,
    report_on_bundles,
    what_happens_to,
)
from tradewind.doctor.examine import Examined, examine, proposed, same_meaning
from tradewind.doctor.file_report import CANNOT
from tradewind.doctor.requirements_report import report_on_requirements
from tradewind.doctor.summary import json_rows, summary, table_rows
from tradewind.model.counts import counted
from tradewind.model.errors import NotFound, TradewindError, WrongArgument
from tradewind.parser.config import ParserConfig
from tradewind.parser.parse_once import Answerer
from tradewind.provider_packages import installed, requirements
from tradewind.settings import Settings, load
from tradewind.wire.messages import Failure, GetConnection, Lookup, RunnerAnswer, Value

_FORMATS = ("summary", "table", "json", "yaml", "plain")
_FILE_COLUMNS = ("file", "verdict", "airflow", "dags", "providers", "connections", "note")
_REQUIREMENT_COLUMNS = ("requirement", "verdict", "text")
_PREFIX = "apache-airflow-providers-"


@click.command()
@click.argument("path", type=click.Path(exists=True), required=False)
@click.option("--fix", is_flag=True, help="Replace old names and arguments in the files, after a diff and a question.")
@click.option("-y", "--yes", is_flag=True, help="With --fix: do not ask.")
@click.option("-o", "--output", type=click.Choice(_FORMATS), default="summary", show_default=True, help="Output format.")
def doctor(path: str | None, fix: bool, yes: bool, output: str) -> int:
    """Examine a folder of DAG files, one DAG file, or a requirements file. Without PATH: the bundles of the settings, or the
    DAG folder if there are none.

    Nothing is installed and nothing is changed without --fix. Each file is loaded by a child process of the parser, as in
    operation. The exit code is 1 if a file cannot be loaded. If `bundles.list` is set, each repository and object store is
    asked for its newest version; the exit code is also 1 if one cannot be read.
    """
    if yes and not fix:
        raise WrongArgument("--yes has an effect only with --fix.")
    if path is None:
        if fix:
            raise WrongArgument("--fix needs a folder or a file.")
        settings = load()
        if settings.bundles.list:
            return _examine_bundles(settings, None, output)
        path = settings.core.dags_folder
        if not os.path.isdir(path):
            raise NotFound(f"the DAG folder {path} does not exist. Give a folder: tradewind doctor FOLDER")
    if os.path.isfile(path) and not path.endswith((".py", ".zip")):
        if fix:
            raise WrongArgument("--fix changes DAG files, not requirements files.")
        return _examine_requirements(path, output)
    settings = load()
    config, files = _config_and_files(settings, path)
    present = {name.removeprefix(_PREFIX) for name in installed.providers()}

    def answer(question: Lookup) -> RunnerAnswer:
        return from_database(settings, question)

    found = examine(config, present, files, answer)
    if not found.reports:
        raise NotFound(
            f"there is no DAG file in {path!r}: no Python file there contains the words dag and airflow or tradewind."
        )
    if fix:
        return _fix(config, found, present, answer, ask=not yes)
    _print(settings, found, present, path, output)
    bad = 0
    if output == "summary" and settings.bundles.list:
        click.echo()
        bad = _examine_bundles(settings, os.path.abspath(path), output)
    return 1 if bad or any(one.verdict == CANNOT for one in found.reports) else 0


def _examine_bundles(settings: Settings, path: str | None, output: str) -> int:
    """Report on the bundles of the settings, and on what they do with the examined folder."""
    specs, versioned = configured_bundles(settings), versioned_bundles(settings)

    def look_at(spec: BundleSpec) -> FetchAnswer:
        connection: dict[str, Any] = {}
        if spec.conn_id:
            answer = from_database(settings, GetConnection(op=0, conn_id=spec.conn_id))
            if isinstance(answer, Failure):
                return FetchAnswer(problem=answer.reason)
            if isinstance(answer, Value) and answer.found:
                connection = dict(answer.value)
            elif spec.needs_connection:
                return FetchAnswer(problem=f"there is no connection {spec.conn_id!r}; add it: tradewind connections add")
        return look(FetchRequest(versioned[spec.name].folder, spec, connection=connection, looks_only=True))

    folders = read_bundles(settings)
    reports = list(
        report_on_bundles(specs, look_at, lambda spec: versioned[spec.name].newest_version(), lambda spec: folders[spec.name])
    )
    if output == "summary":
        for line in bundle_lines(reports):
            click.echo(line)
        if path is not None:
            click.echo(what_happens_to(path, settings.paths.dags, [(one.name, folders[one.name]) for one in specs]))
    else:
        show([one._asdict() for one in reports], output, BundleReport._fields)
    return 1 if any(one.verdict == UNREADABLE for one in reports) else 0


def _config_and_files(settings: Settings, path: str) -> tuple[ParserConfig, list[str] | None]:
    """The config of a parser for the folder, and the names of the files to examine (None: all)."""
    path = os.path.abspath(path)
    home = os.path.abspath(settings.core.dags_folder)
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    inside = path == home or path.startswith(os.path.join(home, ""))
    config = parser_config(settings, home if inside else folder, "dags-folder")
    if os.path.isfile(path):
        return config, [os.path.relpath(path, config.folder)]
    if not inside or path == home:
        return config, None
    return msgspec.structs.replace(config, folder=folder), None


def _print(settings: Settings, found: Examined, present: Collection[str], path: str, output: str) -> None:
    if output == "summary":
        used = {name for one in found.reports for name in one.connections}
        missing = {name for name in used if not _is_defined(settings, name)}
        for line in summary(found.reports, present, missing, path):
            click.echo(line)
    elif output in ("json", "yaml"):
        show(json_rows(found.reports), output, _FILE_COLUMNS)
    else:
        show(table_rows(found.reports), output, _FILE_COLUMNS)


def _is_defined(settings: Settings, conn_id: str) -> bool:
    """Whether the environment or the database has a connection with this id."""
    if any(f"{prefix}{conn_id.upper()}" in os.environ for prefix in ("TRADEWIND_CONN_", "AIRFLOW_CONN_")):
        return True
    answer = from_database(settings, GetConnection(op=0, conn_id=conn_id))
    return isinstance(answer, Value) and answer.found


def _examine_requirements(path: str, output: str) -> int:
    adapted = read_requirements([path])
    listed = adapted.parsed()
    rows = [one._asdict() for one in report_on_requirements(listed, adapted.changes)]
    if output not in ("summary", "table"):
        show(rows, output, _REQUIREMENT_COLUMNS)
        return 0
    show(rows, "table", _REQUIREMENT_COLUMNS, empty=f"{path} has no requirements.")
    try:
        version = requirements.wanted_airflow(listed)
    except TradewindError as error:
        click.echo(f"\nCannot install: {error}")
        return 1
    click.echo(f"\nInstall them: tradewind providers install -r {path} (the stand-in says that it is Airflow {version})")
    return 0


# --- fix --------------------------------------------------------------------------------------------------------------


def _fix(config: ParserConfig, found: Examined, present: Collection[str], answer: Answerer, *, ask: bool) -> int:
    """Show the changes, write them, load the files again, and restore those whose DAGs have changed."""
    changes = proposed(config.folder, [one.file for one in found.reports])
    if not changes:
        click.echo("There is nothing to fix.")
        return 0
    for name, (before, after) in changes.items():
        click.echo(_diff(name, before, after), nl=False)
    if ask:
        if not on_terminal():
            click.echo("Nothing was written: confirm with --yes.", err=True)
            return 1
        if not click.confirm(f"Write {counted(len(changes), 'file')}?"):
            return 1
    for name, (_, after) in changes.items():
        _write(Path(config.folder, name), after)
    again = examine(config, present, changes, answer)
    return _restore_changed(config.folder, changes, found, again)


def _restore_changed(folder: str, changes: Mapping[str, tuple[str, str]], before: Examined, after: Examined) -> int:
    different = [name for name in changes if not same_meaning(before.loaded[name], after.loaded[name])]
    for name in different:
        _write(Path(folder, name), changes[name][0])
        reason = after.loaded[name].problem or "its DAGs would have changed"
        click.echo(f"{name} was restored: {reason}", err=True)
    click.echo(f"{counted(len(changes) - len(different), 'file')} written.")
    return 1 if different else 0


def _diff(name: str, before: str, after: str) -> str:
    return "".join(
        line if line.endswith("\n") else f"{line}\n"
        for line in difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{name}", f"b/{name}")
    )


def _write(path: Path, text: str) -> None:
    """Replace the content of a file in one step, so that the parser never reads a half-written file. The mode of the file stays."""
    path = path.resolve()
    new = path.with_name(f".{path.name}.doctor")
    new.write_bytes(text.encode())
    new.chmod(path.stat().st_mode & 0o7777)
    new.replace(path)
