"""A private repository over HTTPS: the token of the connection, a wrong token, and an unknown certificate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.git_https import GitHttps
from tests.git_server import GitServer
from tradewind.bundles.fetch_child import fetch
from tradewind.bundles.fetch_messages import FetchAnswer, FetchRequest
from tradewind.bundles.report import advice


def test_a_private_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))  # no credentials of the person who runs the tests
    server = GitServer(tmp_path / "server")
    commit = server.commit({"dags/a.py": "1"})
    bundle = server.bundle(tmp_path / "bundle")
    with GitHttps(server.bare.parent, tmp_path / "tls", "oauth2", "s3cret") as https:
        spec = msgspec.structs.replace(bundle.spec, place=f"{https.address}/{server.bare.name}", conn_id="git_repo")

        def fetched(**connection: Any) -> FetchAnswer:
            return fetch(FetchRequest(bundle.folder, spec, connection=connection))

        unknown = fetched(login="oauth2", password="s3cret").problem
        assert "certificate" in unknown.lower()
        monkeypatch.setenv("GIT_SSL_CAINFO", str(https.certificate))
        assert https.asked == 0
        for wrong in ({}, {"login": "oauth2", "password": "wr0ng"}):
            problem = fetched(**wrong).problem
            assert "wr0ng" not in problem
            assert advice(problem, "git_repo") == "check the credentials in the connection 'git_repo'"
        assert (https.asked, https.refused > 0) == (0, True)
        assert fetched(login="oauth2", password="s3cret", extra=json.dumps({"unused": 1})) == FetchAnswer(commit)
        assert https.asked > 0
    assert Path(bundle.files(commit), "a.py").read_text() == "1"
    assert "s3cret" not in (Path(bundle.folder) / "repository.git" / "config").read_text()
