"""Detects changes of the plugins folder, and makes the command with the list of its plugins.

After a change every DAG file is read again, because any of them may import from this folder. A child process loads the plugins, as
all user code.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable

import msgspec

from tradewind.parser.folder import scan_folder
from tradewind.parser.parse_result import ChildReport, PluginsReport, Problem
from tradewind.parser.sources import Sources
from tradewind.wire.commands import PluginProblem, RegisterPlugins


class PluginsFolder:
    """Detects changes of the plugins folder.

    Args:
        folder: absolute path; empty for none.
    """

    def __init__(self, folder: str, wall: Callable[[], int]) -> None:
        self.folder = folder
        self.digest: str | None = None
        self._sources = Sources(folder, "", wall)

    def changed(self, on_folder: Callable[[str], None]) -> bool:
        """Scan the folder. True if its Python files changed since the last scan, or if this is the first scan."""
        if not self.folder:
            return False
        before, whole = self.digest, hashlib.sha256()
        found = scan_folder(self.folder, on_folder).files if os.path.isdir(self.folder) else {}
        for name in sorted(found):
            source = self._sources.source(f"{self.folder}/{name}", found[name])
            whole.update(f"{name}\0{source.digest if source is not None else 'absent'}\0".encode(errors="surrogateescape"))
        self.digest = whole.hexdigest()[:32] if found else ""
        return self.digest != before


def as_command(report: ChildReport, at: int) -> RegisterPlugins:
    """The command with which the scheduler stores the list of plugins."""
    found = report.plugins
    if found is None:  # the child process crashed, so no plugin can be used
        problem = report.problems[0] if report.problems else Problem("loading the plugins returned no result", "")
        message = problem.message.replace("importing it", "loading the plugins").replace("importing .", "loading the plugins")
        found = PluginsReport((), ((".", Problem(message, problem.stack_trace, None)),))
    problems = [PluginProblem(file=file, **msgspec.structs.asdict(problem)) for file, problem in found.problems]
    return RegisterPlugins(list(found.plugins), problems, at)
