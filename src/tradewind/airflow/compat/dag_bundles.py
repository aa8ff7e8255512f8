"""`airflow.dag_processing.bundles.base`: the base class of bundle classes of provider packages and of plugins.

A program can create and use such a bundle itself. Tradewind does not: its services read the entries of
`dag_bundle_config_list` with their own code (`tradewind.bundles`).
"""

from __future__ import annotations

import abc
import fcntl
import logging
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tradewind.sdk.conf import conf

__all__ = ["BaseDagBundle", "BundleVersion", "get_bundle_storage_root_path"]

log = logging.getLogger(__name__)

_REFRESH_INTERVAL_S = 300
"""The default of Airflow's setting `[dag_processor] refresh_interval`."""


class BundleVersion(NamedTuple):
    """A version of a bundle, and more facts about it."""

    version: str
    data: dict[str, Any] | None = None


def get_bundle_storage_root_path() -> Path:
    """The folder of all bundles: `[dag_processor] dag_bundle_storage_path`, or one in the folder for temporary files."""
    configured = conf.get("dag_processor", "dag_bundle_storage_path", fallback=None)
    return Path(configured) if configured else Path(tempfile.gettempdir(), "airflow", "dag_bundles")


class BaseDagBundle(abc.ABC):
    """A place with DAG files: subclasses define `path`, `get_current_version` and `refresh`.

    Args:
        name: the name of the bundle.
        refresh_interval: seconds between two refreshes.
        version: the version that this object stands for; None: the newest.
        view_url_template: the address of a page about a version, with `{version}`.
    """

    supports_versioning: bool = False
    _locked: bool = False

    def __init__(
        self,
        *,
        name: str,
        refresh_interval: int = _REFRESH_INTERVAL_S,
        version: str | None = None,
        view_url_template: str | None = None,
    ) -> None:
        self.name = name
        self.refresh_interval = refresh_interval
        self.version = version
        self.is_initialized = False
        self.base_dir = get_bundle_storage_root_path() / name
        self.versions_dir = self.base_dir / "versions"
        self._view_url_template = view_url_template

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name})"

    def initialize(self) -> None:
        """Make the files available. Subclasses call this at the end of their own method."""
        self.is_initialized = True
        if not self.path.exists():
            log.warning("Bundle '%s' path does not exist: %s. Its DAG files cannot be read", self.name, self.path)

    @property
    @abc.abstractmethod
    def path(self) -> Path:
        """The folder of the DAG files."""

    @abc.abstractmethod
    def get_current_version(self) -> str | BundleVersion | None:
        """The version of the files in `path`; None if the bundle has no versions."""

    @abc.abstractmethod
    def refresh(self) -> None:
        """Fetch the newest files."""

    def view_url(self, version: str | None = None) -> str | None:
        """The address of a page about a version. An older name; subclasses define `view_url_template` today."""
        message = (
            "The 'view_url' method is deprecated and will be removed in a future version. Use 'view_url_template' instead."
        )
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return None

    def view_url_template(self) -> str | None:
        """The address of a page about a version, with `{version}`; None if there is none."""
        return self._view_url_template

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Let only one process at a time work on the files of this bundle."""
        if self._locked:
            yield
            return
        folder = get_bundle_storage_root_path() / "_locks"
        folder.mkdir(parents=True, exist_ok=True)
        with Path(folder, f"{self.name}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # the time limit of the task or program that asks for it applies
            self._locked = True
            try:
                yield
            finally:
                self._locked = False
                fcntl.flock(file, fcntl.LOCK_UN)
