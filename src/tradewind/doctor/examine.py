"""Examines a folder: reads the text of its files, and has the parser's child processes load them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from tradewind.doctor.file_report import FileReport, LoadResult, report_on
from tradewind.doctor.rewrite import rewritten
from tradewind.doctor.source_facts import read_source
from tradewind.model.definition import DagDefinition, decode_definition
from tradewind.parser.children import ReadResult
from tradewind.parser.config import ParserConfig
from tradewind.parser.parse_once import Answerer, dag_files, read_files
from tradewind.provider_packages.third_party import advice
from tradewind.sdk.dag_files import is_zipped, source_text
from tradewind.sdk.generation import generation_of

_MISSING_MODULE = re.compile(r"ModuleNotFoundError: No module named '([^']+)'")


class Examined(msgspec.Struct, frozen=True):
    """The reports on a folder, and the results of loading its files."""

    reports: list[FileReport]
    loaded: dict[str, LoadResult]


def examine(
    config: ParserConfig, installed: Collection[str], files: Iterable[str] | None = None, answer: Answerer | None = None
) -> Examined:
    """The reports on files of a folder, sorted by path.

    Args:
        installed: short names of the installed provider packages.
        files: paths inside the folder. None: all files that the parser would read.
        answer: answers requests for variables and connections. None: these requests fail.
    """
    config = msgspec.structs.replace(config, find_connections=True)
    wanted = sorted(set(dag_files(config) if files is None else files))
    loaded = {name: load_result(read) for name, read in read_files(config, wanted, answer).items()}
    reports = []
    for name in wanted:
        source = text_of(Path(config.folder, name))
        result = loaded[name] = with_place_of_module(loaded[name], config)
        reports.append(report_on(name, read_source(source), generation_of(source), result, installed))
    return Examined(reports, loaded)


def load_result(read: ReadResult) -> LoadResult:
    """Convert the report of a child process into plain values."""
    report = read.report
    problem = report.problems[0] if report.problems else None
    return LoadResult(
        dags=tuple(decode_definition(dag.definition) for dag in report.dags),
        problem=None if problem is None else problem.message,
        line=None if problem is None else problem.line,
        connections=report.connections,
        lookups=report.lookups,
    )


def with_place_of_module(result: LoadResult, config: ParserConfig) -> LoadResult:
    """The result; if a module was not found that is beside the folder, as in many projects, the problem says what to set."""
    missing = _MISSING_MODULE.match(result.problem or "")
    if missing is None or advice(missing[1]).startswith("Install it"):
        return result  # a known package: a folder of its name beside the DAG folder holds something else
    project, name = Path(config.folder).resolve().parent, missing[1].partition(".")[0]
    places = (
        (project / "plugins", "Set TRADEWIND__CORE__PLUGINS_FOLDER={}, or copy its content into the plugins folder"),
        (project / "src", "Add PYTHONPATH={} to the environment of Tradewind"),
    )
    for folder, todo in places:
        if folder != Path(config.plugins_folder) and ((folder / name).is_dir() or (folder / f"{name}.py").is_file()):
            problem = f"{missing[0]}. It is in {folder}: {todo.format(folder)}"
            return result._replace(problem=problem)
    return result


def text_of(path: Path) -> str:
    """The text of a file, or of the DAG files of a zip archive; bytes that are not UTF-8 are replaced."""
    try:
        return source_text(str(path)) if is_zipped(str(path)) else path.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def proposed(folder: str, files: Iterable[str]) -> dict[str, tuple[str, str]]:
    """The files that `--fix` would change: path → (present text, new text). Files that are not UTF-8 are left out."""
    found = {}
    for name in (one for one in files if one.endswith(".py")):
        before = text_of(Path(folder, name))
        after = before if "\ufffd" in before else rewritten(before)
        if after != before:
            found[name] = before, after
    return found


def same_meaning(before: LoadResult, after: LoadResult) -> bool:
    """Whether a file and its changed text define the same DAGs. Warnings are not compared."""
    if before.problem is not None:
        return True  # a file that could not be loaded cannot become worse
    return after.problem is None and _without_warnings(before.dags) == _without_warnings(after.dags)


def _without_warnings(dags: Iterable[DagDefinition]) -> list[DagDefinition]:
    return [msgspec.structs.replace(dag, warnings=()) for dag in dags]
