"""Decides whether pip or uv installs provider packages into this environment, and makes their command lines."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Literal, NamedTuple

from tradewind.model.errors import NotFound

InstallerName = Literal["pip", "uv"]


class Installer(NamedTuple):
    """A program that installs packages into the environment of this interpreter."""

    name: InstallerName
    program: tuple[str, ...]

    def install(self, *words: str) -> list[str]:
        """The install command. `words`: requirements, and options that pip and uv share."""
        return self._command("install", *words)

    def reinstall(self, wheel: str) -> list[str]:
        """The command that installs one wheel again, without its requirements."""
        return self._command("install", "--force-reinstall" if self.name == "pip" else "--reinstall", "--no-deps", wheel)

    def check(self) -> list[str]:
        """The command that lists packages whose requirements contradict each other."""
        return self._command("check")

    def uninstall(self, *packages: str) -> list[str]:
        return self._command("uninstall", *packages)

    def _command(self, verb: str, *words: str) -> list[str]:
        if self.name == "uv":
            return [*self.program, "pip", verb, "--python", sys.executable, *words]
        return [*self.program, verb, *words]


def made_by_uv(config: str) -> bool:
    """Whether uv has made a virtual environment. `config`: the text of its pyvenv.cfg."""
    return any(line.partition("=")[0].strip() == "uv" for line in config.splitlines())


def choose(wanted: InstallerName | None, *, has_pip: bool, uv: str | None, is_of_uv: bool) -> Installer:
    """Choose the program that installs packages.

    Args:
        wanted: the choice of the user.
        uv: path of uv.
        is_of_uv: uv has made the environment.

    Raises:
        NotFound: the wanted program is missing, or both are missing.
    """
    pip = Installer("pip", (sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"))
    if wanted == "uv" and uv is None:
        raise NotFound("uv is not installed. Install it: https://docs.astral.sh/uv/, or leave out --installer uv")
    if uv is not None and wanted != "pip" and (wanted == "uv" or is_of_uv or not has_pip):
        return Installer("uv", (uv,))
    if not has_pip:
        raise NotFound(f"neither pip nor uv is installed in {sys.prefix}. Install pip: {sys.executable} -m ensurepip")
    return pip


def of_this_environment(wanted: InstallerName | None = None) -> Installer:
    """The program for this environment: uv where uv has made it or pip is missing, else pip.

    Raises:
        NotFound: see `choose`.
    """
    try:
        config = Path(sys.prefix, "pyvenv.cfg").read_text(encoding="utf-8")
    except OSError:
        config = ""
    return choose(wanted, has_pip=find_spec("pip") is not None, uv=which("uv"), is_of_uv=made_by_uv(config))
