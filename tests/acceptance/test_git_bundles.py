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
def standalone(fresh: Standalone, server: GitServer) -> Standalone:
    fresh.environment["TRADEWIND__BUNDLES__LIST"] = f"git+{server.bare}@main#subdir=dags"
    fresh.environment["TRADEWIND__BUNDLES__REFRESH_INTERVAL"] = "1"
    return fresh


def said(standalone: Standalone, run_id: str, dag_id: str = "pinned") -> object:
    return json.loads(standalone.cli("xcom", "get", dag_id, "say", run_id).strip() or "null")


def wait_commit(standalone: Standalone, commit: str, dag_id: str = "pinned") -> None:
    with standalone.store() as store:
        standalone.wait(lambda: store.need_dag(dag_id).bundle_version == commit, f"{dag_id} is at {commit}")


def test_a_mistake_in_the_setting_is_shown_before_any_process_starts(tmp_path: Path) -> None:
    standalone = Standalone(tmp_path / "home", environment={"TRADEWIND__BUNDLES__LIST": "r=https://host/x"})
    done = standalone.run("standalone", "--port", "0")
    assert done.returncode == 1
    assert "must be git+URL@branch" in done.stderr
    assert "Web page" not in done.stdout


def test_a_cleared_run_runs_its_own_commit(standalone: Standalone, server: GitServer) -> None:
    first = server.commit(files("one"))
    with standalone.started():
        standalone.wait_dag("pinned")
        old = standalone.trigger("pinned")
        assert (standalone.wait_run("pinned", old), said(standalone, old)) == ("success", "one")
        second = server.commit(files("two"))  # only a module that the DAG file imports
        wait_commit(standalone, second)
        new = standalone.trigger("pinned")
        assert (standalone.wait_run("pinned", new), said(standalone, new)) == ("success", "two")
        shutil.rmtree(standalone.home / "dag_bundles" / "repo" / "versions" / first)  # somebody tidied up
        standalone.cli("tasks", "clear", "pinned", "--run-id", old, "--yes")
        with standalone.store() as store:
            standalone.wait(lambda: store.task_instance("pinned", old, "say").try_number == 2, "the second try")
        assert (standalone.wait_run("pinned", old), said(standalone, old)) == ("success", "one")
        standalone.cli("tasks", "clear", "pinned", "--run-id", old, "--latest-version", "--yes")
        with standalone.store() as store:
            standalone.wait(lambda: store.task_instance("pinned", old, "say").try_number == 3, "the third try")
        assert (standalone.wait_run("pinned", old), said(standalone, old)) == ("success", "two")
        called = standalone.home / "called"  # the callbacks of a run are of its commit, too
        standalone.wait(lambda: called.exists() and len(called.read_text().split()) == 4, "four callbacks")
        assert called.read_text().split() == ["one", "two", "one", "two"]


def test_a_repository_that_fails_stops_no_other(standalone: Standalone, server: GitServer, tmp_path: Path) -> None:
    standalone.environment["TRADEWIND__BUNDLES__LIST"] += f" gone=git+{tmp_path}/none.git"
    standalone.write_dag(
        "plain.py", DAG.format(dag_id="plain", more="").replace("import word\n", "class word: WORD = 'plain'\n")
    )
    server.commit(files("one"))
    with standalone.started():
        standalone.wait_dag("pinned")
        standalone.wait_dag("plain")
        standalone.wait_line("a bundle cannot be fetched; its last version stays in use")
        server.bare.rename(server.bare.with_name("away"))
    with standalone.started():  # the last version is used without the repository
        run_id = standalone.trigger("pinned")
        assert (standalone.wait_run("pinned", run_id), said(standalone, run_id)) == ("success", "one")


def test_runs_follow_the_newest_commit_where_the_dag_says_so(standalone: Standalone, server: GitServer) -> None:
    def following(value: str) -> dict[str, str]:
        dag = DAG.format(dag_id="following", more=", disable_bundle_versioning=True")
        return {"dags/following.py": dag, "dags/word.py": f"WORD = {value!r}\n"}

    server.commit(following("one"))
    with standalone.started():
        standalone.wait_dag("following")
        run_id = standalone.trigger("following")
        assert standalone.wait_run("following", run_id) == "success"
        wait_commit(standalone, server.commit(following("two")), "following")
        standalone.cli("tasks", "clear", "following", "--run-id", run_id, "--yes")
        with standalone.store() as store:
            standalone.wait(lambda: store.task_instance("following", run_id, "say").try_number == 2, "the second try")
        assert (standalone.wait_run("following", run_id), said(standalone, run_id, "following")) == ("success", "two")


def test_two_bundles_with_the_same_dag_id_are_an_error_that_names_both(
    standalone: Standalone, server: GitServer, tmp_path: Path
) -> None:
    other = GitServer(tmp_path / "other")
    standalone.environment["TRADEWIND__BUNDLES__LIST"] += f" other=git+{other.bare}"
    server.commit(files("one"))
    with standalone.started():
        standalone.wait_dag("pinned")
        other.commit({"copy.py": DAG.format(dag_id="pinned", more=""), "word.py": "WORD = 3\n"})
        with standalone.store() as store:
            problem = standalone.wait(lambda: store.import_problems().get(("other", "copy.py")), "the import error")
        assert "pinned.py of the bundle repo" in problem.message
        assert "copy.py" in problem.message
