"""Reads requirement lines that concern Airflow, and decides which stand-in a requirements file needs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from tradewind.model.errors import WrongArgument, did_you_mean
from tradewind.provider_packages.extras import ALIASES, PROVIDERS, normalized, provider_package
from tradewind.provider_packages.stand_in import MAIN, PARTS
from tradewind.provider_packages.versions import CURRENT, choose, satisfies

_LINE = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?\s*\(?([^;#()]*)\)?\s*(?:;.*)?(?:#.*)?$")
_BACKPORT = "apache-airflow-backport-providers-"
_MODERN = "apache-airflow-providers-"


class Requirement(NamedTuple):
    """One requirement: `apache-airflow[celery,postgres]==2.9.3`."""

    name: str
    """The name, normalized as in PEP 503."""
    extras: tuple[str, ...]
    specifier: str
    """`==2.9.3`, or empty."""


def parse(line: str) -> Requirement | None:
    """A line of a requirements file, or None for comments, options, addresses and empty lines."""
    if line.lstrip().startswith(("-", "#")) or " @ " in line or "://" in line:
        return None
    found = _LINE.match(re.split(r"\s--|\s*\\$", line.strip())[0])  # without options such as --hash
    if found is None:
        return None
    name, extras, specifier = found.groups()
    listed = tuple(normalized(one) for one in (extras or "").split(",") if one.strip())
    return Requirement(normalized(name), listed, (specifier or "").strip())


def wanted_airflow(requirements: Iterable[Requirement]) -> str:
    """The release of Airflow that a stand-in must have to satisfy requirements.

    Raises:
        WrongArgument: no release satisfies them all, or the file contains both backports and providers of Airflow 2 or 3.
    """
    listed = list(requirements)
    refuse_mixed_generations(listed)
    airflow = [one for one in listed if one.name == MAIN]
    specifier = ",".join(one.specifier for one in airflow if one.specifier)
    if not specifier:
        backports = any(one.name.startswith(_BACKPORT) for one in listed)
        return "1.10.15" if backports else CURRENT
    found = choose(specifier)
    if found is None:
        raise WrongArgument(f"no release of Airflow satisfies {MAIN} {specifier}. Change the requirement.")
    wrong = [one for one in listed if one.name == PARTS[0] and not satisfies(found, one.specifier)]
    if wrong:
        raise WrongArgument(f"{MAIN} {specifier} and {wrong[0].name} {wrong[0].specifier} ask for different releases.")
    return found


def refuse_mixed_generations(requirements: Iterable[Requirement]) -> None:
    """Check that the requirements do not contain both backports for Airflow 1.10 and providers of Airflow 2 or 3.

    Raises:
        WrongArgument: they contain both.
    """
    names = [one.name for one in requirements]
    backport = next((name for name in names if name.startswith(_BACKPORT)), None)
    modern = next((name for name in names if name.startswith(_MODERN)), None)
    if backport is not None and modern is not None:
        raise WrongArgument(
            f"{backport} and {modern} cannot be installed together: backports require Airflow 1.10, the others Airflow 2 or 3. "
            f"Replace {backport} by {backport.replace('-backport', '')}."
        )


def provider_requirement(text: str, airflow_version: str) -> str:
    """Convert the text that a user typed to a requirement: `postgres>=5` → `apache-airflow-providers-postgres>=5`.

    Raises:
        WrongArgument: there is no provider of that name.
    """
    found = parse(text)
    package = provider_package(found.name, airflow_version) if found is not None else None
    if found is None or package is None:
        name = found.name if found is not None else text
        raise WrongArgument(
            f"there is no provider package for {text!r}.{did_you_mean(name, [*PROVIDERS, *ALIASES])} "
            "For other packages use pip, or a requirements file with -r."
        )
    extras = f"[{','.join(found.extras)}]" if found.extras else ""
    return f"{package}{extras}{found.specifier}"
