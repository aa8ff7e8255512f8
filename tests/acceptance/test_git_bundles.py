"""DAG files from a git repository, with the real fetch, parser, scheduler and tasks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.acceptance.harness import Standalone
from tests.git_server import GitServer

DAG = """
from tradewind import DAG, task

import word


def note(context):
    import os

    with open(os.path.expandvars("$TRADEWIND_HOME/called"), "a") as file:
        file.write(word.WORD + " ")


with DAG({dag_id!r}, schedule=None, on_success_callback=note, is_paused_upon_creation=False{more}):

    @task
    def say():
        return word.WORD

    say()
"""


def files(value: str) -> dict[str, str]:
    return {"dags/pinned.py": DAG.format(dag_id="pinned", more=""), "dags/word.py": f"WORD = {value!r}\n"}


@pytest.fixture
def server(tmp_path: Path) -> GitServer:
    return GitServer(tmp_path / "server")


@pytest.fixture
def house(fresh: Standalone, server: GitServer) -> Standalone:
    fresh.environment["TRADEWIND__BUNDLES__LIST"] = f"git+{server.bare}@main#subdir=dags"
    fresh.environment["TRADEWIND__BUNDLES__REFRESH_INTERVAL"] = "1"
    return fresh


def said(house: Standalone, run_id: str, dag_id: str = "pinned") -> object:
    return json.loads(house.cli("xcom", "get", dag_id, "say", run_id).strip() or "null")


def wait_commit(house: Standalone, commit: str, dag_id: str = "pinned") -> None:
    with house.store() as store:
        house.wait(lambda: store.need_dag(dag_id).bundle_version == commit, f"{dag_id} is at {commit}")


def test_a_mistake_in_the_setting_is_shown_before_any_process_starts(tmp_path: Path) -> None:
    house = Standalone(tmp_path / "home", environment={"TRADEWIND__BUNDLES__LIST": "r=https://host/x"})
    done = house.run("standalone", "--port", "0")
    assert done.returncode == 1
    assert "must be git+URL@branch" in done.stderr
    assert "Web page" not in done.stdout


def test_a_cleared_run_runs_its_own_commit(house: Standalone, server: GitServer) -> None:
    first = server.commit(files("one"))
    with house.started():
        house.wait_dag("pinned")
        old = house.trigger("pinned")
        assert (house.wait_run("pinned", old), said(house, old)) == ("success", "one")
        second = server.commit(files("two"))  # only a module that the DAG file imports
        wait_commit(house, second)
        new = house.trigger("pinned")
        assert (house.wait_run("pinned", new), said(house, new)) == ("success", "two")
        shutil.rmtree(house.home / "dag_bundles" / "repo" / "versions" / first)  # somebody tidied up
        house.cli("tasks", "clear", "pinned", "--run-id", old, "--yes")
        with house.store() as store:
            house.wait(lambda: store.task_instance("pinned", old, "say").try_number == 2, "the second try")
        assert (house.wait_run("pinned", old), said(house, old)) == ("success", "one")
        house.cli("tasks", "clear", "pinned", "--run-id", old, "--latest-version", "--yes")
        with house.store() as store:
            house.wait(lambda: store.task_instance("pinned", old, "say").try_number == 3, "the third try")
        assert (house.wait_run("pinned", old), said(house, old)) == ("success", "two")
        called = house.home / "called"  # the callbacks of a run are of its commit, too
        house.wait(lambda: called.exists() and len(called.read_text().split()) == 4, "four callbacks")
        assert called.read_text().split() == ["one", "two", "one", "two"]


def test_a_repository_that_fails_stops_no_other(house: Standalone, server: GitServer, tmp_path: Path) -> None:
    house.environment["TRADEWIND__BUNDLES__LIST"] += f" gone=git+{tmp_path}/none.git"
    house.write_dag("plain.py", DAG.format(dag_id="plain", more="").replace("import word\n", "class word: WORD = 'plain'\n"))
    server.commit(files("one"))
    with house.started():
        house.wait_dag("pinned")
        house.wait_dag("plain")
        house.wait_line("a bundle cannot be fetched; its last version stays in use")
        server.bare.rename(server.bare.with_name("away"))
    with house.started():  # the last version is used without the repository
        run_id = house.trigger("pinned")
        assert (house.wait_run("pinned", run_id), said(house, run_id)) == ("success", "one")


def test_runs_follow_the_newest_commit_where_the_dag_says_so(house: Standalone, server: GitServer) -> None:
    def following(value: str) -> dict[str, str]:
        dag = DAG.format(dag_id="following", more=", disable_bundle_versioning=True")
        return {"dags/following.py": dag, "dags/word.py": f"WORD = {value!r}\n"}

    server.commit(following("one"))
    with house.started():
        house.wait_dag("following")
        run_id = house.trigger("following")
        assert house.wait_run("following", run_id) == "success"
        wait_commit(house, server.commit(following("two")), "following")
        house.cli("tasks", "clear", "following", "--run-id", run_id, "--yes")
        with house.store() as store:
            house.wait(lambda: store.task_instance("following", run_id, "say").try_number == 2, "the second try")
        assert (house.wait_run("following", run_id), said(house, run_id, "following")) == ("success", "two")


def test_two_bundles_with_the_same_dag_id_are_an_error_that_names_both(
    house: Standalone, server: GitServer, tmp_path: Path
) -> None:
    other = GitServer(tmp_path / "other")
    house.environment["TRADEWIND__BUNDLES__LIST"] += f" other=git+{other.bare}"
    server.commit(files("one"))
    with house.started():
        house.wait_dag("pinned")
        other.commit({"copy.py": DAG.format(dag_id="pinned", more=""), "word.py": "WORD = 3\n"})
        with house.store() as store:
            problem = house.wait(lambda: store.import_problems().get(("other", "copy.py")), "the import error")
        assert "pinned.py of the bundle repo" in problem.message
        assert "copy.py" in problem.message
