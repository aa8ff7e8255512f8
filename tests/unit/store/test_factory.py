"""A URL chooses the database, and only its dialect is imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tradewind.model.errors import ConfigError, NotFound, StoreError, StoreMismatch
from tradewind.store.backups import inspect_backup
from tradewind.store.factory import open_reader, open_store, split
from tradewind.store.file import first_column


def test_a_path_and_a_url_name_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    open_store(f"sqlite:///{path}").close()
    reader = open_reader(path)
    assert reader.pools()[0].name == "default_pool"
    reader.close()
    assert split("sqlite:///relative.db") == split("relative.db") == ("sqlite", "relative.db")


def test_an_unknown_scheme_is_refused_with_the_possible_ones() -> None:
    with pytest.raises(ConfigError, match="begins with 'sqlit'; possible are: sqlite"):
        open_store("sqlit:///t.db")


def test_importing_the_factory_imports_no_dialect() -> None:
    code = "import sys, tradewind.store.factory; print([name for name in sys.modules if 'sqlite' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_a_backup_is_checked_before_it_is_restored(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="tradewind db backup FILE"):
        inspect_backup(str(tmp_path / "none.db"))
    store = open_store(tmp_path / "t.db")
    copy = str(tmp_path / "copy.db")
    store.back_up(copy)
    assert inspect_backup(copy) == (0, None)
    store.engine.run("UPDATE meta SET value = '999' WHERE key = 'schema'")
    newer = str(tmp_path / "newer.db")
    store.back_up(newer)
    store.close()
    with pytest.raises(StoreMismatch, match="has schema 999"):
        inspect_backup(newer)
    (tmp_path / "text.db").write_text("no database at all, but long enough to be read as one")
    with pytest.raises(StoreError, match="is not a backup of a Tradewind database"):
        inspect_backup(str(tmp_path / "text.db"))


def test_a_query_without_the_store_finds_nothing_where_there_is_no_database(tmp_path: Path) -> None:
    assert first_column(str(tmp_path / "none.db"), "SELECT name FROM pool", ()) == []
    open_store(tmp_path / "t.db").close()
    assert first_column(str(tmp_path / "t.db"), "SELECT name FROM pool", ()) == ["default_pool"]
