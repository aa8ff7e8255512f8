"""Reading DAG files once, without scheduler and database, with the same zygote and limits as the parser."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import msgspec

from tradewind.parser.children import ParseChildren, ReadResult
from tradewind.parser.config import ParserConfig
from tradewind.parser.folder import scan_folder
from tradewind.parser.parse_result import FileOutcome, one_problem
from tradewind.parser.plugins import as_command
from tradewind.parser.service import fingerprint_salt
from tradewind.parser.sources import Sources
from tradewind.platform.clock import Clock, SystemClock
from tradewind.platform.loop import Loop
from tradewind.wire.commands import RegisterPlugins
from tradewind.wire.messages import Lookup, RunnerAnswer, TimetableAnswer, TimetableQuestion

Answerer = Callable[[Lookup], RunnerAnswer]
"""Answers a request for a variable or connection."""


def parse_once(path: str, config: ParserConfig | None = None) -> FileOutcome:
    """The result of parsing one file.

    Args:
        path: the file.
        config: if the file is outside of `config.folder`, its own folder is used as the DAG folder.

    Raises:
        FileNotFoundError: there is no such file.
    """
    path = os.path.abspath(path)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"there is no file {path}")
    given = config if config is not None else ParserConfig(os.path.dirname(path))
    if not path.startswith(os.path.join(given.folder, "")):
        given = msgspec.structs.replace(given, folder=os.path.dirname(path))
    return parse_folder(given, [os.path.relpath(path, given.folder)])[0]


def parse_folder(config: ParserConfig, files: Iterable[str] | None = None, answer: Answerer | None = None) -> list[FileOutcome]:
    """The results of parsing the files of a folder, in the order of `files`.

    Args:
        files: relative paths. None: every file that the parser would read, sorted by name.
        answer: answers requests for variables and connections. None: these requests fail.
    """
    clock = SystemClock()
    sources = Sources(config.folder, fingerprint_salt(config), clock.wall)
    wanted = dag_files(config) if files is None else list(files)
    found = read_files(config, wanted, answer)
    return [_outcome(config, clock, sources, name, found[name]) for name in wanted]


def read_files(config: ParserConfig, files: Iterable[str], answer: Answerer | None = None) -> dict[str, ReadResult]:
    """What the child processes report about files of a folder, by path. For the arguments see `parse_folder`."""
    wanted = set(files)
    found: dict[str, ReadResult] = {}

    def ask(children: ParseChildren) -> None:
        for name in sorted(wanted):
            children.read(name, lambda read, name=name: found.__setitem__(name, read))  # type: ignore[misc]

    _run_until(lambda: len(found) == len(wanted), config, answer, ask)
    return found


def read_plugins(config: ParserConfig, answer: Answerer | None = None) -> RegisterPlugins:
    """The command that stores the list of plugins. For `answer` see `parse_folder`."""
    found: list[ReadResult] = []
    _run_until(lambda: bool(found), config, answer, lambda children: children.read_plugins(found.append))
    return as_command(found[0].report, SystemClock().wall())


def dag_files(config: ParserConfig) -> list[str]:
    """The files of a folder that the parser would read, sorted by name."""
    sources = Sources(config.folder, fingerprint_salt(config), SystemClock().wall)
    seen = scan_folder(config.folder).files
    return [name for name in sorted(seen) if (source := sources.source(f"{config.folder}/{name}")) and source.may_hold_dags]


def ask_once(config: ParserConfig, ask: TimetableQuestion, answer: Answerer | None = None) -> TimetableAnswer:
    """The answer of a custom timetable, without a parser process. For `answer` see `parse_folder`."""
    found: list[TimetableAnswer] = []
    _run_until(lambda: bool(found), config, answer, lambda children: children.ask(ask, found.append))
    return found[0]


def _run_until(
    is_done: Callable[[], bool], config: ParserConfig, answer: Answerer | None, ask: Callable[[ParseChildren], None]
) -> None:
    """Run child processes until all is read that `ask` wants from them."""
    clock = SystemClock()
    loop = Loop(clock)
    children = ParseChildren(config, loop, clock)
    if answer is not None:
        children.look_up = lambda question, answered: answered(answer(question))
    try:
        ask(children)
        children.start()
        while not is_done():
            loop.turn()
    finally:
        children.close()
        loop.close()


def _outcome(config: ParserConfig, clock: Clock, sources: Sources, name: str, read: ReadResult) -> FileOutcome:
    report = read.report
    return FileOutcome(
        config.bundle,
        name,
        sources.fingerprint(name) or "",
        report.dags,
        one_problem(report.problems),
        read.duration,
        report.volatile_because is not None,
        clock.wall(),
    )
