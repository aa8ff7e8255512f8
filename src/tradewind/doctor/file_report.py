"""The report on one DAG file: whether it loads, what should be changed, what it needs, and where its meaning depends on the
generation.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from tradewind.doctor import old_names
from tradewind.doctor.source_facts import SourceFacts
from tradewind.model.definition import CronSchedule, DagDefinition, DeltaSchedule
from tradewind.sdk.decorators import PROVIDER_OF_DECORATOR
from tradewind.sdk.generation import CURRENT

LOADS, NOTES, CANNOT = "loads", "loads with notes", "cannot load"

_INSTALL = re.compile(r"tradewind providers install ([\w-]+)")
"""The advice of an import error of a module of a provider package."""


_CHANGED = (
    "{} at the top level: nothing is stored, only this import sees the value. Change it in a task, or with "
    "`tradewind variables`"
)


class Note(NamedTuple):
    """One remark about a file.

    `kind`: `old name`, `argument`, `meaning`, `warning` or `error`.
    """

    kind: str
    line: int | None
    text: str
    fixable: bool = False
    """True if `--fix` changes this place."""


class LoadResult(NamedTuple):
    """The result of the child process that loaded the file."""

    dags: tuple[DagDefinition, ...] = ()
    problem: str | None = None
    line: int | None = None
    connections: tuple[str, ...] = ()
    """Connection ids of the loaded operators."""
    lookups: tuple[str, ...] = ()
    """`variable bucket`, `connection db`: requested while the file was imported; `change of variable bucket`."""


class FileReport(NamedTuple):
    """Everything that the doctor knows about one file."""

    file: str
    verdict: str
    generation: int
    dags: tuple[str, ...]
    notes: tuple[Note, ...]
    providers: tuple[str, ...]
    """Provider packages that the file imports."""
    missing_providers: tuple[str, ...]
    connections: tuple[str, ...]
    variables: tuple[str, ...]

    @property
    def error(self) -> Note | None:
        """Why the file cannot be loaded."""
        return next((note for note in self.notes if note.kind == "error"), None)

    @property
    def fixable(self) -> int:
        """How many places `--fix` would change."""
        return sum(note.fixable for note in self.notes)


def report_on(file: str, facts: SourceFacts, generation: int, loaded: LoadResult, installed: Collection[str]) -> FileReport:
    """The report on a file.

    Args:
        generation: of Airflow, for which the file was written.
        installed: short names of the installed provider packages.
    """
    needed = dict.fromkeys(name for one in facts.imports if (name := old_names.provider_of(one.module, one.name)) is not None)
    needed |= dict.fromkeys(PROVIDER_OF_DECORATOR[name] for name in facts.task_decorators if name in PROVIDER_OF_DECORATOR)
    needed |= dict.fromkeys(_INSTALL.findall(loaded.problem or ""))  # such as those of a plugin that the file imports
    notes = [*_error(facts, loaded), *_old_names(facts), *_arguments(facts), *_meaning(loaded.dags, generation)]
    notes += [Note("warning", None, f"{dag.dag_id}: {text}") for dag in loaded.dags for text in _own_warnings(dag)]
    notes += [Note("warning", None, _CHANGED.format(text)) for text in loaded.lookups if text.startswith("change of ")]
    failed = any(note.kind == "error" for note in notes)
    requested = {kind: [text for text in loaded.lookups if text.startswith(kind)] for kind in ("connection ", "variable ")}
    return FileReport(
        file=file,
        verdict=CANNOT if failed else NOTES if notes else LOADS,
        generation=generation,
        dags=tuple(dag.dag_id for dag in loaded.dags),
        notes=tuple(notes),
        providers=tuple(needed),
        missing_providers=tuple(name for name in needed if name not in installed),
        connections=_merged_connections([name for name, _ in facts.connections], loaded.connections, requested["connection "]),
        variables=_merged_connections([name for name, _ in facts.variables], (), requested["variable "]),
    )


def _merged_connections(stated: Sequence[str], used: Sequence[str], requested: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({*stated, *used, *(text.partition(" ")[2] for text in requested)}))


def _error(facts: SourceFacts, loaded: LoadResult) -> list[Note]:
    if loaded.problem is not None:
        return [Note("error", loaded.line, loaded.problem)]
    if facts.error is not None:
        return [Note("error", facts.error[1], f"SyntaxError: {facts.error[0]}")]
    return []


def _old_names(facts: SourceFacts) -> list[Note]:
    found = []
    for one in facts.imports:
        place = old_names.present_place(one.module, one.name)
        if place is not None:
            found.append(
                Note("old name", one.line, f"{one.module}.{one.name} is {place.module}.{place.name} in Airflow 3", True)
            )
    return found


def _arguments(facts: SourceFacts) -> list[Note]:
    found = []
    for one in facts.arguments:
        newer = old_names.present_argument(one.callee, one.name)
        if newer is not None:
            found.append(Note("argument", one.line, f"{one.callee}: {one.name} is now called {newer}", True))
        elif one.name in old_names.REMOVED_ARGUMENTS:
            found.append(
                Note("argument", one.line, f"{one.callee}: {one.name} has no effect: {old_names.REMOVED_ARGUMENTS[one.name]}")
            )
    return found


def _own_warnings(dag: DagDefinition) -> list[str]:
    return [text for text in dag.warnings if not text.startswith("schedule: ")]


def _meaning(dags: Sequence[DagDefinition], generation: int) -> list[Note]:
    """Where the meaning of a file depends on the generation of Airflow."""
    if generation >= CURRENT:
        return []
    found = []
    for dag in dags:
        if isinstance(dag.schedule, CronSchedule | DeltaSchedule):
            missed = "; runs that were missed are created (catchup)" if dag.catchup else ""
            found.append(
                Note(
                    "meaning",
                    None,
                    f"{dag.dag_id}: {dag.schedule_summary or 'the schedule'}: a run covers the interval before it starts, as in "
                    f"Airflow {generation}; in Airflow 3 it starts at its time{missed}",
                )
            )
        elif dag.max_active_tasks_all_runs is not None:
            found.append(
                Note("meaning", None, f"{dag.dag_id}: max_active_tasks counts over all runs, as in Airflow {generation}")
            )
    return found
