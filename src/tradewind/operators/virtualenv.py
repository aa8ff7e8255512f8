"""Tasks whose function runs in a virtual environment of its own. DAG files import these from `tradewind.operators.python`."""

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
from tradewind.operators.branch import BranchMixIn
from tradewind.operators.callables import DecoratedCall
from tradewind.operators.external_python import ForeignPythonOperator
from tradewind.operators.python import PythonOperator
from tradewind.operators.subprocesses import Command, ending
from tradewind.sdk.exceptions import AirflowException
from tradewind.sdk.variables import Connection, Variable

if TYPE_CHECKING:
    from collections.abc import Iterator

CACHE_KEY = "python_virtualenv_operator_cache_key"
"""The variable that, changed, makes kept environments anew; Airflow's name."""

Several = str | Collection[str] | None


class PythonVirtualenvOperator(ForeignPythonOperator):
    """Calls a function in a virtual environment that is made for it, with `uv` where it is installed, else with `venv` and `pip`.

    Args:
        requirements: what to install: requirements, or the text of a requirements file, or the name of a `.txt` file; a
            template.
        python_version: such as `"3.12"`: an interpreter of that name must be installed. None: the one that runs Tradewind.
        system_site_packages: the packages of the interpreter that runs Tradewind are there, too.
        pip_install_options: further arguments of the installation.
        index_urls: indexes of packages, the first before the others; a template. Empty: no index at all.
        index_urls_from_connection_ids: connections whose host is the address of such an index; a template.
        venv_cache_path: a folder in which environments are kept, one for each set of these arguments; a template.
        others: see `ForeignPythonOperator`.
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
        requirements: Several = None,
        python_version: str | None = None,
        system_site_packages: bool = True,
        pip_install_options: Sequence[str] | None = None,
        index_urls: Several = None,
        index_urls_from_connection_ids: Several = None,
        venv_cache_path: str | os.PathLike[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if python_version is not None and not isinstance(python_version, str):
            raise DefinitionError(
                f'{self._name_in_errors()}: python_version is {python_version!r}; it must be a text such as "3.12"'
            )
        self.requirements = _listed(requirements) or []
        self.python_version = python_version
        self.system_site_packages = system_site_packages
        self.pip_install_options = list(pip_install_options or ())
        self.index_urls = _listed(index_urls)
        self.index_urls_from_connection_ids = _listed(index_urls_from_connection_ids)
        self.venv_cache_path = None if venv_cache_path is None else os.fspath(venv_cache_path)

    @contextmanager
    def interpreter(self) -> Iterator[str]:
        if self.venv_cache_path is not None:
            yield self._kept(Path(self.venv_cache_path))
            return
        with tempfile.TemporaryDirectory(prefix="tradewind-venv-", ignore_cleanup_errors=True) as folder:
            yield self._make(Path(folder))

    # --- making one -----------------------------------------------------------------------------------------------------

    def _make(self, folder: Path) -> str:
        """Make the environment in an empty folder; returns its interpreter."""
        uv, wanted = shutil.which("uv"), self._wanted()
        site = ["--system-site-packages"] if self.system_site_packages else []
        base = sys.executable if self.python_version is None else self._other_version(uv)
        if uv is not None:
            self._do([uv, "venv", "--quiet", "--allow-existing", *site, "--python", base, str(folder)])
        else:
            self._do([base, "-m", "venv", *([] if wanted else ["--without-pip"]), *site, str(folder)])
        python = str(folder / "bin" / "python")
        if self.system_site_packages and self.python_version is None:
            _show_packages_of_this(folder)
        if wanted:
            listed = folder / "requirements.txt"
            listed.write_text("\n".join(wanted) + "\n", encoding="utf-8")
            install = [uv, "pip", "install", "--python", python] if uv else [python, "-m", "pip", "install", "--no-input"]
            none = ["--no-index"] if self.index_urls == [] and not self.index_urls_from_connection_ids else []
            self._do([*install, *none, *self.pip_install_options, "-r", str(listed)], self._indexes())
        return python

    def _wanted(self) -> list[str]:
        """Lines of the requirements file."""
        lines = [line.strip() for text in self.requirements for line in str(text).splitlines() if line.strip()]
        if self.serializer != "pickle" and not any(line.startswith(self.serializer) for line in lines):
            lines.append(self.serializer)
        return sorted(lines)

    def _other_version(self, uv: str | None) -> str:
        name = f"python{self.python_version}"
        found = shutil.which(name)
        if found is None and uv is None:
            raise AirflowException(
                f"python_version of task {self.task_id!r} is {self.python_version!r}, but there is no {name} on PATH"
            )
        return found or str(self.python_version)

    def _indexes(self) -> dict[str, str]:
        """Variables that tell pip and uv where to look. Not arguments: those, with their passwords, everybody could read."""
        urls = [*(self.index_urls or ()), *map(_index_of, self.index_urls_from_connection_ids or ())]
        first = {f"{tool}_INDEX_URL": urls[0] for tool in ("PIP", "UV") if urls}
        return first | {f"{tool}_EXTRA_INDEX_URL": " ".join(urls[1:]) for tool in ("PIP", "UV") if urls[1:]}

    def _do(self, arguments: list[str], told: Mapping[str, str] | None = None) -> None:
        self._command = self._command or Command(self.log, keep_last_line=False)
        env = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONHOME")}
        try:
            code, _ = self._command.run(arguments, env={**env, **(told or {})})
        except OSError as error:
            raise AirflowException(f"{arguments[0]} cannot be started: {error}") from error
        if code != 0:
            raise AirflowException(f"the virtual environment could not be made: {Path(arguments[0]).name} {ending(code)}")

    # --- keeping one ----------------------------------------------------------------------------------------------------

    def _kept(self, parent: Path) -> str:
        """The interpreter of the kept environment for these arguments; made when it is not there or was left half made."""
        facts = json.dumps(
            {
                "requirements": self._wanted(),
                "options": self.pip_install_options,
                "index_urls": self.index_urls,
                "python": self.python_version or sys.version,
                "system_site_packages": self.system_site_packages,
                "key": Variable.get(CACHE_KEY, ""),
            }
        )
        folder = parent / f"venv-{hashlib.sha256(facts.encode()).hexdigest()[:12]}"
        parent.mkdir(parents=True, exist_ok=True)
        done = folder / "complete.json"
        with open(f"{folder}.lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                self._make(folder)
                done.write_text(facts, encoding="utf-8")
                self.log.info("Made the virtual environment %s", folder)
        return str(folder / "bin" / "python")


def _listed(given: Several) -> list[str] | None:
    if given is None:
        return None
    return [given] if isinstance(given, str) else [str(one) for one in given]


def _show_packages_of_this(folder: Path) -> None:
    """Packages beside Tradewind: where it stands in an environment itself, `--system-site-packages` would mean those below that."""
    (site,) = folder.glob("lib/python*/site-packages")
    paths = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    (site / "tradewind_system_packages.pth").write_text("".join(f"{path}\n" for path in paths), encoding="utf-8")


def _index_of(conn_id: str) -> str:
    """The address of an index, with the login and password of its connection."""
    connection = Connection.get(conn_id)
    parts = urlsplit(connection.host or "")
    if not parts.scheme or not parts.netloc:
        raise AirflowException(f"the host of connection {conn_id!r} is {connection.host!r}; it must be the address of an index")
    if connection.login is None:
        return urlunsplit(parts)
    secret = "" if connection.password is None else f":{quote(connection.password, safe='')}"
    return urlunsplit(parts._replace(netloc=f"{quote(connection.login, safe='')}{secret}@{parts.netloc}"))


class BranchPythonVirtualenvOperator(BranchMixIn, PythonVirtualenvOperator):
    """Chooses, as `BranchPythonOperator` does, by a function in a virtual environment."""

    def execute(self, context: Any) -> Any:
        return self.do_branch(context, super().execute(context))


class VirtualenvDecoratedOperator(DecoratedCall, PythonVirtualenvOperator):
    """Behind `@task.virtualenv`."""

    template_fields: Collection[str] = PythonVirtualenvOperator.template_fields
    custom_operator_name = "@task.virtualenv"


class BranchVirtualenvDecoratedOperator(DecoratedCall, BranchPythonVirtualenvOperator):
    """Behind `@task.branch_virtualenv`."""

    template_fields: Collection[str] = PythonVirtualenvOperator.template_fields
    custom_operator_name = "@task.branch_virtualenv"
