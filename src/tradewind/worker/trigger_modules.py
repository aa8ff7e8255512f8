"""Imports the modules of triggers as a task process would find them, and imports them again when their files have changed.

The triggerer runs for a long time. A trigger that starts after a file was changed uses the new file; running triggers keep the
old code.
"""

from __future__ import annotations

import os
import sys

from tradewind.execution.run_trigger import make_trigger
from tradewind.sdk.import_paths import is_of_project, plugins_folder, project_folder
from tradewind.sdk.load import load_file, module_of, open_folders
from tradewind.sdk.trigger import BaseTrigger
from tradewind.wire.messages import TriggerOrder


class TriggerModules:
    """The imported modules of all triggers of this process. Only one thread at a time may call `make`."""

    def __init__(self) -> None:
        self._folders: set[str] = set()
        self._projects: set[str] = set()
        self._seen: dict[str, tuple[int, int]] = {}
        """Name of a module below these folders → (size, mtime in nanoseconds) of its file when it was imported."""

    def make(self, order: TriggerOrder) -> BaseTrigger:
        """Import the module of a trigger and create the trigger. Raises every error of the author's code."""
        self._add_folders(order)
        self._forget_changed_modules()
        self._forget_namesake(order)
        try:
            name = order.wait.classpath.rpartition(".")[0]
            if name == module_of(order.file) and name not in sys.modules:
                load_file(order.folder, order.file, analyse=False)  # a class of the DAG file itself
            return make_trigger(order.wait)
        finally:
            self._remember_modules()

    def _add_folders(self, order: TriggerOrder) -> None:
        if not order.folder:
            return
        project = project_folder(order.folder)
        folders = [order.folder, os.path.dirname(os.path.join(order.folder, order.file)), project]
        known = self._folders | self._projects
        others = [folder for folder in sys.path if folder in known and folder not in folders]
        sys.path[:] = [folder for folder in sys.path if folder not in others and folder not in folders]
        open_folders(order.folder, order.file)
        sys.path += [folder for folder in others if folder not in sys.path]  # they come later: modules may have the same names
        self._folders.update((*folders[:2], plugins_folder()))
        self._projects.add(project)

    def _forget_changed_modules(self) -> None:
        """If one of the modules has changed, forget them all: any of them may have imported it."""
        for name, before in self._seen.items():
            module = sys.modules.get(name)
            file = getattr(module, "__file__", None)
            if file is not None and _stamp(file) != before:
                for other in self._seen:
                    sys.modules.pop(other, None)
                self._seen.clear()
                return

    def _forget_namesake(self, order: TriggerOrder) -> None:
        """Forget the module of another folder that has the same name as the wanted module."""
        root = order.wait.classpath.partition(".")[0]
        if root not in self._seen:
            return
        found = getattr(sys.modules.get(root), "__file__", None) or ""
        first = next((folder for folder in sys.path if _contains_module(folder, root)), None)
        if first is not None and first in self._folders | self._projects and not found.startswith(first + os.sep):
            for name in [name for name in self._seen if name == root or name.startswith(root + ".")]:
                sys.modules.pop(name, None)
                del self._seen[name]

    def _remember_modules(self) -> None:
        """Remember the new modules of these folders."""
        beginnings = tuple(folder + os.sep for folder in self._folders)
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if name in self._seen or not isinstance(file, str):
                continue
            if file.startswith(beginnings) or any(is_of_project(name, file, project) for project in self._projects):
                self._seen[name] = _stamp(file)


def _stamp(file: str) -> tuple[int, int]:
    try:
        found = os.stat(file)
    except OSError:
        return (0, 0)
    return found.st_size, found.st_mtime_ns


def _contains_module(folder: str, root: str) -> bool:
    return os.path.exists(os.path.join(folder, root + ".py")) or os.path.exists(os.path.join(folder, root, "__init__.py"))
