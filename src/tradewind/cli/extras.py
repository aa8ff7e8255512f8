"""Installs extras of the distribution (`tradewind[plots]`) into the running interpreter's environment."""

from __future__ import annotations

import re
import shutil
import sys

from tradewind.model.errors import NotFound, did_you_mean

_EXTRA = re.compile(r"""\bextra\s*==\s*['"]([^'"]+)['"]""")


def install_command(name: str) -> tuple[str, list[str]]:
    """The name of an extra, and the command that installs its packages.

    Raises:
        NotFound: the distribution has no such extra.
    """
    from importlib.metadata import metadata, requires  # lazy import: only needed with --install-extra

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
    """The start of the install command: uv if it is installed, otherwise pip. Both run without prompts."""
    uv = shutil.which("uv")
    if uv is not None:
        return [uv, "pip", "install", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
