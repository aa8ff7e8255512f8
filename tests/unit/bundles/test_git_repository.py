"""Copies of git repositories: versions, force-pushes, missing branches, credentials, and processes that are killed or hang."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.chaos.world import has_ended, until
from tests.git_server import GitServer
from tradewind.bundles.fetch_child import fetch
from tradewind.bundles.fetch_messages import FetchAnswer, FetchRequest, state_of
from tradewind.bundles.fetches import Fetch
from tradewind.bundles.git_repository import GitRepository
from tradewind.bundles.specs import VersionedBundle
from tradewind.bundles.version_folders import VERSIONS_KEPT, FetchFailed, disk_space
from tradewind.model.moments import SECOND
from tradewind.platform.clock import SystemClock
from tradewind.platform.loop import Loop

ABSENT = "0" * 40


@pytest.fixture
def server(tmp_path: Path) -> GitServer:
    return GitServer(tmp_path / "server")


@pytest.fixture
def bundle(server: GitServer, tmp_path: Path) -> VersionedBundle:
    return server.bundle(tmp_path / "bundles" / "repo")


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop(SystemClock())
    yield loop
    loop.close()


def refreshed(bundle: VersionedBundle, **facts: Any) -> FetchAnswer:
    return fetch(FetchRequest(bundle.folder, bundle.spec, **facts))


def read(bundle: VersionedBundle, version: str, name: str = "a.py") -> str:
    return Path(bundle.files(version), name).read_text()


def with_ref(bundle: VersionedBundle, ref: str) -> VersionedBundle:
    return msgspec.structs.replace(bundle, spec=msgspec.structs.replace(bundle.spec, ref=ref))


def test_each_commit_is_a_folder_that_stays(server: GitServer, bundle: VersionedBundle) -> None:
    first = server.commit({"dags/a.py": "1", "other.txt": "beside"})
    assert refreshed(bundle) == FetchAnswer(first)
    second = server.commit({"dags/a.py": "2"})
    assert refreshed(bundle) == FetchAnswer(second)
    assert (read(bundle, first), read(bundle, second)) == ("1", "2")
    assert (bundle.newest_version(), Path(bundle.newest, "a.py").read_text()) == (second, "2")
    assert Path(bundle.files(second), "../other.txt").read_text() == "beside"
    assert not Path(bundle.files(second), "../.git").exists()
    assert state_of(bundle.folder).version == second


def test_a_commit_outlives_a_force_push_and_its_folder_is_made_again(server: GitServer, bundle: VersionedBundle) -> None:
    server.commit({"readme": "first"})
    lost = server.commit({"dags/a.py": "lost"})
    refreshed(bundle)
    server.commit({"dags/a.py": "new"}, amend=True)
    refreshed(bundle)
    folder = Path(bundle.folder, "versions", lost)
    subprocess.run(["git", "--git-dir", f"{bundle.folder}/repository.git", "gc", "--quiet", "--prune=now"], check=True)
    subprocess.run(["rm", "-r", str(folder)], check=True)
    server.bare.rename(server.bare.with_name("away"))  # without the network
    assert refreshed(bundle, version=lost) == FetchAnswer(lost)
    assert read(bundle, lost) == "lost"


def test_tags_and_commits_can_be_followed(server: GitServer, bundle: VersionedBundle) -> None:
    first = server.commit({"dags/a.py": "1"})
    server.git("tag", "-a", "v1", "-m", "release")
    server.git("push", "--quiet", "origin", "v1")
    server.commit({"dags/a.py": "2"})
    assert [refreshed(with_ref(bundle, ref)).version for ref in ("v1", first)] == [first, first]


def test_a_deleted_branch_keeps_the_last_version_and_says_so(server: GitServer, bundle: VersionedBundle) -> None:
    server.commit({"dags/a.py": "main"})
    server.git("checkout", "--quiet", "-b", "work")
    commit = server.commit({"dags/a.py": "work"})
    followed = with_ref(bundle, "work")
    assert refreshed(followed).version == commit
    server.git("push", "--quiet", "origin", "--delete", "work")
    problem = refreshed(followed).problem
    assert "no branch, tag or commit 'work'" in problem
    assert "main" in problem
    assert (bundle.newest_version(), read(bundle, commit)) == (commit, "work")


def test_an_unknown_repository_and_a_missing_commit_are_problems(bundle: VersionedBundle, tmp_path: Path) -> None:
    gone = msgspec.structs.replace(bundle, spec=msgspec.structs.replace(bundle.spec, place=str(tmp_path / "none")))
    assert "git fetch failed" in refreshed(gone).problem
    assert "is not in the copy" in refreshed(bundle, version=ABSENT).problem
    assert "is no commit" in refreshed(bundle, version="../../etc").problem


def test_submodules_and_large_files_are_named(server: GitServer, bundle: VersionedBundle) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    server.commit({".gitattributes": "*.bin filter=lfs\n", "data.bin": pointer, ".gitmodules": '[submodule "x"]\n'})
    warnings = refreshed(bundle).warnings
    assert any("no folder 'dags'" in one for one in warnings)
    assert any("submodules" in one for one in warnings)
    assert any("in Git LFS: 1 file," in one and "data.bin" in one for one in warnings)


def test_old_folders_are_deleted_but_not_those_in_use(server: GitServer, bundle: VersionedBundle) -> None:
    commits = []
    for number in range(VERSIONS_KEPT + 3):
        commits.append(server.commit({"dags/a.py": str(number)}))
        refreshed(bundle, used=commits[:1])
        os.utime(Path(bundle.folder, "versions", commits[-1]), (number, number))
    there = [commit for commit in commits if os.path.isdir(bundle.files(commit))]
    assert there == [commits[0], *commits[-VERSIONS_KEPT:]]


def test_a_bundle_that_is_too_large_loses_its_oldest_unused_folders_first(server: GitServer, bundle: VersionedBundle) -> None:
    commits = []
    for number in range(5):
        commits.append(server.commit({"dags/a.py": str(number), "data": os.urandom(100_000).hex()}))
        refreshed(bundle)
        os.utime(Path(bundle.folder, "versions", commits[-1]), (number, number))
    one = disk_space(str(Path(bundle.folder, "versions", commits[0])))
    most = disk_space(f"{bundle.folder}/repository.git") + 3 * one + one // 2
    assert refreshed(bundle, version=commits[-1], used=commits[:1], bytes_max=most).warnings == []
    assert [commit for commit in commits if os.path.isdir(bundle.files(commit))] == [commits[0], *commits[-2:]]


def test_commits_that_no_branch_has_are_the_last_to_go(server: GitServer, bundle: VersionedBundle) -> None:
    server.commit({"readme": "first"})
    commits = []
    for text in ("lost", "used", "newest"):
        commits.append(server.commit({"dags/a.py": text}, amend=True))
        refreshed(bundle)
    lost, used, newest = commits
    (warning,) = refreshed(bundle, version=newest, used=[used], bytes_max=10).warnings
    assert "more than bundles.max_mb" in warning
    assert "2 versions are in use" in warning
    subprocess.run(["rm", "-r", f"{bundle.folder}/versions/{used}"], check=True)
    assert refreshed(bundle, version=used) == FetchAnswer(used)
    assert "is not in the copy" in refreshed(bundle, version=lost).problem
    assert read(bundle, newest) == "newest"


def test_a_fetch_that_does_not_know_what_is_used_deletes_nothing(server: GitServer, bundle: VersionedBundle) -> None:
    for number in range(VERSIONS_KEPT + 2):
        server.commit({"dags/a.py": str(number)})
        refreshed(bundle)
    assert len(list(Path(bundle.folder, "versions").iterdir())) == VERSIONS_KEPT + 2


def test_what_killed_processes_left_is_deleted(server: GitServer, bundle: VersionedBundle) -> None:
    commit = server.commit({"dags/a.py": "1"})
    refreshed(bundle)
    versions = Path(bundle.folder, "versions")
    (versions / ".new-killed" / "dags").mkdir(parents=True)
    (versions / ".new-killed.index.lock").touch()
    (versions / f".gone-{ABSENT}").mkdir()
    refreshed(bundle, used=[])
    assert [one.name for one in versions.iterdir()] == [commit]


def test_secrets_are_in_no_command_line_and_no_message(bundle: VersionedBundle, tmp_path: Path) -> None:
    connection = {"password": "s3cret", "login": "me", "extra": {"ssh_port": 2222, "known_hosts_file": "/k h"}}
    repository = GitRepository(bundle.folder, bundle.spec, connection)
    given = repository._credentials(str(tmp_path))
    assert "s3cret" not in given["GIT_SSH_COMMAND"]
    assert "StrictHostKeyChecking=accept-new" in given["GIT_SSH_COMMAND"]
    assert "-o 'UserKnownHostsFile=/k h' -p 2222" in given["GIT_SSH_COMMAND"]
    script = Path(given["GIT_ASKPASS"])
    assert "s3cret" not in script.read_text()
    answers = [
        subprocess.run([script, question], env=given, capture_output=True, text=True, check=True).stdout
        for question in ("Username for 'https://host': ", "Password for 'https://me@host': ")
    ]
    assert answers == ["me\n", "s3cret\n"]
    assert repository._without_secrets("fatal: s3cret is wrong") == "fatal: *** is wrong"


def test_the_extra_of_a_connection_is_stored_as_a_text(server: GitServer, bundle: VersionedBundle) -> None:
    commit = server.commit({"dags/a.py": "1"})
    assert refreshed(bundle, connection={"extra": '{"ssh_port": 22}', "password": None}) == FetchAnswer(commit)
    assert refreshed(bundle, connection={"extra": None}) == FetchAnswer(commit)
    assert "no JSON object" in refreshed(bundle, connection={"extra": "[1]"}).problem
    assert "no JSON object" in refreshed(bundle, connection={"extra": "{"}).problem


def test_a_private_key_of_the_connection_is_a_private_file(bundle: VersionedBundle, tmp_path: Path) -> None:
    extra = {"private_key": "KEY", "private_key_passphrase": "word"}
    given = GitRepository(bundle.folder, bundle.spec, {"extra": extra})._credentials(str(tmp_path))
    key = tmp_path / "key"
    assert (key.read_text(), key.stat().st_mode & 0o777) == ("KEY\n", 0o600)
    assert f"-i {key} -o IdentitiesOnly=yes" in given["GIT_SSH_COMMAND"]
    assert (given["TRADEWIND_GIT_SECRET"], given["SSH_ASKPASS_REQUIRE"]) == ("word", "force")
    with pytest.raises(FetchFailed, match="keep one"):
        GitRepository(bundle.folder, bundle.spec, {"extra": {**extra, "key_file": "/k"}})._credentials(str(tmp_path / "2"))


def run_fetch(loop: Loop, request: FetchRequest, deadline: int) -> FetchAnswer:
    answers: list[FetchAnswer] = []

    def done(answer: FetchAnswer) -> None:
        answers.append(answer)
        loop.stop()

    Fetch(loop, request, deadline, done)
    loop.run()
    return answers[0]


def test_a_fetch_runs_in_a_process_of_its_own(server: GitServer, bundle: VersionedBundle, loop: Loop) -> None:
    commit = server.commit({"dags/a.py": "1"})
    assert run_fetch(loop, FetchRequest(bundle.folder, bundle.spec), 60 * SECOND) == FetchAnswer(commit)


def test_a_fetch_that_hangs_is_killed_with_git(
    bundle: VersionedBundle, loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "never")
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text(f"#!/bin/sh\necho $$ >> {tmp_path}/pids\nexec cat {tmp_path}/never\n")
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{git.parent}:{os.environ['PATH']}")
    answer = run_fetch(loop, FetchRequest(bundle.folder, bundle.spec), 2 * SECOND)
    assert answer.problem == "it took longer than 2 s"
    for pid in (tmp_path / "pids").read_text().split():
        until(f"process {pid} has ended", 20, partial(has_ended, int(pid)))  # a killed process needs a moment


@pytest.mark.parametrize("place", ["bundles.before_version", "bundles.after_version"])
def test_a_killed_fetch_is_repeated_by_the_next(
    place: str, server: GitServer, bundle: VersionedBundle, loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = server.commit({"dags/a.py": "1"})
    refreshed(bundle)
    second = server.commit({"dags/a.py": "2"})
    monkeypatch.setenv("TRADEWIND_FAILPOINTS", f"{place}=kill9")
    assert "ended with the code" in run_fetch(loop, FetchRequest(bundle.folder, bundle.spec), 60 * SECOND).problem
    assert (bundle.newest_version(), read(bundle, first)) == (first, "1")
    monkeypatch.delenv("TRADEWIND_FAILPOINTS")
    assert refreshed(bundle).version == second
    assert read(bundle, second) == "2"
