"""The stand-in wheel: a small local package with the name `apache-airflow`.

Provider packages require `apache-airflow`. A stand-in satisfies them, so that `pip` does not install Airflow itself, and lets
editors and shells `import airflow`. Its content depends only on its version: the same version gives the same file and hash.
It is built on the user's machine and never published; the classifier `Private :: Do Not Upload` makes registries refuse it.
"""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from typing import NamedTuple

from tradewind.provider_packages.extras import requirements_by_extra
from tradewind.provider_packages.versions import is_stand_in, stand_in_version

MAIN = "apache-airflow"
PARTS = ("apache-airflow-core", "apache-airflow-task-sdk")
"""The distributions into which Airflow 3 is divided. Packages that require them get a stand-in, too, without files."""

UNDECLARED = [
    "packaging",
    "deprecated",
    "tenacity",
    "attrs",
    "pendulum",
    "sqlalchemy",
    "requests",
    "python-dateutil",
    "structlog",
    "jinja2",
    "python-slugify",
    "pyyaml",
    "lazy-object-proxy",
    "tabulate",
    "asgiref",
    "fsspec",
    "universal-pathlib",
    "psutil",
    "setproctitle",
    "uuid6",
    "httpx",
    "croniter",
    "pytz",
]
"""Third-party packages that providers and DAG files import without requiring them, because Airflow requires them."""

UNDECLARED_EARLIER = ["cached-property", "dill", "iso8601", "markdown", "termcolor", "tzlocal", "unicodecsv"]
"""The same for releases until 2.6: the hooks of Hive and of Amazon of that time import some of them."""
UNDECLARED_FIRST = ["future", "json-merge-patch", "pandas"]
"""The same for Airflow 1."""

OLDER_SQLALCHEMY = ['sqlalchemy<2; python_version < "3.13"', 'sqlalchemy; python_version >= "3.13"']
"""Airflow 1 and 2 require SQLAlchemy 1.4: code of that time calls `engine.execute(…)`. Its wheels end before Python 3.13."""

_SUMMARY = "Tradewind stand-in: NOT Apache Airflow"
_DESCRIPTION = """\
This package is a stand-in that Tradewind built on this machine, so that provider packages of Apache Airflow can be installed
beside Tradewind. It is NOT Apache Airflow and must not be published. `import airflow` gives the names that Tradewind has.
"""
_INIT = '''\
"""Tradewind stand-in for the package `airflow`: NOT Apache Airflow. Tradewind serves the names."""
__path__ = __import__("pkgutil").extend_path(__path__, __name__)
__version__ = "{version}"
__import__("tradewind.airflow.finder", fromlist=["finder"]).serve_from_stand_in(__name__)
'''
COMMAND = "tradewind.cli.commands.airflow:main"
_ENTRY_POINTS = f"""\
[console_scripts]
airflow = {COMMAND}
"""
"""The command `airflow`. Only this package installs it, so it never overwrites the command of a genuine Airflow."""

_WHEEL = """\
Wheel-Version: 1.0
Generator: tradewind
Root-Is-Purelib: true
Tag: py3-none-any
"""
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Moment of every file in the archive: the earliest that zip can express."""


class Wheel(NamedTuple):
    """A wheel file."""

    filename: str
    content: bytes


def init_text(version: str) -> str:
    """The text of the stand-in's `airflow/__init__.py`.

    Args:
        version: with the local part, `3.3.2+tradewind`. `airflow.__version__` is without it (see `airflow/compat/version.py`).
    """
    return _INIT.format(version=version.partition("+")[0])


def build(airflow_version: str) -> list[Wheel]:
    """The stand-ins for one release of Airflow: `apache-airflow`, and for Airflow 3 the parts into which it is divided.

    Args:
        airflow_version: `3.3.2`, without a local part.
    """
    if is_stand_in(airflow_version):
        raise ValueError(f"give the release without its local part, not {airflow_version!r}")
    version = stand_in_version(airflow_version)
    files = {"airflow/__init__.py": init_text(version), _info_file(MAIN, version, "entry_points.txt"): _ENTRY_POINTS}
    found = [_wheel(MAIN, version, files, _main_requirements(airflow_version))]
    if airflow_version.startswith("3."):
        found += [_wheel(name, version, {}, [f"Requires-Dist: {MAIN}=={version}"]) for name in PARTS]
    return found


def _main_requirements(airflow_version: str) -> list[str]:
    release = tuple(int(part) for part in [*airflow_version.split("."), "0"][:2])
    names = [*UNDECLARED, *brought_providers(release)]
    if release < (3, 0):
        names = [*(name for name in names if name != "sqlalchemy"), *OLDER_SQLALCHEMY]
    names += UNDECLARED_EARLIER if release < (2, 7) else []
    names += UNDECLARED_FIRST if release < (2, 0) else []
    lines = ["Requires-Dist: tradewind", *(f"Requires-Dist: {name}" for name in names)]
    for extra, packages in requirements_by_extra(airflow_version).items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {package}; extra == "{extra}"' for package in packages]
    return lines


def brought_providers(release: tuple[int, ...]) -> list[str]:
    """The provider packages that Airflow itself requires, so that others import them without saying so (airflow-dbt-python,
    astro-sdk-python). Without `standard`, which Tradewind has, and `fab`, the logins of Airflow's web page.

    Args:
        release: major and minor number of Airflow.
    """
    if release < (2, 0):
        return []
    names = ["ftp", "http", "imap", "sqlite"] if release < (3, 0) else []
    names += ["common-sql"] if release >= (2, 4) else []
    names += ["common-io"] if release >= (2, 8) else []
    names += ["smtp"] if release >= (2, 9) else []
    names += ["common-compat"] if release >= (2, 10) else []
    return [f"apache-airflow-providers-{name}" for name in sorted(names)]


def _metadata(name: str, version: str, lines: list[str]) -> str:
    head = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version}",
        f"Summary: {_SUMMARY}",
        "License: Apache-2.0",
        "Classifier: Private :: Do Not Upload",
        "Classifier: Operating System :: POSIX :: Linux",
        "Requires-Python: >=3.11",
    ]
    return "\n".join([*head, *lines, "", _DESCRIPTION])


def _info_file(name: str, version: str, file: str) -> str:
    return f"{name.replace('-', '_')}-{version}.dist-info/{file}"


def _wheel(name: str, version: str, files: dict[str, str], metadata: list[str]) -> Wheel:
    texts = {
        **files,
        _info_file(name, version, "METADATA"): _metadata(name, version, metadata),
        _info_file(name, version, "WHEEL"): _WHEEL,
    }
    record = [f"{path},{_digest(text)},{len(text.encode())}" for path, text in texts.items()]
    list_of_files = _info_file(name, version, "RECORD")
    texts[list_of_files] = "\n".join([*record, f"{list_of_files},,", ""])
    return Wheel(f"{name.replace('-', '_')}-{version}-py3-none-any.whl", _archive(texts))


def _digest(text: str) -> str:
    """The hash of a text as RECORD files write it."""
    found = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    return f"sha256={found}"


def _archive(texts: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for path, text in texts.items():
            entry = zipfile.ZipInfo(path, _EPOCH)
            entry.external_attr = 0o644 << 16
            entry.create_system = 3  # Unix on every machine, so that the content is always the same
            archive.writestr(entry, text)
    return buffer.getvalue()
