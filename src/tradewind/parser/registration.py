"""The command that has the scheduler store the results of parsing.

Apart from `parse_result`, because parse children use that module and send no commands.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tradewind.parser.parse_result import FileOutcome
from tradewind.wire.commands import FileProblem, RegisteredDag, RegisterFile, RegisterFiles


def register_command(outcomes: Iterable[FileOutcome]) -> RegisterFiles:
    """The command for the results of several files."""
    return RegisterFiles([_register_file(outcome) for outcome in outcomes])


def _register_file(outcome: FileOutcome) -> RegisterFile:
    return RegisterFile(
        outcome.bundle,
        outcome.file,
        outcome.file_hash,
        [RegisteredDag(dag.dag_id, dag.definition, dag.hash) for dag in outcome.dags],
        outcome.duration,
        outcome.at,
        None if outcome.problem is None else FileProblem(**msgspec.structs.asdict(outcome.problem)),
        outcome.is_dynamic,
        outcome.bundle_version,
    )
