"""DAGs, their versions, and the files that define them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from tradewind.model.definition import DagDefinition
from tradewind.model.rows import DagPlan, ImportProblem, ParsedFile, Removed, Skipped, UnreadFiles


class DagBundle(NamedTuple):
    """The bundle and the version of a DAG. With the accounts, they decide who may use the DAG."""

    dag_id: str
    bundle: str
    version: int


class DagFacts(NamedTuple):
    """A DAG as user code reads it with a query of Airflow's table `DagModel`. Moments are microseconds."""

    dag_id: str
    bundle: str
    file: str
    is_paused: bool
    is_active: bool
    has_import_errors: bool
    description: str | None
    owners: str
    tags: tuple[str, ...]
    schedule: str | None
    """The schedule as text."""
    max_active_runs: int
    next_logical_date: int | None
    next_start: int | None
    next_end: int | None
    next_run_after: int | None


class DagReader(Protocol):
    """Reads DAGs."""

    def dag_bundles(self, dag_ids: Sequence[str] | None = None) -> list[DagBundle]:
        """The bundles of these DAGs, or of all DAGs. Ids that do not exist are left out."""

    def dag_ids_of_file(self, bundle: str, file: str) -> list[str]:
        """Ids of the DAGs that a file defines or defined last, sorted. Empty: no DAG names this file."""

    def access_control(self, version: int) -> dict[str, tuple[str, ...]]:
        """`access_control` of a version of a DAG: role → grant actions (`model.accounts.GRANT_ACTIONS`)."""

    def definition(self, version: int) -> DagDefinition:
        """The definition of a version. Raises NotFound."""

    def current_definition(self, dag_id: str) -> DagDefinition:
        """The definition of a DAG's current version. Raises NotFound with the nearest DAG id."""

    def dag_ids(self) -> list[str]:
        """Ids of all DAGs, including inactive ones, sorted."""

    def dag(self, dag_id: str) -> DagPlan | None:
        """The plan of a DAG."""

    def need_dag(self, dag_id: str) -> DagPlan:
        """The plan of a DAG. Raises NotFound with the nearest DAG id; NotReadYet while DAG files are being read."""

    def unread_files(self) -> UnreadFiles | None:
        """How many DAG files the parser has not read yet; None: it has read all files."""

    def plans(self) -> list[DagPlan]:
        """The plans of all DAGs, by id."""

    def dag_facts(self, at_most: int) -> list[DagFacts]:
        """All DAGs with what their lists show, by id, including inactive ones."""

    def skipped(self, dag_id: str, limit: int | None = None) -> list[Skipped]:
        """Intervals of the DAG's schedule for which no run was created, the latest first."""

    def known_files(self, bundle: str) -> dict[str, tuple[str, bool]]:
        """File → (hash of its last good content, whether its definitions depend on more than its content).

        Only files with an active DAG or an import error. The hash is empty if the file must be parsed in any case: it has an
        import error, or its DAGs come from different contents.
        """

    def import_problems(self) -> dict[tuple[str, str], ImportProblem]:
        """(bundle, file) → its import error."""

    def plugins(self) -> str:
        """The last argument of `set_plugins`; `[]` if there was none."""


class DagStore(Protocol):
    """Writes DAGs."""

    def register_file(self, parsed: ParsedFile, *, paused_at_creation: bool) -> list[str]:
        """Store the result of parsing a file. Returns the ids of the DAGs whose plan changed.

        A file with an import error keeps its last good versions. A DAG id that another active file has is refused: the first file
        keeps it. A DAG that the file no longer contains becomes inactive; its runs finish on their version.
        """

    def move_to_bundle_version(self, bundle: str, version: str, files: Mapping[str, str]) -> list[str]:
        """Record that files (name → stored hash) are the same in this version. Returns the ids of the DAGs that moved."""

    def used_bundle_versions(self, bundle: str) -> list[str]:
        """The versions of a bundle that are still needed: by unfinished runs, and by the next runs of its DAGs."""

    def forget_files(self, bundle: str, files: list[str], at: int) -> list[str]:
        """Deactivate the DAGs of deleted files, and delete the files' import errors. Returns the ids of the DAGs."""

    def note_unread_files(self, bundle: str, unread: UnreadFiles) -> None:
        """Store how many files of a bundle the parser has not read yet. See `unread_files`."""

    def forget_unread_files(self) -> None:
        """Forget what an earlier parser has noted: it may have been killed before it had read all files."""

    def set_plugins(self, listed: str) -> None:
        """Store the plugins: JSON, a list of `sdk.plugins.describe_plugin`."""

    def set_paused(self, dag_id: str, paused: bool, actor: str, at: int) -> bool:
        """Pause or unpause a DAG. Returns whether this changed anything. Raises NotFound with the nearest DAG id."""

    def set_favorite(self, dag_id: str, user: str, is_favorite: bool) -> None:
        """Add a DAG to the favorites of a user, or remove it from them.

        Raises:
            NotFound: there is no such DAG; the message has the nearest id.
            Conflict: it is not a favorite.
        """

    def delete_dag(self, dag_id: str, actor: str, at: int, at_most: int = 20) -> tuple[Removed, bool]:
        """Delete up to `at_most` finished runs of a DAG, then the DAG itself; whether the DAG is gone.

        Raises:
            NotFound: there is no such DAG.
            Conflict: it has runs that have not ended.
        """
