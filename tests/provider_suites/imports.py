"""Imports every module of the installed provider packages, one process for each package, and counts the imported modules.

    python -m tests.provider_suites.imports [--path FOLDER] [--jobs N] [--json FILE] [PACKAGE …]

With `--path`, it imports the packages of a folder (`pip install --no-deps --target FOLDER …`) instead of installed ones. So
releases of earlier years are tested with the third-party packages of an environment.

A module fails for one of three reasons: a third-party package or library that is not installed, or has other names than the module
expects (`third party`), another provider package that is not installed (`provider`), or a name that Airflow has and Tradewind
lacks (`ours`). Executors, auth managers, command lines, log handlers and plugins belong to Airflow's own services; they are
counted separately.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from typing import NamedTuple

PREFIX = "airflow.providers."
TIME_LIMIT_S = 180
_SERVICES = re.compile(
    r"\.(executors|auth_manager|cli|log|plugins|example_dags|www|api|api_fastapi|worker_api|openlineage\.(plugins|extractors))(\.|$)"
)
_CHILD = """
import importlib, json, sys, warnings
warnings.simplefilter("ignore")
import tradewind.airflow
for name in json.loads(sys.argv[1]):
    try:
        importlib.import_module(name)
        said = ""
    except BaseException as error:
        said = f"{type(error).__name__}: {error}"
        inner = error
        while inner is not None:
            if isinstance(inner, ModuleNotFoundError) and inner.name:
                said += f" [{inner.name}]"
            inner = inner.__cause__ or inner.__context__
    print("\\x01" + json.dumps([name, said[:600]]), flush=True)
"""


class Result(NamedTuple):
    """The result of importing one module."""

    package: str
    module: str
    kind: str
    """`imported`, `third party`, `provider` or `ours`."""
    message: str
    is_service: bool


def packages(folder: str | None) -> dict[str, list[str]]:
    """Provider package → its modules, from the installed files, or those of a folder."""
    found: dict[str, list[str]] = {}
    for dist in metadata.distributions() if folder is None else metadata.distributions(path=[folder]):
        name = dist.metadata["Name"] or ""
        if not name.startswith(("apache-airflow-providers-", "apache-airflow-backport-providers-")):
            continue
        modules = []
        for file in dist.files or ():
            path = str(file)
            if path.startswith("airflow/providers/") and path.endswith(".py") and "/tests/" not in path:
                modules.append(path.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        found[f"{name.partition('providers-')[2]} {dist.version}"] = sorted(modules)
    return dict(sorted(found.items()))


def import_all(package: str, modules: list[str], folder: str | None) -> Iterator[Result]:
    """Import the modules of a package in one process. If a module ends the process, the other modules are imported in a new one."""
    left = list(modules)
    while left:
        try:
            done = subprocess.run(
                [sys.executable, "-c", _CHILD, json.dumps(left)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=TIME_LIMIT_S + 2 * len(left),
                check=False,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (folder, os.environ.get("PYTHONPATH"))))},
            )
            output, how = done.stdout, f"the process ended with {done.returncode}: {done.stderr[-300:]}"
        except subprocess.TimeoutExpired as late:
            output, how = (late.stdout or b"").decode(errors="replace"), "it took too long"
        for line in output.splitlines():
            if line.startswith("\x01"):
                name, said = json.loads(line[1:])
                left.remove(name)
                yield Result(package, name, kind_of(said), said, bool(_SERVICES.search(name)))
        if left:
            name = left.pop(0)
            yield Result(package, name, "ours", how, bool(_SERVICES.search(name)))


def kind_of(said: str) -> str:
    """The kind of failure, from the text of the error."""
    if not said:
        return "imported"
    if "cannot open shared object file" in said:
        return "third party"
    foreign = re.search(r"cannot import name .* from '([\w.]+)'|module '([\w.]+)' has no attribute", said)
    if foreign and not (foreign[1] or foreign[2]).startswith(("airflow", "tradewind")):
        return "third party"
    missing = re.findall(r"\[([\w.]+)\]", said)
    for name in missing:
        if name.startswith(PREFIX) or name == "airflow.providers":
            return "provider"
        if not name.startswith(("airflow", "tradewind")):
            return "third party"
    if "Install its provider package" in said or "AirflowOptionalProviderFeatureException" in said:
        return "provider"
    return "ours"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json")
    parser.add_argument("--path", help="a folder with provider packages")
    parser.add_argument("packages", nargs="*")
    given = parser.parse_args()
    every = packages(given.path)
    wanted = {name: every[name] for name in every if not given.packages or name.split()[0] in given.packages}
    with ThreadPoolExecutor(given.jobs) as pool:
        of_packages = pool.map(lambda name: list(import_all(name, wanted[name], given.path)), wanted)
        results = [result for found in of_packages for result in found]
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump([result._asdict() for result in results], file, indent=1)
    print("| package | modules | imported | third party missing | provider missing | failed |")
    print("|---|---|---|---|---|---|")
    for name in wanted:
        _print_row(name, [result for result in results if result.package == name and not result.is_service])
    _print_row("**all**", [result for result in results if not result.is_service])
    _print_row("Airflow's own services", [result for result in results if result.is_service])
    for result in results:
        if result.kind == "ours" and not result.is_service:
            print(f"{result.module}: {result.message}")


def _print_row(name: str, results: list[Result]) -> None:
    count = Counter(result.kind for result in results)
    present = len(results) - count["third party"] - count["provider"]
    share = f" ({count['imported'] / present:.1%})" if present else ""
    print(
        f"| {name} | {len(results)} | {count['imported']}{share} | {count['third party']} | {count['provider']} | {count['ours']} |"
    )


if __name__ == "__main__":
    main()
