"""Requirements files that were written for Airflow, as pip or uv can install them beside Tradewind.

They name Airflow by an address, pin packages that Tradewind needs in newer releases (so do Airflow's constraints files), and have
hashes, which the stand-in for Airflow cannot have. Such lines are changed or left out, and each change is listed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tradewind.model.errors import NotFound
from tradewind.provider_packages.extras import normalized
from tradewind.provider_packages.requirements import Requirement, parse
from tradewind.provider_packages.stand_in import MAIN, PARTS
from tradewind.provider_packages.versions import Condition, conditions, release, satisfies

FILES_MAX = 100
"""How many files may include each other."""

_INCLUDE = re.compile(r"(?P<option>-r|--requirement|-c|--constraint)(?:\s*=\s*|\s*)(?P<quote>[\"']?)(?P<place>\S+?)(?P=quote)")
_HASH = re.compile(r"\s--hash[= ]\S+")
_ADDRESS = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?P<extras>\[[^\]]*\])?\s*@\s*(?P<address>\S+)")
_VERSION = re.compile(r"(?<![\d.])(\d+\.\d+\.\d+)(?![\d.]*\d)")
_FIND_LINKS = re.compile(r"(-f|--find-links)[ =]\s*(\S+)")
_VARIABLE = re.compile(r"\$\{([A-Z0-9_]+)\}")


class Need(NamedTuple):
    """What an installed package requires of another one."""

    specifier: str
    """`>=8.2`"""
    package: str
    """The package that requires it."""


Needs = Mapping[str, Sequence[Need]]
"""By name of the required package: what Tradewind and the packages behind it require."""


class Change(NamedTuple):
    """A line that is not installed as it is in the file. `verdict`: `left out`, `replaced` or `no effect` (hashes)."""

    line: str
    verdict: str
    why: str

    def __str__(self) -> str:
        return f"{self.line}: {self.verdict}, {self.why}"


class Adapted(NamedTuple):
    """The content of requirements files and of all that they include."""

    requirements: list[str]
    constraints: list[str]
    changes: list[Change]

    def parsed(self) -> list[Requirement]:
        """The requirements that are neither options nor addresses."""
        return [one for line in self.requirements if (one := parse(line)) is not None]


def logical_lines(text: str) -> list[str]:
    """The lines of a requirements file without comments and empty lines; lines that end with a backslash are joined."""
    joined = re.sub(r"\\\r?\n", " ", text)
    lines = (re.sub(r"(^|\s)#.*$", "", line).strip() for line in joined.splitlines())
    return [line for line in lines if line]


def adapt(
    files: Iterable[str], needs: Needs, read: Callable[[str], str], environ: Mapping[str, str], constraints: Iterable[str] = ()
) -> Adapted:
    """Read requirements files, and change what cannot be installed beside Tradewind.

    Args:
        files: paths or addresses.
        needs: what Tradewind requires; a pin that contradicts it is left out.
        read: gives the text of a file, or of an address. It raises NotFound.
        environ: values for `${NAME}` in the files.
        constraints: paths or addresses of further constraints files.

    Raises:
        NotFound: `read` raised it, or more than `FILES_MAX` files include each other.
    """
    found = Adapted([], [], [])
    todo = [*((file, False) for file in files), *((file, True) for file in constraints)]
    seen: set[tuple[str, bool]] = set()
    while todo:
        place, constraining = todo.pop(0)
        if (place, constraining) in seen:
            continue
        seen.add((place, constraining))
        if len(seen) > FILES_MAX:
            raise NotFound(f"more than {FILES_MAX} requirements files include each other; the last one is {place!r}.")
        for line in logical_lines(read(place)):
            line = _VARIABLE.sub(lambda variable: environ.get(variable[1], variable[0]), line)
            include = _INCLUDE.fullmatch(line)
            if include is not None:
                todo.append((_beside(place, include["place"]), constraining or include["option"] in ("-c", "--constraint")))
                continue
            kept = _adapted_line(line, place, needs, found.changes)
            if kept is not None:
                (found.constraints if constraining else found.requirements).append(kept)
    return found


def _beside(place: str, named: str) -> str:
    """The path or address of a file that another file names."""
    if "://" in named or os.path.isabs(named):
        return named
    head, separator, _ = place.rpartition("/")
    return f"{head}{separator}{named}"


def _adapted_line(line: str, place: str, needs: Needs, changes: list[Change]) -> str | None:
    """The line as it is installed, or None if it is left out. Adds to the changes."""
    if line == "--require-hashes" or _HASH.search(line):
        change = Change(
            "--hash", "no effect", "because the stand-in for Airflow is built on this machine and has no known hash"
        )
        changes += [change] if change not in changes else []
        line = _HASH.sub("", line).strip()
        if line == "--require-hashes":
            return None
    links = _FIND_LINKS.fullmatch(line)
    if links is not None and "://" not in place:
        beside = os.path.join(os.path.dirname(os.path.abspath(place)), links[2])
        return f"--find-links {beside}" if os.path.isdir(beside) else line
    address = _ADDRESS.match(line)
    if address is not None and normalized(address["name"]) in (MAIN, *PARTS):
        version = _VERSION.search(address["address"].rpartition("/")[2])
        kept = f"{address['name']}{address['extras'] or ''}{f'=={version[1]}' if version else ''}"
        changes.append(Change(line, "replaced", f"by {kept}: Tradewind's stand-in is installed, not Airflow"))
        return kept
    requirement = parse(line)
    against = None if requirement is None else contradiction(requirement, needs.get(requirement.name, ()))
    if requirement is not None and against is not None:
        why = f"because {against.package}, which is installed, requires {requirement.name}{against.specifier}"
        changes.append(Change(line, "left out", why))
        return None
    return line


def contradiction(requirement: Requirement, needs: Iterable[Need]) -> Need | None:
    """The need that no version can satisfy together with a requirement, or None.

    Pins (`==8.1.7`) and upper bounds (`<8.2`, `~=8.1.0`, `==8.1.*`) are compared with the needs; others do not contradict one.
    """
    for need in needs:
        lowest = [one.version for one in conditions(need.specifier) if one.operator in (">=", ">", "~=", "==")]
        for condition in conditions(requirement.specifier):
            if condition.operator in ("==", "===") and not condition.version.endswith(".*"):
                if not satisfies(condition.version.partition("+")[0], need.specifier):
                    return need
            elif any(_is_beyond(version, condition) for version in lowest):
                return need
    return None


def _is_beyond(version: str, condition: Condition) -> bool:
    """Whether a version and all later ones fail an upper bound."""
    if condition.operator not in ("<", "<=", "~=", "=="):
        return False
    return not satisfies(version, f"{condition.operator}{condition.version}") and release(version) >= release(condition.version)
