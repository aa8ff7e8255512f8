"""`BaseDagBundle`, as bundle classes of provider packages subclass it."""

from __future__ import annotations

import fcntl
import logging
from pathlib import Path

import pytest

import tradewind.airflow  # noqa: F401  serves the namespace

from airflow.dag_processing.bundles.base import BaseDagBundle  # isort: skip


class Folder(BaseDagBundle):
    supports_versioning = True

    @property
    def path(self) -> Path:
        folder: Path = self.base_dir / "dags"
        return folder

    def get_current_version(self) -> str:
        return "v1"

    def refresh(self) -> None:
        self.path.mkdir(parents=True)


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH", str(tmp_path))
    return tmp_path


def test_a_bundle_has_its_folder_below_the_setting(storage: Path, caplog: pytest.LogCaptureFixture) -> None:
    bundle = Folder(name="mine", view_url_template="https://host/{version}")
    assert (bundle.base_dir, bundle.versions_dir) == (storage / "mine", storage / "mine" / "versions")
    assert (bundle.view_url_template(), bundle.is_initialized, repr(bundle)) == (
        "https://host/{version}",
        False,
        "Folder(name=mine)",
    )
    with caplog.at_level(logging.WARNING):
        bundle.initialize()
    assert bundle.is_initialized
    assert str(bundle.path) in caplog.text
    caplog.clear()
    bundle.refresh()
    bundle.initialize()
    assert caplog.text == ""
    with pytest.warns(DeprecationWarning, match="view_url_template"):
        assert bundle.view_url() is None


def test_only_one_object_has_the_lock(storage: Path) -> None:
    bundle = Folder(name="mine")
    with bundle.lock(), bundle.lock(), Path(storage, "_locks", "mine.lock").open("w") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with bundle.lock():
        pass


def test_a_subclass_has_to_define_its_methods() -> None:
    with pytest.raises(TypeError, match="abstract"):
        BaseDagBundle(name="x")
