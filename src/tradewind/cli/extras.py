"""Extras of the distribution (`tradewind[plots]`), installed into the interpreter that runs us."""

from __future__ import annotations

import re
import shutil
import sys

from tradewind.model.errors import NotFound, did_you_mean

_EXTRA = re.compile(r"""\bextra\s*==\s*['"]([^'"]+)['"]""")


def install_command(name: str) -> tuple[str, list[str]]:
    """The extra's name and the command that installs what it needs.

    Raises:
        NotFound: the distribution has no such extra.
    """
    from importlib.metadata import metadata, requires  # lazy door: only whoever installs something needs it

    known = metadata("tradewind").get_all("Provides-Extra") or []
    if name not in known:
        raise NotFound(f"there is no extra {name!r}.{did_you_mean(name, known)} There are: {', '.join(known)}.")
    wanted = []
    for line in requires("tradewind") or []:
        requirement, _, marker = line.partition(";")
        found = _EXTRA.search(marker)
        if found is not None and found.group(1) == name:
            wanted.append(requirement.strip())
    return name, [*_installer(), *wanted]


def _installer() -> list[str]:
    """uv where it is, else pip. Neither may ask questions."""
    uv = shutil.which("uv")
    if uv is not None:
        return [uv, "pip", "install", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
