"""The setting with the list of bundles, in Airflow's form and in Tradewind's."""

from __future__ import annotations

import json

import pytest

from tradewind.bundles.specs import BundleSpec, VersionedBundle, hidden, read_bundles
from tradewind.model.errors import ConfigError
from tradewind.model.moments import SECOND

FOLDER = BundleSpec("dags-folder", "folder")
GIT = "airflow.providers.git.bundles.git.GitDagBundle"
LOCAL = "airflow.dag_processing.bundles.local.LocalDagBundle"


def airflow(*entries: tuple[str, str, dict[str, object]]) -> str:
    return json.dumps([{"name": name, "classpath": classpath, "kwargs": kwargs} for name, classpath, kwargs in entries])


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("git+https://host/team/repo", BundleSpec("repo", "git", "https://host/team/repo")),
        ("git+https://host/team/repo.git@v1", BundleSpec("repo", "git", "https://host/team/repo.git", "v1")),
        ("git+https://user@host/repo@feature/x", BundleSpec("repo", "git", "https://user@host/repo", "feature/x")),
        ("git+git@host:team/repo.git@main", BundleSpec("repo", "git", "git@host:team/repo.git")),
        ("git+ssh://git@host:2222/repo", BundleSpec("repo", "git", "ssh://git@host:2222/repo")),
        ("git+/srv/repo.git@main", BundleSpec("repo", "git", "/srv/repo.git")),
        (
            "etl=git+https://host/repo@main#subdir=a/dags&conn=gh&refresh=5",
            BundleSpec("etl", "git", "https://host/repo", "main", "a/dags", "gh", 5 * SECOND),
        ),
    ],
)
def test_own_form_adds_to_the_dag_folder(text: str, spec: BundleSpec) -> None:
    assert read_bundles(text, "dags-folder") == (FOLDER, spec)


def test_airflow_form_names_all_bundles() -> None:
    kwargs = {
        "tracking_ref": "main",
        "subdir": "dags",
        "git_conn_id": "gh",
        "prune_dotgit_folder": True,
        "refresh_interval": 30,
    }
    text = airflow(("one", GIT, kwargs), ("two", LOCAL, {"path": "/srv/dags"}), ("three", GIT, {"tracking_ref": "v2"}))
    assert read_bundles(text, "dags-folder") == (
        BundleSpec("one", "git", "", "main", "dags", "gh", 30 * SECOND),
        BundleSpec("two", "folder", "/srv/dags"),
        BundleSpec("three", "git", "", "v2", "", "git_default"),
    )


@pytest.mark.parametrize("text", [None, "", "  "])
def test_nothing_is_the_dag_folder(text: str | None) -> None:
    assert read_bundles(text, "dags-folder") == (FOLDER,)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[{]", "no valid JSON"),
        ('["x"]', "entry 1 of bundles.list must be an object"),
        (airflow(("a", "airflow.bundles.GitDagBundl", {})), "unknown classpath"),
        (airflow(("a", GIT, {"tracking_ref": "main", "sub_dir": "x"})), "Did you mean 'subdir'"),
        (airflow(("a", GIT, {"repo_url": "https://h/r"})), "tracking_ref is missing"),
        (airflow(("a/b", GIT, {"tracking_ref": "main"})), "no name of a bundle"),
        (airflow(("a", GIT, {"tracking_ref": "main", "subdir": "../x"})), "inside the repository"),
        (airflow(("a", GIT, {"tracking_ref": "--upload-pack=x", "repo_url": "h"})), "no address and branch"),
        (airflow(("a", GIT, {"tracking_ref": "main", "repo_url": "ext::sh -c x"})), "no address and branch"),
        (airflow(("a", GIT, {"tracking_ref": "main", "refresh_interval": 0})), "at least 1"),
        (airflow(("a", GIT, {"tracking_ref": "main", "prune_dotgit_folder": False})), "no .git folder"),
        (airflow(("a", LOCAL, {}), ("a", LOCAL, {})), "two bundles with the name 'a'"),
        (airflow(("a", "airflow.providers.amazon.aws.bundles.s3.S3DagBundle", {})), "not supported yet"),
        ("https://host/repo", "must be git+URL"),
        ("git+https://host/repo#branch=x", "unknown option 'branch'"),
    ],
)
def test_a_wrong_list_is_refused_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_bundles(text, "dags-folder")
    assert words in str(refused.value)


def test_a_password_in_the_address_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigError) as refused:
        read_bundles("git+https://me:s3cret@host/repo", "dags-folder")
    assert "s3cret" not in str(refused.value)
    assert hidden("https://me:s3cret@host/repo") == "https://me:***@host/repo"


@pytest.mark.parametrize(
    ("place", "url"),
    [
        ("git@github.com:team/repo.git", "https://github.com/team/repo/tree/abc/dags"),
        ("https://me@gitlab.com/team/repo", "https://gitlab.com/team/repo/-/tree/abc/dags"),
        ("/srv/repo.git", None),
    ],
)
def test_page_of_a_version(place: str, url: str | None) -> None:
    spec = BundleSpec("repo", "git", place, subdir="dags")
    assert (spec.view_url_of("abc"), spec.view_url_of(None)) == (url, None)


def test_a_version_is_never_a_path() -> None:
    bundle = VersionedBundle(BundleSpec("repo", "git", subdir="dags"), "/b/repo")
    assert bundle.files("abc123") == "/b/repo/versions/abc123/dags"
    for version in ("", "..", "a/b"):
        with pytest.raises(ValueError, match="no version"):
            bundle.files(version)
