"""The Python environment: whether it contains Airflow itself, and the settings of pip that keep Airflow out."""

from __future__ import annotations

import base64
import configparser
import csv
import hashlib
import io
import os
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from tradewind.provider_packages.requirements import parse
from tradewind.provider_packages.requirements_files import Need
from tradewind.provider_packages.stand_in import COMMAND, MAIN, PARTS
from tradewind.provider_packages.versions import is_stand_in

ENTRY = "airflow/__init__.py"
FOLDER = os.path.join("share", "tradewind", "stand-in")
"""Folder of the stand-in wheels and of the constraints file, below the environment's root."""
CONSTRAINTS = "constraints.txt"


def installed_version(name: str = MAIN) -> str | None:
    """The version of a distribution in this environment, or None."""
    found = _distribution(name)
    return found.version if found is not None else None


def _distribution(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def genuine_airflow() -> list[str]:
    """The parts of a genuine Airflow in this environment, as `name version`; empty when there is none."""
    found = []
    for name in (MAIN, *PARTS):
        version = installed_version(name)
        if version is not None and not is_stand_in(version):
            found.append(f"{name} {version}")
    return found


def overwritten_by() -> str | None:
    """The distribution that has changed the stand-in's `airflow/__init__.py` since the stand-in was installed.

    pip lets two distributions own one file; the later one overwrites it. RECORD contains the hash of the stand-in's file.

    Returns:
        None when there is no stand-in, or its file is unchanged; otherwise the other owner's name and version, or
        the file's path when no other distribution claims it.
    """
    ours = _distribution(MAIN)
    if ours is None or not is_stand_in(ours.version):
        return None
    recorded = _recorded_hashes(ours).get(ENTRY)
    if not recorded:
        return None
    path = Path(str(ours.locate_file(ENTRY)))
    try:
        digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
    except OSError:
        return f"{path} is missing"
    if f"sha256={digest}" == recorded:
        return None
    for name in PARTS:
        other = _distribution(name)
        if other is not None and ENTRY in _recorded_hashes(other):
            return f"{name} {other.version}"
    return str(path)


def _recorded_hashes(found: Distribution) -> dict[str, str]:
    """Path → hash (`sha256=…`, or empty), from the file RECORD of a distribution.

    `Distribution.files` leaves out files that are missing when the package importlib_metadata is imported.
    """
    lines = csv.reader((found.read_text("RECORD") or "").splitlines())
    return {line[0]: line[1] if len(line) > 1 else "" for line in lines if line}


def needs_of(package: str = "tradewind") -> dict[str, list[Need]]:
    """What an installed package and all packages behind it require, by the name of the required package. Extras are left out."""
    found: dict[str, list[Need]] = {}
    todo, seen = [package], {package}
    while todo:
        name = todo.pop()
        installed = _distribution(name)
        for line in (installed.requires or []) if installed is not None else ():
            text, _, marker = line.partition(";")
            requirement = parse(text)
            if requirement is None or "extra" in marker or _distribution(requirement.name) is None:
                continue
            found.setdefault(requirement.name, []).append(Need(requirement.specifier, name))
            if requirement.name not in seen:
                seen.add(requirement.name)
                todo.append(requirement.name)
    return found


def lacks_command() -> bool:
    """Whether the installed stand-in is from an older Tradewind and lacks the command `airflow`."""
    ours = _distribution(MAIN)
    return ours is not None and is_stand_in(ours.version) and not any(one.value == COMMAND for one in ours.entry_points)


def in_virtual_environment() -> bool:
    """Whether this interpreter belongs to a virtual environment."""
    return sys.prefix != sys.base_prefix


def stand_in_folder() -> Path:
    """The folder of the stand-in wheels of this environment."""
    return Path(sys.prefix, FOLDER)


def constraints_text(version: str) -> str:
    """A constraints file that keeps a genuine Airflow out.

    Args:
        version: version of the stand-in, `3.3.2+tradewind`.
    """
    return "".join(f"{name}=={version}\n" for name in (MAIN, *PARTS))


def merged_pip_conf(text: str, inherited: dict[str, list[str]], added: dict[str, str]) -> str:
    """The virtual environment's `pip.conf` with the values of Tradewind added.

    A value in this file hides the values of the user's and the machine's files, so those are repeated here.

    Args:
        text: the present content of the file, or empty.
        inherited: option → values that the other files give.
        added: option → value of Tradewind.
    """
    parser = configparser.RawConfigParser()
    parser.read_string(text)
    for option, value in added.items():
        section = "install" if parser.has_option("install", option) else "global"
        own = parser.get(section, option).split() if parser.has_option(section, option) else inherited.get(option, [])
        if not parser.has_section(section):
            parser.add_section(section)
        parser.set(section, option, "\n" + "\n".join(dict.fromkeys([*own, value])))
    written = io.StringIO()
    parser.write(written)
    return written.getvalue()


def parsed_pip_config(listing: str) -> dict[str, list[str]]:
    """Parse the output of `pip config list`: option → values, without the values of environment variables."""
    found: dict[str, list[str]] = {}
    for line in listing.splitlines():
        name, _, value = line.partition("=")
        section, _, option = name.rpartition(".")
        if section in ("global", "install"):
            found[option] = value.strip("'\"").replace("\\n", "\n").split()
    return found
