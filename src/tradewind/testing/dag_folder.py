"""A folder of DAG files as the parser reads it, for integrity tests."""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tradewind.model.errors import NotFound, did_you_mean
from tradewind.parser.folder import scan_folder
from tradewind.sdk.definition import to_definition
from tradewind.sdk.load import load_file
from tradewind.testing.dag_test import configured_defaults

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG
    from tradewind.sdk.operator import BaseOperator


@dataclass(slots=True)
class DagFolder:
    """All DAGs of a folder, imported in this process. Create it with `DagFolder.read(folder)`."""

    folder: str
    dags: dict[str, DAG] = field(default_factory=dict)
    files: dict[str, list[str]] = field(default_factory=dict)
    """File, relative to the folder → ids of its DAGs."""
    import_errors: dict[str, str] = field(default_factory=dict)
    """File → the error; also for invalid DAGs (a cycle, a bad schedule, a duplicate id)."""
    import_warnings: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> DagFolder:
        """Import every file that the parser would import. Files that fail are in `import_errors`.

        Raises:
            NotFound: there is no such folder.
        """
        path = os.path.abspath(folder)
        if not os.path.isdir(path):
            raise NotFound(f"there is no folder {path}")
        found = cls(path)
        for file in sorted(scan_folder(path).files):
            found._read(file)
        return found

    def _read(self, file: str) -> None:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                loaded = load_file(self.folder, file, analyse=False)
                for dag in loaded.dags.values():
                    to_definition(dag, file, configured_defaults())
            except (Exception, SystemExit) as error:
                self.import_errors[file] = "".join(traceback.format_exception_only(error)).strip()
                loaded = None
        own = [f"{one.category.__name__}: {one.message} (line {one.lineno})" for one in warned if self._is_below(one.filename)]
        if own:
            self.import_warnings[file] = own
        for dag_id, dag in loaded.dags.items() if loaded is not None else ():
            other = next((name for name, ids in self.files.items() if dag_id in ids), None)
            if other is not None:
                self.import_errors[file] = f"DAG {dag_id!r} is also in {other}"
            self.files.setdefault(file, []).append(dag_id)
            self.dags[dag_id] = dag

    def _is_below(self, filename: str) -> bool:
        return filename.startswith(os.path.join(self.folder, ""))

    def dag(self, dag_id: str) -> DAG:
        """The DAG with this id. Raises NotFound; the message contains the import errors of files that may contain the DAG."""
        if dag_id not in self.dags:
            failed = "; ".join(f"{file}: {said}" for file, said in self.import_errors.items())
            hint = did_you_mean(dag_id, self.dags) or (f" These files cannot be imported: {failed}" if failed else "")
            raise NotFound(f"no file of {self.folder} holds a DAG {dag_id!r}.{hint}")
        return self.dags[dag_id]

    def tasks(self) -> Iterator[BaseOperator]:
        """Every task of every DAG."""
        for dag in self.dags.values():
            yield from dag.task_dict.values()

    def check(self) -> None:
        """Check that every file can be imported without error or warning, and that there is at least one DAG.

        Raises:
            AssertionError: with a line for each problem.
        """
        lines = [f"{file}: {said}" for file, said in self.import_errors.items()]
        lines += [f"{file}: {said}" for file, many in self.import_warnings.items() for said in many]
        if not self.dags and not lines:
            lines.append("no file holds a DAG")
        if lines:
            raise AssertionError("\n".join([f"the DAG folder {self.folder} is not in order:", *lines]))
