"""pip or uv: who installs, and with which words."""

from __future__ import annotations

import sys

import pytest

from tradewind.model.errors import NotFound
from tradewind.provider_packages.installers import choose, made_by_uv


def test_the_choice() -> None:
    def name(wanted: str | None, has_pip: bool, uv: str | None, is_of_uv: bool) -> str:
        return choose(wanted, has_pip=has_pip, uv=uv, is_of_uv=is_of_uv).name  # type: ignore[arg-type]

    assert name(None, True, "/bin/uv", False) == "pip"
    assert name(None, True, "/bin/uv", True) == "uv"
    assert name(None, False, "/bin/uv", False) == "uv"
    assert name(None, True, None, True) == "pip"
    assert name("uv", True, "/bin/uv", False) == "uv"
    assert name("pip", True, "/bin/uv", True) == "pip"
    with pytest.raises(NotFound, match="neither pip nor uv"):
        name(None, False, None, True)
    with pytest.raises(NotFound, match="uv is not installed"):
        name("uv", True, None, False)
    with pytest.raises(NotFound, match="ensurepip"):
        name("pip", False, "/bin/uv", False)


def test_the_words() -> None:
    uv = choose("uv", has_pip=True, uv="/bin/uv", is_of_uv=False)
    assert uv.install("-r", "x") == ["/bin/uv", "pip", "install", "--python", sys.executable, "-r", "x"]
    assert uv.reinstall("a.whl")[-3:] == ["--reinstall", "--no-deps", "a.whl"]
    pip = choose("pip", has_pip=True, uv=None, is_of_uv=False)
    assert pip.check() == [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "check"]


def test_environments_of_uv() -> None:
    assert made_by_uv("home = /usr/bin\nuv = 0.9.1\nversion_info = 3.11.7\n")
    assert not made_by_uv("home = /opt/uv\ncommand = /usr/bin/python -m venv /uv\n")
