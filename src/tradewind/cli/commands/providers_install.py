"""`tradewind providers install`: provider packages from the registry, with a local stand-in in place of Airflow."""

from __future__ import annotations

import http.client
import os
import shlex
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from tradewind.model.errors import Conflict, NotFound, WrongArgument
from tradewind.provider_packages import environment, installed, installers, requirements, requirements_files, stand_in, versions
from tradewind.provider_packages.installers import Installer, InstallerName
from tradewind.provider_packages.requirements import Requirement
from tradewind.provider_packages.requirements_files import Adapted

TIME_LIMIT_S = 3600
"""How long pip or uv may take to download and install everything."""
DOWNLOAD_LIMIT_S = 30
"""How long a server may take to answer with a requirements file, such as Airflow's constraints."""
FILE_MAX = 4 * 1024 * 1024
"""Maximum size of a requirements file from a server, in bytes."""


def read_requirements(files: Iterable[str], constraints: Iterable[str] = ()) -> Adapted:
    """The requirements in files and in the files that they include, as they can be installed beside Tradewind.

    Raises:
        NotFound: there is no such file, or an address cannot be read.
    """
    return requirements_files.adapt(files, environment.needs_of(), _text_of, os.environ, constraints)


def _text_of(place: str) -> str:
    """The text of a requirements file. `place`: path or address. Raises NotFound: it cannot be read."""
    try:
        if not place.startswith(("http://", "https://")):
            return Path(place.removeprefix("file://")).read_text(encoding="utf-8")
        with urllib.request.urlopen(place, timeout=DOWNLOAD_LIMIT_S) as answer:
            content: bytes = answer.read(FILE_MAX + 1)
    except FileNotFoundError:
        raise NotFound(f"there is no requirements file {place!r}.") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise NotFound(
            f"the requirements file {place} cannot be read: {error}. Download it, and name the file instead."
        ) from None
    if len(content) > FILE_MAX:
        raise NotFound(f"the requirements file {place} is longer than {FILE_MAX} bytes.")
    return content.decode("utf-8", "replace")


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
    constraints: Sequence[str] = (),
    airflow: str | None,
    dry_run: bool,
    wanted_installer: InstallerName | None = None,
) -> None:
    """Install provider packages by name and from requirements files.

    Args:
        constraints: paths or addresses of constraints files, such as those of a release of Airflow.

    Raises:
        TradewindError: a name is unknown, requirements contradict each other, or pip or uv fails.
    """
    if not names and not files:
        raise WrongArgument(
            "name provider packages (tradewind providers install postgres amazon) or a file (-r requirements.txt)."
        )
    installer = installers.of_this_environment(wanted_installer)
    adapted = read_requirements(files, constraints)
    listed = adapted.parsed()
    release = airflow or requirements.wanted_airflow([*listed, *_typed(names)])
    wanted = [requirements.provider_requirement(name, release) for name in names]
    requirements.refuse_mixed_generations([*listed, *_parsed(wanted), *_present()])
    refuse_genuine_airflow(installer)
    version = versions.stand_in_version(release)
    folder = environment.stand_in_folder()
    for change in adapted.changes:
        click.echo(str(change), err=True)
    if dry_run:
        click.echo(f"Stand-in: {stand_in.MAIN} {version} in {folder}")
        click.echo(shlex.join(_install_command(installer, wanted, files, constraints, version, folder)))
        if adapted.changes:
            click.echo("The files are installed with the changes above.")
        return
    before = _contradictions(installer)
    write_stand_ins(release, folder)
    repair_stand_in(folder, installer)
    with tempfile.TemporaryDirectory(prefix="tradewind-") as copies:
        if adapted.changes:
            files, constraints = _write_adapted(adapted, Path(copies))
        failed = _run(_install_command(installer, wanted, files, constraints, version, folder))
    if failed:
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


def _write_adapted(adapted: Adapted, folder: Path) -> tuple[list[str], list[str]]:
    """Write the changed content of requirements files to a folder. Returns the requirements file, and the constraints file."""
    found = []
    for name, lines in (("requirements.txt", adapted.requirements), ("constraints.txt", adapted.constraints)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        found.append([str(folder / name)])
    return found[0], found[1]


def _install_command(
    installer: Installer, wanted: Sequence[str], files: Sequence[str], constraints: Sequence[str], version: str, folder: Path
) -> list[str]:
    words = ["--find-links", str(folder), "--constraint", str(folder / environment.CONSTRAINTS)]
    for file in constraints:
        words += ["--constraint", file]
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
