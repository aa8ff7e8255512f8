"""A reader that is limited to some DAGs shows nothing of the others, in no table."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tradewind.model.definition import DagDefinition, TaskDefinition, encode_definition, version_hash
from tradewind.model.errors import NotFound
from tradewind.model.rows import NewRun, ParsedDag, ParsedFile
from tradewind.model.states import RunType
from tradewind.store.factory import open_reader, open_store
from tradewind.store.memory import empty_database
from tradewind.store.sql.visible_dags import CONDITIONS

WITHOUT_DAGS = {
    "meta",
    "op",
    "pool",
    "variable",
    "connection",
    "scheduler",
    "scheduler_lease",
    "worker_host",
    "worker_gateway",
    "asset",
    "asset_alias",
    "asset_alias_member",
    "asset_watcher",
    "job",
    "revoked_token",
}
"""Tables whose rows belong to no DAG."""


def test_every_table_is_limited_or_belongs_to_no_dag() -> None:
    rows = empty_database().rows("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    tables: dict[str, str] = dict(rows)
    assert tables.keys() - CONDITIONS.keys() - WITHOUT_DAGS == set(), (
        "say in visible_dags.py who may see the rows of a new table"
    )
    assert CONDITIONS.keys() - tables.keys() == set()
    named = {table for table, sql in tables.items() if re.search(r"\b(dag_id|run) ", sql)}
    assert named - CONDITIONS.keys() == set()


@pytest.fixture(params=["file", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a store with two DAGs."""
    with_dags = request.getfixturevalue("postgres_url") if request.param == "postgres" else str(tmp_path / "tradewind.db")
    store = open_store(with_dags, synchronous="NORMAL")
    for dag_id in ("ours", "theirs"):
        data = encode_definition(DagDefinition(dag_id, tasks=(TaskDefinition("t"),), access_control={"Op": ("edit",)}))
        parsed = ParsedDag(dag_id, data, version_hash(data))
        store.register_file(ParsedFile("dags", f"{dag_id}.py", "h", (parsed,), None, 9, False, 1), paused_at_creation=False)
        version = store.need_dag(dag_id).version
        store.create_run(
            NewRun(
                dag_id=dag_id,
                run_id="r",
                run_type=RunType.MANUAL,
                version=version,
                logical_date=None,
                interval_start=None,
                interval_end=None,
                run_after=1,
                at=1,
                triggered_by="cli",
                triggering_user="",
                conf=None,
            )
        )
    store.close()
    return str(with_dags)


def test_a_limited_reader_shows_its_dags_only(url: str) -> None:
    reader = open_reader(url)
    for visible in (frozenset({"ours"}), frozenset({"theirs"}), frozenset[str]()):
        reader.show_only(visible)
        assert {row.dag_id for row in reader.list_dags().rows} == visible
        runs = reader.list_runs()
        assert {row.dag_id for row in runs.rows} == visible
        assert runs.total == len(visible)
        for dag_id in ("ours", "theirs"):
            if dag_id not in visible:
                with pytest.raises(NotFound, match=r"no DAG") as error:
                    reader.need_dag(dag_id)
                assert not any(f"mean '{other}'" in str(error.value) for other in {"ours", "theirs"} - visible)
        assert len(reader.list_task_instances(states=["none"]).rows) <= len(visible)
        reader.list_pools()  # its statement has an index hint, which a view cannot have
    reader.close()


def test_places_and_access_control_of_dags(url: str) -> None:
    reader = open_reader(url)
    (place,) = reader.dag_bundles(["theirs", "nobody"])
    assert (place.dag_id, place.bundle, reader.access_control(place.version)) == ("theirs", "dags", {"Op": ("edit",)})
    assert {one.dag_id for one in reader.dag_bundles()} == {"ours", "theirs"}
    assert reader.access_control(999) == {}
    reader.close()
