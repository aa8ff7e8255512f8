"""`tradewind providers install`: provider packages from the registry, with a local stand-in in place of Airflow."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from tradewind.model.errors import Conflict, NotFound, WrongArgument
from tradewind.provider_packages import environment, installed, installers, requirements, stand_in, versions
from tradewind.provider_packages.installers import Installer, InstallerName
from tradewind.provider_packages.requirements import Requirement

TIME_LIMIT_S = 3600
"""How long pip or uv may take to download and install everything."""


def read_requirements(files: Iterable[str]) -> list[Requirement]:
    """The requirements in files, and in the files that they include.

    Raises:
        NotFound: there is no such file.
    """
    found: list[Requirement] = []
    todo, seen = [Path(file) for file in files], set()
    while todo:
        path = todo.pop(0)
        if path.resolve() in seen:
            continue
        seen.add(path.resolve())
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise NotFound(f"there is no requirements file {str(path)!r}.") from None
        found += [one for line in text.splitlines() if (one := requirements.parse(line)) is not None]
        todo += [path.parent / name for name in requirements.included_files(text) if "://" not in name]
    return found


def refuse_genuine_airflow(installer: Installer) -> None:
    """Check that there is no Airflow in this environment.

    Raises:
        Conflict: there is one; the message says how to remove it.
    """
    found = environment.genuine_airflow()
    if found:
        names = " ".join(one.split()[0] for one in found)
        raise Conflict(
            f"Airflow itself is installed in {sys.prefix}: {', '.join(found)}. Tradewind cannot serve `airflow` beside it. "
            f"Use another virtual environment, or remove it: {shlex.join(installer.uninstall(*names.split()))}"
        )


def install(
    names: Sequence[str],
    files: Sequence[str],
    *,
    airflow: str | None,
    dry_run: bool,
    wanted_installer: InstallerName | None = None,
) -> None:
    """Install provider packages by name and from requirements files.

    Raises:
        TradewindError: a name is unknown, requirements contradict each other, or pip or uv fails.
    """
    if not names and not files:
        raise WrongArgument(
            "name provider packages (tradewind providers install postgres amazon) or a file (-r requirements.txt)."
        )
    installer = installers.of_this_environment(wanted_installer)
    listed = read_requirements(files)
    release = airflow or requirements.wanted_airflow([*listed, *_typed(names)])
    wanted = [requirements.provider_requirement(name, release) for name in names]
    requirements.refuse_mixed_generations([*listed, *_parsed(wanted), *_present()])
    refuse_genuine_airflow(installer)
    version = versions.stand_in_version(release)
    folder = environment.stand_in_folder()
    command = _install_command(installer, wanted, files, version, folder)
    if dry_run:
        click.echo(f"Stand-in: {stand_in.MAIN} {version} in {folder}")
        click.echo(shlex.join(command))
        return
    before = _contradictions(installer)
    write_stand_ins(release, folder)
    repair_stand_in(folder, installer)
    if _run(command):
        raise Conflict(f"{installer.name} could not install them; its message is above. Nothing else was changed.")
    if installer.name == "pip":
        write_pip_conf(folder)
    for line in sorted(_contradictions(installer) - before):
        click.echo(f"These packages contradict each other; imports may fail: {line}", err=True)
    click.echo(uv_advice(version, folder))


def repair_stand_in(folder: Path, installer: Installer) -> None:
    """Install the stand-in again where another package has overwritten its file, or where it has no command `airflow` yet."""
    changed = environment.overwritten_by()
    if changed is not None:
        click.echo(f"airflow/__init__.py of the stand-in was changed ({changed}); the stand-in is installed again.", err=True)
    if changed is not None or environment.lacks_command():
        wheel = next(folder.glob("apache_airflow-*.whl"))
        _run(installer.reinstall(str(wheel)))


def _typed(names: Iterable[str]) -> list[Requirement]:
    return [one for name in names if (one := requirements.parse(name)) is not None]


def _parsed(lines: Iterable[str]) -> list[Requirement]:
    return [one for line in lines if (one := requirements.parse(line)) is not None]


def _present() -> list[Requirement]:
    """The provider packages that are installed."""
    return [Requirement(name, (), "") for name in installed.providers()]


def write_stand_ins(release: str, folder: Path) -> None:
    """Build the stand-ins and the constraints file in a folder, in place of older ones."""
    folder.mkdir(parents=True, exist_ok=True)
    wheels = stand_in.build(release)
    for old in folder.glob("*.whl"):
        if old.name not in {wheel.filename for wheel in wheels}:
            old.unlink()
    for wheel in wheels:
        (folder / wheel.filename).write_bytes(wheel.content)
    text = environment.constraints_text(versions.stand_in_version(release))
    (folder / environment.CONSTRAINTS).write_text(text, encoding="utf-8")


def _install_command(
    installer: Installer, wanted: Sequence[str], files: Sequence[str], version: str, folder: Path
) -> list[str]:
    words = ["--find-links", str(folder), "--constraint", str(folder / environment.CONSTRAINTS)]
    for file in files:
        words += ["-r", file]
    return installer.install(*words, f"{stand_in.MAIN}=={version}", *wanted)


def _run(command: Sequence[str]) -> int:
    """Run pip or uv, show its output, and return its exit code."""
    environ = {name: value for name, value in os.environ.items() if name != "PIP_REQUIRE_VIRTUALENV"}
    try:
        return subprocess.run(command, env=environ, timeout=TIME_LIMIT_S, check=False).returncode
    except subprocess.TimeoutExpired:
        click.echo(f"{os.path.basename(command[0])} was stopped after {TIME_LIMIT_S} s.", err=True)
        return 1


def _contradictions(installer: Installer) -> set[str]:
    """One sentence for each package that is missing or has a wrong version, as `pip check` reports it."""
    done = subprocess.run(installer.check(), capture_output=True, text=True, timeout=120, check=False)
    if not done.returncode:
        return set()
    if installer.name == "pip":
        return set(done.stdout.splitlines())
    return {line for line in done.stderr.splitlines() if line.startswith("The package")}  # uv says more on stderr


def write_pip_conf(folder: Path) -> None:
    """Keep a genuine Airflow out of this environment when pip is used without us."""
    if not environment.in_virtual_environment():
        click.echo(
            f"{sys.prefix} is no virtual environment, so its pip settings were left alone. To install more packages, use "
            "`tradewind providers install`; pip alone may replace the stand-in by Airflow.",
            err=True,
        )
        return
    path = Path(sys.prefix, "pip.conf")
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listing = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
    added = {"find-links": str(folder), "constraint": str(folder / environment.CONSTRAINTS)}
    merged = environment.merged_pip_conf(text, environment.parsed_pip_config(listing), added)
    if merged != text:
        path.write_text(merged, encoding="utf-8")
        click.echo(f"Wrote {path}: pip keeps the stand-in when it installs or upgrades packages here.")


def uv_advice(version: str, folder: Path) -> str:
    """The lines that users of uv have to add to their `pyproject.toml`."""
    return (
        "With uv, add to pyproject.toml:\n\n"
        "[tool.uv]\n"
        f'override-dependencies = ["{stand_in.MAIN}=={version}"]\n'
        f'find-links = ["{folder}"]'
    )
