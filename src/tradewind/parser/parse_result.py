"""What reading one DAG file came to: the words between a parse child, the parser and the scheduler."""

from __future__ import annotations

from typing import Any

import msgspec

from tradewind.wire.commands import FileProblem, RegisteredDag, RegisterFile
from tradewind.wire.messages import TimetableAnswer, TimetableQuestion


class Problem(msgspec.Struct, frozen=True, array_like=True):
    """Why a file, or one of its DAGs, cannot be used.

    Attributes:
        message: one line: the kind of error and its sentence.
        stack_trace: the author's frames, without ours; what the file printed at the end.
        line: line of the DAG file, where one can be named.
    """

    message: str
    stack_trace: str
    line: int | None = None


class ReadDag(msgspec.Struct, frozen=True, array_like=True):
    """One DAG of a file."""

    dag_id: str
    definition: bytes
    """Canonical bytes."""
    hash: str
    """Name of the version: hash of the bytes."""
    shape: str
    """Hash of its tasks, arrows and schedule only: what stays the same in a file that says `start_date=now()`."""
    made_in: str
    """The file that makes it, relative to the folder; another one where the DAG was only imported from there."""
    warnings: tuple[str, ...] = ()
    """What its author should know: see `DagDefinition.warnings`."""


class PluginsReport(msgspec.Struct, frozen=True, array_like=True):
    """What the plugins folder and installed packages offer."""

    plugins: tuple[dict[str, Any], ...]
    """See `sdk.plugins.describe_plugin`."""
    problems: tuple[tuple[str, Problem], ...]
    """(file or package, why it cannot be loaded)."""


class ChildReport(msgspec.Struct, frozen=True, array_like=True):
    """What a parse child says about its file."""

    dags: tuple[ReadDag, ...] = ()
    problems: tuple[Problem, ...] = ()
    sources: tuple[tuple[str, int, int], ...] = ()
    """(absolute path, mtime in ns, size) of the file and of every module that it loaded from the folder."""
    volatile_because: str | None = None
    """Why its result may change although no file changed."""
    told: TimetableAnswer | None = None
    """Where not a file was read, but a timetable asked."""
    plugins: PluginsReport | None = None
    """Where not a file was read, but the plugins were."""
    asked: tuple[str, ...] = ()
    """Variables and connections that it asked for: `variable bucket`, `connection db`."""


class FileOutcome(msgspec.Struct, frozen=True):
    """What parsing one file came to, as the scheduler is told. `problem` and no DAGs: the last good versions stay."""

    bundle: str
    file: str
    file_hash: str
    """Names the content of the file and of the modules it loads; empty when the next start should read it again."""
    dags: tuple[ReadDag, ...]
    problem: Problem | None
    duration: int
    is_dynamic: bool
    at: int

    def as_command(self) -> RegisterFile:
        """The command that has the scheduler store it."""
        return RegisterFile(
            self.bundle,
            self.file,
            self.file_hash,
            [RegisteredDag(dag.dag_id, dag.definition, dag.hash) for dag in self.dags],
            self.duration,
            self.at,
            None if self.problem is None else FileProblem(**msgspec.structs.asdict(self.problem)),
            self.is_dynamic,
        )

    def size(self) -> int:
        """Bytes, about, that it takes to say this."""
        return (
            500 + sum(len(dag.definition) + 100 for dag in self.dags) + (len(self.problem.stack_trace) if self.problem else 0)
        )


def one_problem(problems: tuple[Problem, ...]) -> Problem | None:
    """All problems of a file as one, the first one leading."""
    if len(problems) < 2:
        return problems[0] if problems else None
    return Problem(
        f"{len(problems)} problems: " + " | ".join(problem.message for problem in problems)[:4000],
        "\n".join(problem.stack_trace for problem in problems)[:40_000],
        problems[0].line,
    )


def told(ask: TimetableQuestion, report: ChildReport) -> TimetableAnswer:
    """What a child's report means for whoever asked."""
    if report.told is not None:
        return report.told
    problem = report.problems[0] if report.problems else Problem("it said nothing", "")
    # these sentences were made for the reading of a file
    message = problem.message.replace("importing it", "asking it").replace(f"importing {ask.file}", "asking it")
    return TimetableAnswer(ask.number, problem=message, stack_trace=problem.stack_trace)
