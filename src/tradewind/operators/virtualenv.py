"""Operators whose function runs in a virtual environment. DAG files import them from `tradewind.operators.python`."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Collection, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit, urlunsplit

from tradewind.model.errors import DefinitionError
from tradewind.operators.branch import BranchOnResult
from tradewind.operators.callables import DecoratedCallableOperator
from tradewind.operators.python import PythonOperator
from tradewind.operators.separate_interpreter import SeparateInterpreterOperator
from tradewind.operators.subprocesses import Command, describe_exit
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.variables import Connection, Variable

if TYPE_CHECKING:
    from collections.abc import Iterator

CACHE_KEY = "python_virtualenv_operator_cache_key"
"""Name of the variable whose change makes cached environments invalid; Airflow's name."""

StringOrStrings = str | Collection[str] | None


class PythonVirtualenvOperator(SeparateInterpreterOperator):
    """Calls a function in a virtual environment that is created for it, with `uv` if it is installed, else with `venv` and `pip`.

    Args:
        requirements: packages to install: a list of requirements, the text of a requirements file, or the name of a `.txt` file; a
            template.
        python_version: such as `"3.12"`; an interpreter of this version must be installed. None: the version of this process.
        system_site_packages: also make the packages of Tradewind's own interpreter available.
        pip_install_options: further arguments of the installation command.
        index_urls: package indexes, in order of priority; a template. An empty list: no index.
        index_urls_from_connection_ids: connections whose host is the URL of a package index; a template.
        venv_cache_path: a folder in which environments are cached, one for each set of these arguments; a template.
        others: see `SeparateInterpreterOperator`.
    """

    template_fields: Collection[str] = (
        "requirements",
        "index_urls",
        "index_urls_from_connection_ids",
        "venv_cache_path",
        *PythonOperator.template_fields,
    )
    template_ext: Sequence[str] = (".txt",)

    def __init__(
        self,
        *,
        requirements: StringOrStrings = None,
        python_version: str | None = None,
        system_site_packages: bool = True,
        pip_install_options: Sequence[str] | None = None,
        index_urls: StringOrStrings = None,
        index_urls_from_connection_ids: StringOrStrings = None,
        venv_cache_path: str | os.PathLike[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if python_version is not None and not isinstance(python_version, str):
            raise DefinitionError(
                f'{self._name_in_errors()}: python_version is {python_version!r}; it must be a string such as "3.12"'
            )
        self.requirements = _as_list(requirements) or []
        self.python_version = python_version
        self.system_site_packages = system_site_packages
        self.pip_install_options = list(pip_install_options or ())
        self.index_urls = _as_list(index_urls)
        self.index_urls_from_connection_ids = _as_list(index_urls_from_connection_ids)
        self.venv_cache_path = None if venv_cache_path is None else os.fspath(venv_cache_path)

    @contextmanager
    def interpreter(self) -> Iterator[str]:
        if self.venv_cache_path is not None:
            yield self._cached(Path(self.venv_cache_path))
            return
        with tempfile.TemporaryDirectory(prefix="tradewind-venv-", ignore_cleanup_errors=True) as folder:
            yield self._create(Path(folder))

    # --- creating an environment ----------------------------------------------------------------------------------------

    def _create(self, folder: Path) -> str:
        """Create the environment in an empty folder. Returns the path of its interpreter."""
        uv, wanted = shutil.which("uv"), self._requirement_lines()
        site = ["--system-site-packages"] if self.system_site_packages else []
        base = sys.executable if self.python_version is None else self._other_version(uv)
        if uv is not None:
            self._run_step([uv, "venv", "--quiet", "--allow-existing", *site, "--python", base, str(folder)])
        else:
            self._run_step([base, "-m", "venv", *([] if wanted else ["--without-pip"]), *site, str(folder)])
        python = str(folder / "bin" / "python")
        if self.system_site_packages and self.python_version is None:
            _add_own_packages(folder)
        if wanted:
            file = folder / "requirements.txt"
            file.write_text("\n".join(wanted) + "\n", encoding="utf-8")
            install = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install", "--no-input"]
            no_index = ["--no-index"] if self.index_urls == [] and not self.index_urls_from_connection_ids else []
            self._run_step([*install, *no_index, *self.pip_install_options, "-r", str(file)], self._index_variables())
        return python

    def _requirement_lines(self) -> list[str]:
        """Lines of the requirements file, sorted."""
        lines = [line.strip() for text in self.requirements for line in str(text).splitlines() if line.strip()]
        if self.serializer != "pickle" and not any(line.startswith(self.serializer) for line in lines):
            lines.append(self.serializer)
        return sorted(lines)

    def _other_version(self, uv: str | None) -> str:
        name = f"python{self.python_version}"
        found = shutil.which(name)
        if found is None and uv is None:
            raise AirflowException(
                f"python_version of task {self.task_id!r} is {self.python_version!r}, but there is no {name} on the PATH"
            )
        return found or str(self.python_version)

    def _index_variables(self) -> dict[str, str]:
        """Environment variables with the package indexes for pip and uv. (Every user could read passwords in arguments.)"""
        urls = [*(self.index_urls or ()), *map(_index_url, self.index_urls_from_connection_ids or ())]
        first = {f"{tool}_INDEX_URL": urls[0] for tool in ("PIP", "UV") if urls}
        return first | {f"{tool}_EXTRA_INDEX_URL": " ".join(urls[1:]) for tool in ("PIP", "UV") if urls[1:]}

    def _run_step(self, arguments: list[str], variables: Mapping[str, str] | None = None) -> None:
        env = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONHOME")}
        self._command = command = self._command or Command(self.log, keep_last_line=False)
        code = self._run_program(command, arguments, {**env, **(variables or {})})
        if code != 0:
            raise AirflowException(f"cannot create the virtual environment: {Path(arguments[0]).name} {describe_exit(code)}")

    # --- the cache ------------------------------------------------------------------------------------------------------

    def _cached(self, parent: Path) -> str:
        """The interpreter of the cached environment for these arguments. Creates the environment if it is missing or incomplete."""
        key = json.dumps(
            {
                "requirements": self._requirement_lines(),
                "options": self.pip_install_options,
                "index_urls": self.index_urls,
                "python": self.python_version or sys.version,
                "system_site_packages": self.system_site_packages,
                "key": Variable.get(CACHE_KEY, ""),
            }
        )
        folder = parent / f"venv-{hashlib.sha256(key.encode()).hexdigest()[:12]}"
        parent.mkdir(parents=True, exist_ok=True)
        done = folder / "complete.json"
        with open(f"{folder}.lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                self._create(folder)
                done.write_text(key, encoding="utf-8")
                self.log.info("Created the virtual environment %s", folder)
        return str(folder / "bin" / "python")


def _as_list(given: StringOrStrings) -> list[str] | None:
    if given is None:
        return None
    return [given] if isinstance(given, str) else [str(one) for one in given]


def _add_own_packages(folder: Path) -> None:
    """Add the packages of this interpreter. In a virtual environment, `--system-site-packages` would not include them."""
    (site,) = folder.glob("lib/python*/site-packages")
    paths = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    (site / "tradewind_system_packages.pth").write_text("".join(f"{path}\n" for path in paths), encoding="utf-8")


def _index_url(conn_id: str) -> str:
    """The URL of an index, with the login and password of its connection."""
    connection = Connection.get(conn_id)
    parts = urlsplit(connection.host or "")
    if not parts.scheme or not parts.netloc:
        raise AirflowException(f"the host of connection {conn_id!r} is {connection.host!r}; it must be the URL of an index")
    if connection.login is None:
        return urlunsplit(parts)
    secret = "" if connection.password is None else f":{quote(connection.password, safe='')}"
    return urlunsplit(parts._replace(netloc=f"{quote(connection.login, safe='')}{secret}@{parts.netloc}"))


class BranchPythonVirtualenvOperator(BranchOnResult, PythonVirtualenvOperator):
    """Like `BranchPythonOperator`, with the function in a virtual environment."""


class VirtualenvDecoratedOperator(DecoratedCallableOperator, PythonVirtualenvOperator):
    """The operator of `@task.virtualenv`."""

    template_fields: Collection[str] = PythonVirtualenvOperator.template_fields
    custom_operator_name = "@task.virtualenv"


class BranchVirtualenvDecoratedOperator(DecoratedCallableOperator, BranchPythonVirtualenvOperator):
    """The operator of `@task.branch_virtualenv`."""

    template_fields: Collection[str] = PythonVirtualenvOperator.template_fields
    custom_operator_name = "@task.branch_virtualenv"
