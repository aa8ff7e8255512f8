"""Which stand-in a requirements file needs."""

from __future__ import annotations

import pytest

from tradewind.model.errors import WrongArgument
from tradewind.provider_packages.requirements import Requirement, parse, provider_requirement, wanted_airflow
from tradewind.provider_packages.versions import KNOWN, choose, satisfies


def wanted(*lines: str) -> str:
    return wanted_airflow([one for line in lines if (one := parse(line)) is not None])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("apache-airflow[celery,postgres]==2.9.3", Requirement("apache-airflow", ("celery", "postgres"), "==2.9.3")),
        ("Apache_Airflow [apache.hive] >=2.7, <3  # comment", Requirement("apache-airflow", ("apache-hive",), ">=2.7, <3")),
        ("requests ; python_version > '3'", Requirement("requests", (), "")),
        ("apache-airflow==2.9.3; python_version < '3.12'", Requirement("apache-airflow", (), "==2.9.3")),
        ("apache-airflow==2.9.3 --hash=sha256:0a --hash=sha256:0b", Requirement("apache-airflow", (), "==2.9.3")),
        ("apache-airflow==2.9.3 \\", Requirement("apache-airflow", (), "==2.9.3")),
        ("-r other.txt", None),
        ("--constraint https://example.com/constraints-2.9.3.txt", None),
        ("# apache-airflow==2.9.3", None),
        ("apache-airflow @ file:///wheels/airflow.whl", None),
        ("", None),
    ],
)
def test_lines(line: str, expected: Requirement | None) -> None:
    assert parse(line) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["requests"], "3.3.2"),
        (["apache-airflow[celery,postgres]==2.9.3"], "2.9.3"),
        (["apache-airflow==2.9.1"], "2.9.1"),
        (["apache-airflow>=2.7,<3"], "2.11.0"),
        (["apache-airflow~=2.7.1"], "2.7.3"),
        (["apache-airflow==2.6.*"], "2.6.3"),
        (["apache-airflow<2.7,>=2.6.1,!=2.6.3"], "2.6.1"),
        (["apache-airflow>=2.11"], "3.3.2"),
        (["apache-airflow-backport-providers-postgres"], "1.10.15"),
        (["apache-airflow==1.10.12", "apache-airflow-backport-providers-http"], "1.10.12"),
    ],
)
def test_the_release_of_a_stand_in(lines: list[str], expected: str) -> None:
    assert wanted(*lines) == expected


def test_requirements_that_no_release_satisfies() -> None:
    with pytest.raises(WrongArgument, match="no release of Airflow satisfies apache-airflow >=2,<2"):
        wanted("apache-airflow>=2,<2")


def test_backports_beside_modern_providers_are_refused() -> None:
    with pytest.raises(WrongArgument) as refused:
        wanted("apache-airflow-backport-providers-http", "apache-airflow-providers-postgres")
    assert "Replace apache-airflow-backport-providers-http by apache-airflow-providers-http." in str(refused.value)


@pytest.mark.parametrize(
    ("typed", "release", "expected"),
    [
        ("postgres", "3.3.2", "apache-airflow-providers-postgres"),
        ("amazon[s3fs]>=9", "3.3.2", "apache-airflow-providers-amazon[s3fs]>=9"),
        ("apache.hive", "2.9.3", "apache-airflow-providers-apache-hive"),
        ("aws", "2.9.3", "apache-airflow-providers-amazon"),
        ("apache-airflow-providers-http==5.0.0", "3.3.2", "apache-airflow-providers-http==5.0.0"),
        ("postgres", "1.10.15", "apache-airflow-backport-providers-postgres"),
    ],
)
def test_names_of_packages(typed: str, release: str, expected: str) -> None:
    assert provider_requirement(typed, release) == expected


def test_an_unknown_provider_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(WrongArgument, match="Did you mean 'postgres'"):
        provider_requirement("postgress", "3.3.2")


def test_conditions() -> None:
    assert satisfies("2.10.5", ">=2.9")
    assert not satisfies("2.9.3", ">2.9.3")
    assert satisfies("3.3.2", "!=2.*")
    assert not satisfies("2.1.4", "!=2.*")
    assert choose("") == KNOWN[-1]
    assert choose("==9.9.9") == "9.9.9"
