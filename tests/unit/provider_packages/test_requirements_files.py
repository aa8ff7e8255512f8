"""Requirements files that were written for Airflow, as they can be installed beside Tradewind."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tradewind.model.errors import NotFound
from tradewind.provider_packages import environment
from tradewind.provider_packages.requirements import Requirement
from tradewind.provider_packages.requirements_files import FILES_MAX, Adapted, Need, adapt, contradiction, logical_lines

NEEDS = {"click": [Need(">=8.2", "tradewind")], "cryptography": [Need(">=43", "tradewind")]}


def adapted(files: Mapping[str, str], *constraints: str, environ: Mapping[str, str] | None = None) -> Adapted:
    """The first file, and what it includes."""

    def read(place: str) -> str:
        if place not in files:
            raise NotFound(place)
        return files[place]

    return adapt([next(iter(files))], NEEDS, read, environ or {}, constraints)


def test_logical_lines() -> None:
    text = "# a\n\nrequests==2 \\\n    --hash=sha256:0a\npandas  # why\ngit+https://h/r#egg=x\n"
    assert logical_lines(text) == ["requests==2      --hash=sha256:0a", "pandas", "git+https://h/r#egg=x"]


def test_files_that_include_others() -> None:
    found = adapted(
        {
            "team/requirements.txt": "-r base.txt\n--requirement=more.txt\n-c 'pins.txt'\npandas\n-e ./libraries/ours\n",
            "team/base.txt": "apache-airflow[http]==2.9.3\n-r requirements.txt\n",
            "team/more.txt": "requests\n",
            "team/pins.txt": "pandas==2.1.4\n",
        }
    )
    assert sorted(found.requirements) == ["-e ./libraries/ours", "apache-airflow[http]==2.9.3", "pandas", "requests"]
    assert (found.constraints, found.changes) == (["pandas==2.1.4"], [])
    assert [one.name for one in found.parsed()] == ["pandas", "apache-airflow", "requests"]


def test_constraints_of_airflow_are_read_from_their_address_without_what_tradewind_needs_newer() -> None:
    files = {
        "r.txt": "--constraint https://c.example/constraints-${AIRFLOW_VERSION}/constraints-3.11.txt\napache-airflow==2.9.3\n",
        "https://c.example/constraints-2.9.3/constraints-3.11.txt": "click==8.1.7\nCryptography==41.0.7\npandas==2.1.4\n",
    }
    found = adapted(files, environ={"AIRFLOW_VERSION": "2.9.3"})
    assert (found.requirements, found.constraints) == (["apache-airflow==2.9.3"], ["pandas==2.1.4"])
    assert [str(one) for one in found.changes] == [
        "click==8.1.7: left out, because tradewind, which is installed, requires click>=8.2",
        "Cryptography==41.0.7: left out, because tradewind, which is installed, requires cryptography>=43",
    ]


def test_constraints_of_the_command_line() -> None:
    assert adapted({"r.txt": "pandas\n", "c.txt": "pandas<3\n"}, "c.txt").constraints == ["pandas<3"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("apache-airflow @ https://h.example/apache_airflow-2.9.3-py3-none-any.whl", "apache-airflow==2.9.3"),
        ("apache-airflow[http,celery] @ git+https://h.example/airflow.git@2.10.5", "apache-airflow[http,celery]==2.10.5"),
        ("apache-airflow-core @ git+https://h.example/airflow.git@main", "apache-airflow-core"),
    ],
)
def test_an_address_of_airflow_is_replaced_by_the_stand_in(line: str, expected: str) -> None:
    found = adapted({"r.txt": f"{line}\nours @ file:///ours\n"})
    assert found.requirements == [expected, "ours @ file:///ours"]
    assert [one.verdict for one in found.changes] == ["replaced"]


def test_hashes_are_removed_with_one_note() -> None:
    found = adapted(
        {"r.txt": "--require-hashes\napache-airflow==2.9.3 --hash=sha256:0a \\\n  --hash=sha256:0b\nsix==1 --hash=sha256:0c\n"}
    )
    assert found.requirements == ["apache-airflow==2.9.3", "six==1"]
    assert [(one.line, one.verdict) for one in found.changes] == [("--hash", "no effect")]


@pytest.mark.parametrize(
    ("specifier", "contradicts"),
    [
        ("==8.1.7", True),
        ("==8.1.*", True),
        ("<8.2", True),
        ("<=8.1.7", True),
        ("~=8.1.0", True),
        (">=8,<8.2", True),
        ("==8.2.1", False),
        ("<9", False),
        ("<=8.2", False),
        ("~=8.1", False),
        (">=7", False),
        ("!=8.2", False),
        ("", False),
    ],
)
def test_which_requirements_contradict_a_need(specifier: str, contradicts: bool) -> None:
    found = contradiction(Requirement("click", (), specifier), NEEDS["click"])
    assert (found is not None) == contradicts


def test_files_without_end_are_refused() -> None:
    with pytest.raises(NotFound, match=f"more than {FILES_MAX} requirements files"):
        adapt(["0.txt"], {}, lambda place: f"-r {int(place.removesuffix('.txt')) + 1}.txt", {})


def test_the_needs_of_this_environment() -> None:
    needs = environment.needs_of()
    assert any(one.package == "tradewind" for one in needs["click"])
    assert any(one.package == "fastapi" for one in needs["starlette"])
