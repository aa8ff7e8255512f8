"""The import hooks that serve the `airflow` namespace.

Two finders are in `sys.meta_path`:

- the strict one is first. It serves `airflow` and every module of the table, and raises for any other module below `airflow`,
  because provider packages test for names with `try: … except ImportError`. It leaves `airflow.providers` to Python, so that
  installed provider packages are found where they are.
- the fallback is last. It serves the modules of `airflow.providers` that Tradewind has by itself (`airflow.providers.standard`)
  when no installed package has them, and says which package is missing for the others. It also serves `airflow_plugins`, the
  plugins of a talk on Airflow 1.8, if there is no other package with this name.

A name is looked up in the table when it is used for the first time: `import airflow` loads nothing else.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import logging
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from tradewind.airflow import loading_options, moved_modules, names, older_pendulum, plugin_names
from tradewind.airflow.compat import web_parts
from tradewind.airflow.wrapped_loader import changed_spec
from tradewind.model.errors import did_you_mean
from tradewind.sdk import import_paths

ROOT = "airflow"
PROVIDERS = "airflow.providers"
TALK = "airflow_plugins"
TALK_PLUGINS = "tradewind.airflow.compat.talk_plugins"
TASK_RUNNER = "airflow.sdk.execution_time.task_runner"
SUPERVISOR_COMMS = "tradewind.airflow.compat.supervisor_comms"
EXAMPLES = ("airflow.example_dags", "airflow.contrib.example_dags")
OWN_EXAMPLES = os.path.join(os.path.dirname(__file__), "examples")
"""The helpers of Airflow's examples, which public DAG files import. They are used if the examples are not installed."""
SWITCH_VARIABLE = "TRADEWIND_AIRFLOW_NAMESPACE"
"""Environment variable: `on` serves the namespace although a genuine Airflow is installed, `off` never serves it."""
OBJECT_STORAGE = "tradewind.airflow.compat.object_storage"
"""The module of `ObjectStoragePath`, which needs the package universal-pathlib."""


ONCE_IN_AIRFLOW = {
    f"airflow.providers.cncf.kubernetes.{module}": "tradewind.airflow.compat.kubernetes_pods"
    for module in ("k8s_model", "kube_client", "kubernetes_helper_functions", "pod_generator", "secret")
}
"""Modules of a provider package whose earlier releases import them from Airflow (`airflow.kubernetes.kube_client`) → ours."""

EXTENDED = {
    "airflow.providers.cncf.kubernetes.operators.pod": "tradewind.airflow.compat.container_arguments",
    "airflow.providers.docker.operators.docker": "tradewind.airflow.compat.container_arguments",
    "airflow.providers.slack.hooks.slack_webhook": "tradewind.airflow.compat.slack_tokens",
    "airflow.providers.slack.operators.slack": "tradewind.airflow.compat.slack_tokens",
    "airflow.providers.slack.operators.slack_webhook": "tradewind.airflow.compat.slack_tokens",
}
"""Modules of provider packages → the module here whose `extend` changes them after their import."""

DELEGATES = {"airflow.utils.yaml": "yaml", "airflow.sdk.yaml": "yaml"}
"""Modules that give every name of another module, besides their own."""


class NamespaceModule(ModuleType):
    """One module of the table. A name is resolved when it is used for the first time, and kept."""

    def __getattr__(self, name: str) -> Any:
        """Resolve a name of this module.

        Raises:
            AttributeError: Airflow has no such name in this module; `from … import` turns this into an ImportError.
        """
        if name == "__all__":
            return [public for public in names.public_names_of(self.__name__) if _is_there(self.__name__, public)]
        if name.startswith("__") and name != "__version__":
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        target = names.find(self.__name__, name)
        if target is None:
            child = f"{self.__name__}.{name}"
            if names.is_module(child):
                return importlib.import_module(child)
            return self._outside_the_table(name)
        try:
            value = resolve(target)
        except AttributeError as error:  # raised inside another module: a name is missing there, not in this module
            raise ImportError(f"cannot import name {name!r} from {self.__name__!r}: {error}", name=self.__name__) from error
        setattr(self, name, value)
        return value

    def _outside_the_table(self, name: str) -> Any:
        """A name that a plugin offers in this module, or a constant or helper of a module that is now in a provider package.

        Raises:
            ImportError: there is no such name, and an import statement asks for it: Python would drop the message of an
                AttributeError. Or the provider package is not installed.
            AttributeError: there is no such name.
        """
        behind = DELEGATES.get(self.__name__)
        if behind is not None and hasattr(importlib.import_module(behind), name):
            return getattr(importlib.import_module(behind), name)
        homes = moved_modules.homes_of(self.__name__) if self.__name__ not in plugin_names.PACKAGES else ()
        for home in homes:
            found = getattr(_installed(home), name, None)
            if found is not None:
                return found
        if name in ("log", "logger"):  # nearly every module of Airflow has one of them, and files import it
            return logging.getLogger(self.__name__)
        if self.__name__ in plugin_names.PACKAGES:
            value = plugin_names.find(self.__name__, name)
            if value is not None:
                return value
            sentence = plugin_names.missing(self.__name__, name)
        elif self.__name__.startswith(f"{PROVIDERS}.") and not _provider_is_installed(self.__name__):
            sentence = f"cannot import name {name!r} from {self.__name__!r}. {names.provider_advice(self.__name__)}"
        else:
            near = did_you_mean(name, names.names_of(self.__name__))
            sentence = f"cannot import name {name!r} from {self.__name__!r}: no release of Airflow has it there.{near}"
        if sys._getframe(2).f_code.co_name == "_handle_fromlist":
            raise ImportError(sentence, name=self.__name__)
        raise AttributeError(sentence)

    def __setattr__(self, name: str, value: Any) -> None:
        """Keep a function of this module that has the name of a module in it, as Airflow does: the import of the module
        `airflow.decorators.task_group` must not replace the function `task_group` of `airflow.decorators`.
        """
        if isinstance(value, NamespaceModule) and names.find(self.__name__, name) is not None:
            return
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *names.names_of(self.__name__)})


class TaskRunnerModule(NamespaceModule):
    """`airflow.sdk.execution_time.task_runner`: tests replace Airflow's supervisor in it."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "SUPERVISOR_COMMS":
            importlib.import_module(SUPERVISOR_COMMS).use_stand_in(value)

    def __delattr__(self, name: str) -> None:
        super().__delattr__(name)
        if name == "SUPERVISOR_COMMS":
            importlib.import_module(SUPERVISOR_COMMS).use_stand_in(None)


def _installed(module: str) -> ModuleType | None:
    """A module of a provider package, if it can be imported."""
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def _is_there(module: str, name: str) -> bool:
    """Whether `from module import *` can give this name. False: the name needs a package that is not installed."""
    target = names.find(module, name) or ""
    if not target.startswith((f"{PROVIDERS}.", OBJECT_STORAGE)):
        return True
    try:
        resolve(target)
    except ImportError:
        return False
    return True


def resolve(target: str) -> Any:
    """The object `package.module:attribute`, or the module `package.module`.

    Raises:
        ImportError: the module is one of a provider package that is not installed, or that does not have the name any more.
    """
    module, _, attribute = target.partition(":")
    found = importlib.import_module(module)
    for part in attribute.split(".") if attribute else ():
        if module.startswith(f"{PROVIDERS}.") and not hasattr(found, part):
            return _removed_from_provider(module, part)
        found = getattr(found, part)
    return found


def _removed_from_provider(module: str, name: str) -> Any:
    """The substitute for a name that an installed provider package does not have any more.

    Raises:
        ImportError: there is no substitute.
    """
    target = names.find(module, name)
    if target is None:
        package = names.provider_package(module)
        raise ImportError(f"cannot import name {name!r} from {module!r}: the installed {package} has no such name any more")
    return resolve(target)


class TableLoader:
    """Makes modules from the table (`importlib.abc.Loader`)."""

    @staticmethod
    def create_module(spec: ModuleSpec) -> NamespaceModule:
        """Create an empty module; `__getattr__` provides its names."""
        return (TaskRunnerModule if spec.name == TASK_RUNNER else NamespaceModule)(spec.name)

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Do nothing: `__getattr__` provides the names."""


def _spec(name: str, folders: Sequence[str] = ()) -> ModuleSpec:
    spec = ModuleSpec(name, TableLoader(), is_package=True)  # type: ignore[arg-type]
    spec.submodule_search_locations = list(folders)
    return spec


class StrictFinder:
    """Serves `airflow` and its modules except the providers (`importlib.abc.MetaPathFinder`)."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of a module of the table; None for other packages and for `airflow.providers`.

        Raises:
            ModuleNotFoundError: no release of Airflow has this module, or Tradewind does not have it.
        """
        if name == ROOT:
            return _spec(name, folders())
        if name == older_pendulum.PENDULUM:
            return older_pendulum.spec()
        if name == loading_options.ORM:
            return loading_options.spec(path)
        if not name.startswith("airflow.") or name == PROVIDERS:
            return None
        if name.startswith("airflow.providers."):
            return _with_older_behaviour(name, path)
        if names.is_module(name):
            return _spec(name)
        found = _example(name) or _plugin(name) or _beside(name)
        if found is not None:
            return found
        raise ModuleNotFoundError(f"No module named {name!r}.{did_you_mean(name, names.modules())}", name=name)


def _serve_dropped_names(module: ModuleType) -> None:
    """Serve the names that a module of an installed provider package has dropped.

    Names of the package have priority; only missing names are looked up in the table.
    """
    theirs = getattr(module, "__getattr__", None)

    def find(name: str) -> Any:
        target = names.provider_target(module.__name__, name)
        if target is not None:
            return resolve(target)
        if theirs is not None:
            return theirs(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    vars(module)["__getattr__"] = find


def _extend(module: ModuleType) -> None:
    """Let the classes of an installed module accept arguments that the package has dropped."""
    importlib.import_module(EXTENDED[module.__name__]).extend(module)


def _with_older_behaviour(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """The spec of an installed module that had other names or arguments once; None for other modules: Python finds them."""
    change = _extend if name in EXTENDED else _serve_dropped_names if names.had_other_names(name) else None
    return changed_spec(name, path, change) if change is not None else None


class PluginLoader(TableLoader):
    """Creates a module from the contents of a plugin."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Add the plugin's operators, hooks, sensors, executors or macros."""
        vars(module).update(plugin_names.members_of(module.__name__) or {})


def _plugin(name: str) -> ModuleSpec | None:
    """The spec of `airflow.operators.ours`, where a plugin `ours` has operators."""
    if plugin_names.members_of(name) is None:
        return None
    return ModuleSpec(name, PluginLoader(), is_package=True)  # type: ignore[arg-type]


def _example(name: str) -> ModuleSpec | None:
    """A module of Airflow's example DAGs: they import each other as `airflow.example_dags.…`, wherever their folder is."""
    for package in EXAMPLES:
        if name == package:
            entries = [entry for entry in sys.path if os.path.basename(os.path.normpath(entry)) == "example_dags"]
            entries += [os.path.join(entry, "example_dags") for entry in sys.path]
            found = [entry for entry in dict.fromkeys(entries) if os.path.isdir(entry)]
            return _spec(name, [*found, OWN_EXAMPLES])
        if name.startswith(f"{package}."):
            parent = sys.modules.get(name.rpartition(".")[0])
            return PathFinder.find_spec(name, list(getattr(parent, "__path__", ())))
    return None


def _beside(name: str) -> ModuleSpec | None:
    """A module in another folder `airflow` on `sys.path`. Such folders extend Airflow's own package, and some packages use this."""
    *parents, _ = name.split(".")[1:]
    entries = (os.path.join(entry or os.getcwd(), ROOT) for entry in sys.path)
    folders = [folder for folder in dict.fromkeys(entries) if not os.path.isdir(os.path.join(folder, "models"))]
    return PathFinder.find_spec(name, [os.path.join(folder, *parents) for folder in folders])


class FallbackFinder:
    """Serves the modules of `airflow.providers` that Tradewind contains, if no installed package has them."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of a provider module of the table.

        Raises:
            ModuleNotFoundError: the message names the package to install.
        """
        if name == TALK or name.startswith(f"{TALK}."):
            return _talk_plugin(name)
        if name.partition(".")[0] in web_parts.PACKAGES:
            return ModuleSpec(name, WebPackageLoader(), is_package=True) if _a_plugin_imports() else None  # type: ignore[arg-type]
        if name != PROVIDERS and not name.startswith("airflow.providers."):
            return None
        if name in ONCE_IN_AIRFLOW and _provider_is_installed(name):
            return ModuleSpec(name, OnceInAirflowLoader(), is_package=False)  # type: ignore[arg-type]
        if name in (PROVIDERS, *names.PROVIDER_GROUPS) or names.is_module(name) or names.had_other_names(name):
            return _spec(name)
        raise ModuleNotFoundError(f"No module named {name!r}. {_advice(name)}", name=name)


class WebPackage(ModuleType):
    """A module of a package for web servers that is not installed."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return web_parts.part(name)


class WebPackageLoader(TableLoader):
    """Makes such a module."""

    @staticmethod
    def create_module(spec: ModuleSpec) -> Any:
        """Create the module; `__getattr__` provides its names."""
        return WebPackage(spec.name)


def _a_plugin_imports() -> bool:
    """Whether a file of the plugins folder executes the import. Other files get the error that the package is missing."""
    folder = os.path.join(os.path.realpath(import_paths.plugins_folder()), "")
    frame = sys._getframe(2)
    while frame is not None and (frame.f_globals.get("__name__") or "").startswith(
        ("importlib", "_frozen_importlib", __name__)
    ):
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None and os.path.realpath(frame.f_code.co_filename).startswith(folder)


class OnceInAirflowLoader:
    """Creates a module that an earlier release of a provider package expects in Airflow (`importlib.abc.Loader`)."""

    @staticmethod
    def create_module(spec: ModuleSpec) -> None:
        """Let Python create the module."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Add the names of our module."""
        ours = vars(importlib.import_module(ONCE_IN_AIRFLOW[module.__name__]))
        vars(module).update({name: value for name, value in ours.items() if not name.startswith("__")})


def _provider_root(name: str) -> ModuleType | None:
    """The package of the provider that a module belongs to, if it is imported: `airflow.providers.cncf.kubernetes`."""
    parts = len(names.provider_package(name).removeprefix("apache-airflow-providers-").split("-"))
    return sys.modules.get(".".join(name.split(".")[: 2 + min(parts, 2)]))


def _provider_is_installed(name: str) -> bool:
    root = _provider_root(name)
    return root is not None and not isinstance(root, NamespaceModule)


def _advice(name: str) -> str:
    """A sentence that says how to install a missing module of a provider package."""
    package = names.provider_package(name)
    if not _provider_is_installed(name):
        return names.provider_advice(name)
    version = getattr(_provider_root(name), "__version__", "")
    return f"The installed {package} {version} has no such module; other releases of the package may have it".replace("  ", " ")


class TalkPluginsLoader(TableLoader):
    """Creates a module of the plugins of the talk."""

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Add the module's names."""
        plugins = importlib.import_module(TALK_PLUGINS)
        for name in plugins.MODULES[module.__name__]:
            setattr(module, name, getattr(plugins, name))


def _talk_plugin(name: str) -> ModuleSpec | None:
    """The spec of a module of `airflow_plugins`, or None. If the user has a package of this name, only that package is used."""
    package = sys.modules.get(TALK)
    theirs = package is not None and not isinstance(package, NamespaceModule)
    if theirs or name not in importlib.import_module(TALK_PLUGINS).MODULES:
        return None
    return ModuleSpec(name, TalkPluginsLoader(), is_package=name == TALK)  # type: ignore[arg-type]


def folders() -> list[str]:
    """Folders `airflow` on `sys.path`, where provider packages are installed."""
    found = (os.path.join(entry or os.getcwd(), ROOT) for entry in sys.path)
    return [folder for folder in dict.fromkeys(found) if os.path.isdir(os.path.join(folder, "providers"))]


def genuine_airflow() -> str | None:
    """The file of a genuine Airflow in this environment, or None."""
    spec = PathFinder.find_spec(ROOT, None)
    origin = spec.origin if spec is not None else None
    if origin is None or not os.path.isdir(os.path.join(os.path.dirname(origin), "models")):
        return None
    return origin


def is_active() -> bool:
    """Whether the namespace is served in this process."""
    return StrictFinder in sys.meta_path


def serve_from_stand_in(name: str) -> None:
    """Make the stand-in's module `airflow`, which Python is importing, a module of the namespace.

    A program that imports `airflow` without Tradewind finds the stand-in's file, which calls this function.
    """
    module = sys.modules[name]
    module.__class__ = NamespaceModule
    _add_finders()


def _add_finders() -> None:
    if not is_active():
        logging.getLogger("airflow.task").setLevel(logging.INFO)  # as Airflow configures it
        older_pendulum.add_names_if_imported()
        loading_options.accept_columns_if_imported()
        sys.meta_path.insert(0, StrictFinder)
        sys.meta_path.append(FallbackFinder)


def activate() -> bool:
    """Serve the `airflow` namespace in this process. Does nothing the second time.

    Returns:
        False if a genuine Airflow is installed, unless `TRADEWIND_AIRFLOW_NAMESPACE=on`.
    """
    if is_active():
        return True
    switch = os.environ.get(SWITCH_VARIABLE, "").lower()
    if switch == "off" or ROOT in sys.modules or (switch != "on" and genuine_airflow() is not None):
        return False
    _add_finders()
    return True
