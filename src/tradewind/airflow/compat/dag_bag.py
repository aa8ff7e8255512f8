"""`airflow.models.DagBag`: the DAGs of a folder, read in this process. Tests of DAG files use it."""

from __future__ import annotations

import logging
import os
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

from tradewind.airflow.compat.exceptions import AirflowDagDuplicatedIdException
from tradewind.model.errors import NotYetSupported
from tradewind.sdk.conf import conf
from tradewind.sdk.dag import DAG
from tradewind.sdk.dag_files import ENDING, files_of, is_zipped, may_hold_dags
from tradewind.sdk.ignore_files import IGNORE_FILES, Rule, ignored, read_rules
from tradewind.sdk.load import load_file
from tradewind.wire import runtime
from tradewind.wire.empty_database import EmptyDatabase

__all__ = ["DagBag", "FileLoadStat"]

log = logging.getLogger(__name__)

Folders = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
"""A folder or a file, or several of them."""

_reading: list[str] = []
"""Files that are being read by a bag. A file that creates a bag of its own folder must not be read again inside itself."""


class FileLoadStat(NamedTuple):
    """Statistics of reading one file."""

    file: str
    duration: timedelta
    dag_num: int
    task_num: int
    dags: str
    """Ids of the DAGs in the file, as text."""
    warning_num: int | None


class DagBag:
    """The DAGs of a file or folder.

    Variables and connections that files read during the import come from the environment and the test. Without
    `fake_variables` and without a running task, the database counts as empty.

    Args:
        dag_folder: the file or folder, or several; default is the setting core.dags_folder.
        include_examples: accepted, without effect: there are no example DAGs.
        safe_mode: read only files that contain the words `dag` and `airflow` or `tradewind`.
        more: other arguments of Airflow's bag, without effect (`read_dags_from_db`, `collect_dags`, …).

    Attributes:
        dags: DAG id → DAG.
        import_errors: path of a file → the error of its import. A DAG id of an earlier file is an error of the later file.
        dagbag_stats: one `FileLoadStat` for each file that was read, the slowest first.
    """

    def __init__(
        self,
        dag_folder: Folders | None = None,
        include_examples: Any = None,
        safe_mode: bool = True,
        **more: Any,
    ) -> None:
        folders = _each(dag_folder if dag_folder is not None else str(conf.get("core", "dags_folder")))
        self.dag_folder = folders[0] if folders else os.curdir
        self.dags: dict[str, DAG] = {}
        self.import_errors: dict[str, str] = {}
        self.file_last_changed: dict[str, float] = {}
        self.dagbag_stats: list[FileLoadStat] = []
        self.safe_mode = safe_mode
        if more.get("collect_dags", True):
            self.collect_dags(folders, safe_mode=safe_mode)

    read_dags_from_db = store_serialized_dags = has_logged = False
    """Airflow 1 and 2's flags: all DAGs come from files."""
    executor: Any = None
    captured_warnings: Mapping[str, Any] = MappingProxyType({})
    dags_hash: Mapping[str, str] = MappingProxyType({})
    dags_last_fetched: Mapping[str, Any] = MappingProxyType({})

    def collect_dags_from_db(self) -> NoReturn:
        """Refuse: tests read files.

        Raises:
            NotYetSupported: always.
        """
        raise NotYetSupported("DagBag.collect_dags_from_db() has no database to read; DagBag(dag_folder=…) reads the files")

    def collect_dags(self, dag_folder: Folders | None = None, safe_mode: bool = True, **_more: Any) -> None:
        """Read every file of a folder, or one file."""
        for one in _each(dag_folder if dag_folder is not None else self.dag_folder):
            root = os.path.abspath(one)
            folder = os.path.dirname(root) if os.path.isfile(root) else root
            for path in _files(root):
                self._read(folder, path, safe_mode)
        self.dagbag_stats.sort(key=lambda stat: stat.duration, reverse=True)

    def process_file(self, filepath: str, only_if_updated: bool = True, safe_mode: bool = True) -> list[DAG]:
        """Read one file.

        Returns:
            The DAGs of the file; empty if the file cannot be read.
        """
        path = os.path.abspath(filepath)
        folder = (
            self.dag_folder if path.startswith(os.path.join(os.path.abspath(self.dag_folder), "")) else os.path.dirname(path)
        )
        return self._read(os.path.abspath(folder), path, safe_mode)

    def _read(self, folder: str, path: str, safe_mode: bool) -> list[DAG]:
        if path in _reading or (safe_mode and not _may_hold_dags(path)):
            return []
        _reading.append(path)
        began = time.monotonic()
        try:
            with _answers():
                found = load_file(folder, os.path.relpath(path, folder), analyse=False).dags
            for dag in found.values():
                dag.validate()
                self._refuse_second(dag, path)
        except (Exception, SystemExit):
            self.import_errors[path] = traceback.format_exc()
            log.exception("Failed to import: %s", path)
            return []
        finally:
            _reading.remove(path)
        self.dags.update(found)
        self.file_last_changed[path] = os.path.getmtime(path)
        self.import_errors.pop(path, None)
        took = timedelta(seconds=time.monotonic() - began)
        tasks = sum(dag.task_count for dag in found.values())
        self.dagbag_stats.append(FileLoadStat(path, took, len(found), tasks, str(sorted(found)), None))
        return list(found.values())

    def _refuse_second(self, dag: DAG, path: str) -> None:
        """Raises AirflowDagDuplicatedIdException: another file has a DAG of this id."""
        known = self.dags.get(dag.dag_id)
        if known is not None and os.path.abspath(known.fileloc) != os.path.abspath(dag.fileloc):
            raise AirflowDagDuplicatedIdException(dag_id=dag.dag_id, incoming=path, existing=known.fileloc)

    def get_dag(self, dag_id: str, session: Any = None) -> DAG | None:
        """The DAG with this id; None if there is none."""
        return self.dags.get(dag_id)

    def bag_dag(self, dag: DAG, *_args: Any, **_kwargs: Any) -> None:
        """Add a DAG."""
        dag.validate()
        self.dags[dag.dag_id] = dag

    def sync_to_db(self, *_args: Any, **_options: Any) -> None:
        """Do nothing: the bag belongs to this process alone."""

    @property
    def dag_ids(self) -> list[str]:
        """The ids of the DAGs."""
        return list(self.dags)

    def size(self) -> int:
        """How many DAGs there are."""
        return len(self.dags)

    def dagbag_report(self) -> str:
        """A text about the DAGs, their files and the import errors."""
        lines = [f"{len(self.dags)} DAGs, {len(self.import_errors)} import errors in {self.dag_folder}"]
        lines += [f"{dag.dag_id}: {dag.task_count} tasks ({dag.fileloc})" for dag in self.dags.values()]
        return "\n".join(lines)


def _each(folders: Folders) -> list[str]:
    return [os.fspath(folders)] if isinstance(folders, str | os.PathLike) else [os.fspath(one) for one in folders]


def _answers() -> AbstractContextManager[None]:
    """Answer the requests of a file from an empty database, unless a scheduler or the test kit answers them."""
    return nullcontext() if runtime.is_installed() else runtime.installed(EmptyDatabase())


def _files(root: str) -> Iterator[str]:
    """Python files below a folder by name; a file itself. Hidden ones, caches, virtual environments and files that an
    `.airflowignore` names are left out.
    """
    if os.path.isfile(root):
        yield root
        return
    rules: dict[str, list[Rule]] = {}
    for path, folders, files in os.walk(root):
        inside = os.path.relpath(path, root).replace(os.sep, "/")
        inside = "" if inside == "." else f"{inside}/"
        if "pyvenv.cfg" in files:
            folders.clear()
            continue
        own = rules[path] = [*rules.get(os.path.dirname(path), ()), *_rules(path, files, inside.rstrip("/"))]
        folders[:] = sorted(
            name for name in folders if not name.startswith((".", "__pycache__")) and not ignored(inside + name, True, own)
        )
        for name in sorted(files):
            if name.endswith((".py", ENDING)) and not name.startswith(".") and not ignored(inside + name, False, own):
                yield os.path.join(path, name)


def _rules(path: str, files: list[str], inside: str) -> Iterator[Rule]:
    """The rules of the ignore files of a folder. `inside`: its path below the root."""
    for name in IGNORE_FILES:
        if name in files:
            text = Path(path, name).read_text(encoding="utf-8", errors="replace")
            yield from read_rules(text, inside, conf.value_if_set("core", "dag_ignore_file_syntax"))[0]


def _may_hold_dags(path: str) -> bool:
    if path.endswith(ENDING):
        return is_zipped(path) and any(may_hold_dags(text) for _, text in files_of(path))
    return may_hold_dags(Path(path).read_bytes())
