"""Versions of DAGs that were read from a bundle with versions: the page that shows them, and their source."""

from __future__ import annotations

from tests.git_server import GitServer
from tests.unit.api.conftest import World
from tradewind.bundles.fetch_child import fetch
from tradewind.bundles.fetch_messages import FetchAnswer, FetchRequest, write_state
from tradewind.model.definition import DagDefinition, TaskDefinition, encode_definition, version_hash
from tradewind.model.rows import ParsedDag, ParsedFile

SOURCES = "/api/v2/dagSources/sales"
VERSIONS = "/api/v2/dags/sales/dagVersions"


def register(world: World, task: str, version: str | None, bundle: str = "repo") -> None:
    data = encode_definition(DagDefinition("sales", tasks=(TaskDefinition(task),), fileloc="sales.py"))
    dag = ParsedDag("sales", data, version_hash(data))
    found = ParsedFile(bundle, "sales.py", version or "h", (dag,), None, 9, False, 1)
    world.store.register_file(found._replace(bundle_version=version), paused_at_creation=True)
    world.run(run_id=f"run of {task}")  # a version without runs is replaced by the next one


def test_each_version_has_its_page_and_its_source(world: World) -> None:
    server = GitServer(world.home / "server")
    bundle = world.config.versioned["repo"]
    commits = []
    for text in ("first", "second"):
        commits.append(server.commit({"dags/sales.py": text}))
        fetch(FetchRequest(bundle.folder, server.bundle(world.home / "unused").spec))
        register(world, text, commits[-1])
    found = world.json(VERSIONS)["dag_versions"]
    assert [(one["bundle_version"], one["bundle_url"]) for one in found] == [
        (commit, f"https://github.com/team/repo/tree/{commit}/dags") for commit in commits
    ]
    assert world.json(f"{VERSIONS}/1")["bundle_url"] == found[0]["bundle_url"]
    first = world.json(f"{SOURCES}?version_number=1")
    assert (first["content"], first["version_number"]) == ("first", 1)
    assert world.get(f"{SOURCES}?version_number=1", headers={"Accept": "text/plain"}).text == "first"
    assert world.json(f"{SOURCES}?version_number=9", status=404)["detail"] == "DAG sales has no version 9"


def test_a_folder_has_no_page_and_only_its_current_source(world: World) -> None:
    register(world, "first", None, "dags")
    register(world, "second", None, "dags")
    assert [one["bundle_url"] for one in world.json(VERSIONS)["dag_versions"]] == [None, None]
    assert "is not kept" in world.json(f"{SOURCES}?version_number=1", status=404)["detail"]


def test_readiness_names_a_bundle_that_cannot_be_fetched_without_the_reason(world: World) -> None:
    assert world.bare("GET", "/api/tradewind/v1/ready").json()["warnings"] == []
    write_state(world.config.versioned["repo"].folder, FetchAnswer(problem="fatal: no such host"))
    (warning,) = world.bare("GET", "/api/tradewind/v1/ready").json()["warnings"]
    assert warning.startswith("the bundle repo cannot be fetched since ")
    assert "no such host" not in warning
