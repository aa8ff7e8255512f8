"""The setting with the list of bundles, in Airflow's form and in Tradewind's."""

from __future__ import annotations

import json

import pytest

from tradewind.bundles.specs import BundleSpec, VersionedBundle, hidden, read_bundles
from tradewind.model.errors import ConfigError
from tradewind.model.moments import SECOND

FOLDER = BundleSpec("dags-folder", "folder")
GIT = "airflow.providers.git.bundles.git.GitDagBundle"
S3 = "airflow.providers.amazon.aws.bundles.s3.S3DagBundle"
GCS = "airflow.providers.google.cloud.bundles.gcs.GCSDagBundle"
WASB = "airflow.providers.microsoft.azure.bundles.wasb.WasbDagBundle"
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
        ("s3://bucket/team/dags/", BundleSpec("dags", "object-store", "s3://bucket/team/dags", "")),
        ("gs://bucket", BundleSpec("bucket", "object-store", "gs://bucket", "")),
        (
            "etl=abfs://box@host/a=b#conn=az&refresh=5",
            BundleSpec("etl", "object-store", "abfs://box@host/a=b", "", "", "az", 5 * SECOND),
        ),
        ("file:///srv/dags", BundleSpec("dags", "object-store", "file:///srv/dags", "")),
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


def test_airflow_bundles_of_object_stores() -> None:
    text = airflow(
        ("one", S3, {"bucket_name": "b", "prefix": "/a/dags/", "aws_conn_id": "minio", "refresh_interval": 30}),
        ("two", GCS, {"bucket_name": "b"}),
        ("three", WASB, {"container_name": "c", "prefix": "dags", "wasb_conn_id": None, "view_url_template": "https://x"}),
    )
    found = read_bundles(text, "dags-folder")
    assert found == (
        BundleSpec("one", "object-store", "s3://b/a/dags", "", "", "minio", 30 * SECOND),
        BundleSpec("two", "object-store", "gs://b", "", "", "google_cloud_default"),
        BundleSpec("three", "object-store", "abfs://c/dags", "", "", "", None, "https://x"),
    )
    assert [spec.needs_connection for spec in found] == [True, False, False]
    assert [spec.view_template for spec in found] == ["", "", "https://x"]


@pytest.mark.parametrize("text", [None, "", "  "])
def test_nothing_is_the_dag_folder(text: str | None) -> None:
    assert read_bundles(text, "dags-folder") == (FOLDER,)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[{]", "no valid JSON"),
        ('["x"]', "entry 1 of bundles.list must be an object"),
        ("s3://bucket/dags#conn=aws,refresh=5", "the options after # are separated by &, such as #conn=ID&refresh=10"),
        ("git+https://host/repo#subdir=a;conn=b", "the options after # are separated by &"),
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
        (airflow(("a", S3, {"prefix": "x"})), "bucket_name is missing"),
        (airflow(("a", S3, {"bucket": "x"})), "Did you mean 'bucket_name'"),
        (airflow(("a", S3, {"bucket_name": "b", "prefix": "../x"})), "no address of a folder"),
        ("s3://", "no address of a folder"),
        ("simplecache::s3://bucket/x", "must be git+URL"),
        ("s3://bucket/x#subdir=a", "unknown option 'subdir'"),
        ("sftp://me:s3cret@host/x", "the address contains a password"),
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
        ("git@github.com:team/repo.git", "https://github.com/team/repo/tree/{version}/dags"),
        ("https://me@gitlab.com/team/repo", "https://gitlab.com/team/repo/-/tree/{version}/dags"),
        ("/srv/repo.git", ""),
    ],
)
def test_page_of_a_version(place: str, url: str) -> None:
    spec = BundleSpec("repo", "git", place, subdir="dags")
    assert spec.view_template == url


def test_a_version_is_never_a_path() -> None:
    bundle = VersionedBundle(BundleSpec("repo", "git", subdir="dags"), "/b/repo")
    assert bundle.files("abc123") == "/b/repo/versions/abc123/dags"
    for version in ("", "..", "a/b"):
        with pytest.raises(ValueError, match="no version"):
            bundle.files(version)
