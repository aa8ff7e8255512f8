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
    loop = Loop(clock := SystemClock())
    children = _children(config, loop, clock, answer)
    found: dict[str, ReadResult] = {}
    try:
        for name in sorted(wanted):
            children.read(name, lambda read, name=name: found.__setitem__(name, read))  # type: ignore[misc]
        children.start()
        while len(found) < len(wanted):
            loop.turn()
    finally:
        children.close()
        loop.close()
    return found


def read_plugins(config: ParserConfig, answer: Answerer | None = None) -> RegisterPlugins:
    """The command that stores the list of plugins. For `answer` see `parse_folder`."""
    loop = Loop(clock := SystemClock())
    children = _children(config, loop, clock, answer)
    found: list[ReadResult] = []
    try:
        children.read_plugins(found.append)
        children.start()
        while not found:
            loop.turn()
    finally:
        children.close()
        loop.close()
    return as_command(found[0].report, clock.wall())


def dag_files(config: ParserConfig) -> list[str]:
    """The files of a folder that the parser would read, sorted by name."""
    sources = Sources(config.folder, fingerprint_salt(config), SystemClock().wall)
    seen = scan_folder(config.folder).files
    return [name for name in sorted(seen) if (source := sources.source(f"{config.folder}/{name}")) and source.may_hold_dags]


def ask_once(config: ParserConfig, ask: TimetableQuestion, answer: Answerer | None = None) -> TimetableAnswer:
    """The answer of a custom timetable, without a parser process. For `answer` see `parse_folder`."""
    loop = Loop(clock := SystemClock())
    children = _children(config, loop, clock, answer)
    found: list[TimetableAnswer] = []
    try:
        children.ask(ask, found.append)
        children.start()
        while not found:
            loop.turn()
    finally:
        children.close()
        loop.close()
    return found[0]


def _children(config: ParserConfig, loop: Loop, clock: Clock, answer: Answerer | None) -> ParseChildren:
    children = ParseChildren(config, loop, clock)
    if answer is not None:
        children.look_up = lambda question, answered: answered(answer(question))
    return children


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
