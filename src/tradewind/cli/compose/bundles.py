"""The folders with DAG files that a service watches."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tradewind.model.bundles import OTHER_FOLDER, Scope

if TYPE_CHECKING:
    from tradewind.bundles.specs import BundleSpec, VersionedBundle
    from tradewind.settings import Settings


DAGS_BUNDLE, EXAMPLES_BUNDLE = "dags-folder", "example_dags"
"""Bundle names of the two folders with DAG files, as in Airflow."""


SUBDIR = "TRADEWIND_SUBDIR"
"""Environment variable with the absolute path of `--subdir`, for a service and its child processes."""


DAG_ID = "TRADEWIND_DAG_ID"
"""Environment variable with the only DAG that a scheduler schedules."""


def watched_bundle(settings: Settings) -> tuple[str, str, str]:
    """The DAG files that `--subdir` or the setting names: (bundle, its folder, the only file or subfolder to read; "": all).

    A part of the configured DAG folder belongs to the bundle of that folder. Any other folder is a bundle of its own, so that
    DAGs of the two folders are never confused.
    """
    folder = settings.paths.dags
    given = os.environ.get(SUBDIR)
    if given is None or os.path.realpath(given) == os.path.realpath(folder):
        return DAGS_BUNDLE, folder, ""
    path = os.path.realpath(given)
    inside = os.path.relpath(path, os.path.realpath(folder))
    if not inside.startswith(".."):
        return DAGS_BUNDLE, folder, inside
    if os.path.isfile(path):
        return f"{OTHER_FOLDER}{os.path.dirname(path)}", os.path.dirname(path), os.path.basename(path)
    return f"{OTHER_FOLDER}{path}", path, ""


def watched_scope(settings: Settings) -> Scope:
    """The DAGs that the scheduler schedules: those of its folder and, if the examples are shown, the shipped examples."""
    bundle, _, only = watched_bundle(settings)
    bundles = tuple(read_bundles(settings)) or (bundle,)
    if settings.core.load_examples and not only:
        bundles += (EXAMPLES_BUNDLE,)
    return Scope(bundles, only, os.environ.get(DAG_ID))


def examples_folder() -> str | None:
    """The folder of the shipped examples: inside the installed package, otherwise in the source checkout; None: there is none."""
    package = Path(__file__).resolve().parents[2]
    for folder in (package / "_examples", package.parents[1] / "examples"):
        if folder.is_dir():
            return str(folder)
    return None


def bundle_folders(settings: Settings) -> dict[str, str]:
    """The folders of bundles other than the DAG folder, by name. For one with versions: a path to its newest files."""
    examples = examples_folder()
    found = {EXAMPLES_BUNDLE: examples} if examples is not None else {}
    versioned = versioned_bundles(settings)
    for spec in configured_bundles(settings):
        if spec.name in versioned:
            found[spec.name] = versioned[spec.name].newest
        elif spec.name != DAGS_BUNDLE or spec.place:
            found[spec.name] = os.path.abspath(os.path.expanduser(spec.place)) if spec.place else settings.paths.dags
    return found


def configured_bundles(settings: Settings) -> tuple[BundleSpec, ...]:
    """The bundles of the setting. Raises ConfigError."""
    if not settings.bundles.list:
        return ()
    from tradewind.bundles.specs import (
        read_bundles as parse,  # lazy import: loads msgspec; most installations have only the DAG folder
    )

    return parse(settings.bundles.list, DAGS_BUNDLE)


def versioned_bundles(settings: Settings) -> dict[str, VersionedBundle]:
    """The bundles that have versions, by name."""
    specs = [spec for spec in configured_bundles(settings) if spec.has_versions]
    if not specs:
        return {}
    from tradewind.bundles.specs import VersionedBundle  # lazy import: see above

    return {spec.name: VersionedBundle(spec, os.path.join(settings.bundles.storage_folder, spec.name)) for spec in specs}


def read_bundles(settings: Settings) -> dict[str, str]:
    """The bundles of the setting, which the parser reads, with their folders. Empty: only the DAG folder, or that of `--subdir`."""
    if os.environ.get(SUBDIR) is not None:
        return {}
    folders = {DAGS_BUNDLE: settings.paths.dags, **bundle_folders(settings)}
    return {spec.name: folders[spec.name] for spec in configured_bundles(settings)}
