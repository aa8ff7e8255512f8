"""The wheel that takes the place of `apache-airflow`."""

from __future__ import annotations

import email
import hashlib
import io
import subprocess
import sys
import zipfile
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from tradewind.provider_packages import stand_in


def read(wheel: stand_in.Wheel) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(wheel.content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_same_version_gives_the_same_bytes() -> None:
    assert stand_in.build("3.3.2") == stand_in.build("3.3.2")


def test_airflow_3_is_divided_into_three_distributions_and_airflow_2_is_not() -> None:
    assert [wheel.filename for wheel in stand_in.build("3.3.2")] == [
        "apache_airflow-3.3.2+tradewind-py3-none-any.whl",
        "apache_airflow_core-3.3.2+tradewind-py3-none-any.whl",
        "apache_airflow_task_sdk-3.3.2+tradewind-py3-none-any.whl",
    ]
    assert len(stand_in.build("2.9.3")) == 1


def test_metadata() -> None:
    files = read(stand_in.build("2.9.3")[0])
    metadata = email.message_from_bytes(files["apache_airflow-2.9.3+tradewind.dist-info/METADATA"])
    assert (metadata["Name"], metadata["Version"]) == ("apache-airflow", "2.9.3+tradewind")
    assert metadata["Summary"] == "Tradewind stand-in: NOT Apache Airflow"
    assert "Private :: Do Not Upload" in metadata.get_all("Classifier", [])
    required = metadata.get_all("Requires-Dist", [])
    assert {"tradewind", "tenacity", 'sqlalchemy<2; python_version < "3.13"'} <= set(required)
    assert 'apache-airflow-providers-cncf-kubernetes; extra == "kubernetes"' in required
    assert {"postgres", "celery", "s3", "statsd"} <= set(metadata.get_all("Provides-Extra", []))


def test_extras_of_airflow_1_are_backports() -> None:
    metadata = read(stand_in.build("1.10.15")[0])["apache_airflow-1.10.15+tradewind.dist-info/METADATA"].decode()
    assert 'Requires-Dist: apache-airflow-backport-providers-postgres; extra == "postgres"\n' in metadata


@pytest.mark.parametrize(
    ("release", "pandas", "unicodecsv"), [("1.10.15", True, True), ("2.2.5", False, True), ("2.9.3", False, False)]
)
def test_packages_that_airflow_required_at_that_time(release: str, pandas: bool, unicodecsv: bool) -> None:
    metadata = read(stand_in.build(release)[0])[f"apache_airflow-{release}+tradewind.dist-info/METADATA"].decode()
    assert ("Requires-Dist: pandas\n" in metadata, "Requires-Dist: unicodecsv\n" in metadata) == (pandas, unicodecsv)


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("1.10.15", []),
        ("2.3.4", ["ftp", "http", "imap", "sqlite"]),
        ("2.9.3", ["common-io", "common-sql", "ftp", "http", "imap", "smtp", "sqlite"]),
        ("2.11.0", ["common-compat", "common-io", "common-sql", "ftp", "http", "imap", "smtp", "sqlite"]),
        ("3.3.2", ["common-compat", "common-io", "common-sql", "smtp"]),
    ],
)
def test_provider_packages_that_airflow_itself_requires(release: str, expected: list[str]) -> None:
    """Those of Requires-Dist in these releases, without `standard` and `fab`."""
    text = read(stand_in.build(release)[0])[f"apache_airflow-{release}+tradewind.dist-info/METADATA"].decode()
    lines = email.message_from_string(text).get_all("Requires-Dist", [])
    found = [line for line in lines if line.startswith("apache-airflow-providers-") and "extra" not in line]
    assert found == [f"apache-airflow-providers-{name}" for name in expected]


def test_releases_before_airflow_3_have_an_older_sqlalchemy() -> None:
    metadata = read(stand_in.build("3.3.2")[0])["apache_airflow-3.3.2+tradewind.dist-info/METADATA"].decode()
    assert "Requires-Dist: sqlalchemy\n" in metadata


def test_record_holds_every_file_with_its_hash() -> None:
    for wheel in stand_in.build("3.3.2"):
        files = read(wheel)
        record = next(name for name in files if name.endswith("/RECORD"))
        listed = dict(line.split(",")[:2] for line in files[record].decode().splitlines())
        assert listed.keys() == files.keys()
        for name, content in files.items():
            digest = urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert listed[name] == ("" if name == record else f"sha256={digest}")


def test_a_version_with_a_local_part_is_refused() -> None:
    with pytest.raises(ValueError, match="without its local part"):
        stand_in.build("3.3.2+tradewind")


def test_import_airflow_serves_the_namespace_without_importing_tradewind(tmp_path: Path) -> None:
    """What an editor or a shell does in an environment with the stand-in."""
    for name, content in read(stand_in.build("3.3.2")[0]).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "airflow" / "providers" / "mine").mkdir(parents=True)
    (tmp_path / "airflow" / "providers" / "mine" / "__init__.py").write_text("HERE = __file__\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import airflow\n"
        "from airflow import DAG\n"
        "from airflow.providers.mine import HERE\n"
        "from airflow.utils.helpers import chunks\n"
        "print(airflow.__version__, DAG.__module__, HERE)\n"
        "try:\n"
        "    import airflow.nothing\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error.name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == [
        "3.3.2",
        "tradewind.sdk.dag",
        str(tmp_path / "airflow" / "providers" / "mine" / "__init__.py"),
        "airflow.nothing",
    ]


def test_only_the_main_package_installs_the_command_airflow() -> None:
    main, *parts = stand_in.build("3.3.2")
    entry_points = read(main)["apache_airflow-3.3.2+tradewind.dist-info/entry_points.txt"].decode()
    assert entry_points == "[console_scripts]\nairflow = tradewind.cli.commands.airflow:main\n"
    assert all("entry_points" not in name for part in parts for name in read(part))
