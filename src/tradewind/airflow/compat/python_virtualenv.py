"""`airflow.utils.python_virtualenv`: virtual environments for operators of provider packages."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import jinja2

from tradewind.airflow.compat.process_utils import execute_in_subprocess

__all__ = ["prepare_virtualenv", "remove_task_decorator", "write_python_script"]


def prepare_virtualenv(
    venv_directory: str,
    python_bin: str,
    system_site_packages: bool,
    requirements: list[str] | None = None,
    requirements_file_path: str | None = None,
    pip_install_options: list[str] | None = None,
    index_urls: list[str] | None = None,
    **_kwargs: Any,
) -> str:
    """Create a virtual environment and install packages into it.

    Returns:
        Path of its Python interpreter.

    Raises:
        subprocess.CalledProcessError: a command failed.
    """
    options = list(pip_install_options or [])
    if index_urls:
        options += ["--index-url", index_urls[0]]
        for url in index_urls[1:]:
            options += ["--extra-index-url", url]
    uv = shutil.which("uv")
    python = os.path.join(venv_directory, "bin", "python")
    if uv is not None:
        shared = ["--system-site-packages"] if system_site_packages else []
        execute_in_subprocess([uv, "venv", "--allow-existing", "--seed", "--python", python_bin, *shared, venv_directory])
        install = [uv, "pip", "install", "--python", python]
    else:
        shared = ["--system-site-packages"] if system_site_packages else []
        execute_in_subprocess([python_bin or sys.executable, "-m", "venv", *shared, venv_directory])
        install = [python, "-m", "pip", "install"]
    if requirements:
        execute_in_subprocess([*install, *options, *requirements])
    if requirements_file_path:
        execute_in_subprocess([*install, *options, "-r", requirements_file_path])
    return python


def write_python_script(
    jinja_context: dict[str, Any],
    filename: str,
    render_template_as_native_obj: bool = False,
    template_file: str = "python_virtualenv_script.jinja2",
) -> None:
    """Write a script from a template file, for `docker` and `kubernetes` decorators.

    Args:
        template_file: path of the template, for example in a provider package.
    """
    path = Path(template_file)
    loader = jinja2.FileSystemLoader(str(path.parent))
    environment = jinja2.Environment(loader=loader, undefined=jinja2.StrictUndefined)
    environment.get_template(path.name).stream(**jinja_context).dump(filename)


def remove_task_decorator(python_source: str, task_decorator_name: str) -> str:
    """Remove a decorator and its arguments from the source of a function."""

    def without(source: str, name: str) -> str:
        start = re.search(rf"^[ \t]*{re.escape(name)}(?![\w.])", source, re.MULTILINE)
        if start is None:
            return source
        end, depth = start.end(), 0
        while end < len(source) and (depth or source[end] != "\n"):
            depth += {"(": 1, ")": -1}.get(source[end], 0)
            end += 1
        return source[: start.start()] + source[end + 1 :]

    decorators = ["@setup", "@teardown", "@task.skip_if", "@task.run_if", task_decorator_name]
    for name in decorators:
        python_source = without(python_source, name)
    return python_source
