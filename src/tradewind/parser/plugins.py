"""The plugins folder, as the parser sees it: does it look different, and what is in it?

A change anywhere in it is a reason to read every DAG file again, because any of them may import from it. What the plugins are is
found out in a child, like everything that is users' code.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable

import msgspec

from tradewind.parser.folder import look
from tradewind.parser.parse_result import ChildReport, PluginsReport, Problem
from tradewind.parser.sources import Sources
from tradewind.wire.commands import PluginProblem, RegisterPlugins


class PluginsFolder:
    """Remembers how the folder looked.

    Args:
        folder: absolute path; empty for none.
    """

    def __init__(self, folder: str, wall: Callable[[], int]) -> None:
        self.folder = folder
        self.digest: str | None = None
        self._sources = Sources(folder, "", wall)

    def changed(self, on_folder: Callable[[str], None]) -> bool:
        """Look; whether its Python files are others than before, or this is the first look."""
        if not self.folder:
            return False
        before, whole = self.digest, hashlib.sha256()
        found = look(self.folder, on_folder).files if os.path.isdir(self.folder) else {}
        for name in sorted(found):
            source = self._sources.source(f"{self.folder}/{name}", found[name])
            whole.update(f"{name}\0{source.digest if source is not None else 'absent'}\0".encode(errors="surrogateescape"))
        self.digest = whole.hexdigest()[:32] if found else ""
        return self.digest != before


def as_command(report: ChildReport, at: int) -> RegisterPlugins:
    """The command that has the scheduler store the plugins."""
    found = report.plugins
    if found is None:  # the child died: none of them can be used
        problem = report.problems[0] if report.problems else Problem("loading the plugins said nothing", "")
        message = problem.message.replace("importing it", "loading the plugins").replace("importing .", "loading the plugins")
        found = PluginsReport((), ((".", Problem(message, problem.stack_trace, None)),))
    problems = [PluginProblem(file=file, **msgspec.structs.asdict(problem)) for file, problem in found.problems]
    return RegisterPlugins(list(found.plugins), problems, at)
