"""The result of reading one DAG file: messages from a parse child to the parser and from the parser to the scheduler."""

from __future__ import annotations

from typing import Any

import msgspec

from tradewind.wire.messages import TimetableAnswer, TimetableQuestion


class Problem(msgspec.Struct, frozen=True, array_like=True):
    """Why a file, or one of its DAGs, cannot be used.

    Attributes:
        message: one line: the type of the error and its message.
        stack_trace: the frames of the author's code, and the end of what the file printed.
        line: line in the DAG file, if known.
    """

    message: str
    stack_trace: str
    line: int | None = None


class ReadDag(msgspec.Struct, frozen=True, array_like=True):
    """One DAG of a file."""

    dag_id: str
    definition: bytes
    """The canonical encoding of the definition."""
    hash: str
    """Name of the version: a hash of the encoding."""
    shape: str
    """Hash of only its tasks, dependencies and schedule, which are constant in a file with `start_date=now()`."""
    made_in: str
    """The file that creates the DAG, relative to the folder. A different file if the DAG was only imported from there."""
    warnings: tuple[str, ...] = ()
    """See `DagDefinition.warnings`."""


class PluginsReport(msgspec.Struct, frozen=True, array_like=True):
    """The plugins of the plugins folder and of installed packages."""

    plugins: tuple[dict[str, Any], ...]
    """See `sdk.plugins.describe_plugin`."""
    problems: tuple[tuple[str, Problem], ...]
    """(file or package, why it cannot be loaded)."""


class ChildReport(msgspec.Struct, frozen=True, array_like=True):
    """What a parse child reports."""

    dags: tuple[ReadDag, ...] = ()
    problems: tuple[Problem, ...] = ()
    sources: tuple[tuple[str, int, int], ...] = ()
    """(absolute path, mtime in ns, size) of the file and of every module that it loaded from the folder."""
    volatile_because: str | None = None
    """Why the result may change although no file changed."""
    timetable_answer: TimetableAnswer | None = None
    """For a request to a custom timetable."""
    plugins: PluginsReport | None = None
    """For a request to load the plugins."""
    lookups: tuple[str, ...] = ()
    """Variables and connections that the file requested: `variable bucket`, `connection db`."""
    connections: tuple[str, ...] = ()
    """Connection ids of its operators, if the order asks for them."""


class FileOutcome(msgspec.Struct, frozen=True):
    """The result of parsing one file, for the scheduler. With a `problem` and no DAGs, the last valid versions are kept."""

    bundle: str
    file: str
    file_hash: str
    """Hash of the file and of the modules it loads; empty if the next start should read the file again."""
    dags: tuple[ReadDag, ...]
    problem: Problem | None
    duration: int
    is_dynamic: bool
    at: int
    bundle_version: str | None = None
    """Version of the bundle that was read; None: it has no versions."""

    def size(self) -> int:
        """The approximate size of the command in bytes."""
        return (
            500 + sum(len(dag.definition) + 100 for dag in self.dags) + (len(self.problem.stack_trace) if self.problem else 0)
        )


def one_problem(problems: tuple[Problem, ...]) -> Problem | None:
    """All problems of a file as one problem."""
    if len(problems) < 2:
        return problems[0] if problems else None
    return Problem(
        f"{len(problems)} problems: " + " | ".join(problem.message for problem in problems)[:4000],
        "\n".join(problem.stack_trace for problem in problems)[:40_000],
        problems[0].line,
    )


def timetable_answer(ask: TimetableQuestion, report: ChildReport) -> TimetableAnswer:
    """The answer to a request to a custom timetable, from the report of the child."""
    if report.timetable_answer is not None:
        return report.timetable_answer
    problem = report.problems[0] if report.problems else Problem("the process returned no answer", "")
    # these messages were written for reading a file
    message = problem.message.replace("importing it", "calling it").replace(f"importing {ask.file}", "calling it")
    return TimetableAnswer(ask.number, problem=message, stack_trace=problem.stack_trace)
