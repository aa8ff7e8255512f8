"""The zygote of the parser: a process from which one child is forked for each DAG file.

    parser ──exec──▶ zygote ──fork──▶ parse child (imports one file, writes a report to a memory file, ends)

The zygote has imported what DAG files usually import, and nothing else: no store, no settings, no credentials in its environment. A
child has limits on time, memory and core dumps, its own session, and is a subreaper: processes that it leaves behind become
children of the zygote, which kills them. So a file may loop, crash, exit or fork: only its own child ends, and only its own
last version is kept.

A child that cannot write a report leaves a crash note in the memory file: faulthandler's frames, or the line that called
`os._exit`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import hashlib
import importlib
import importlib.machinery
import os
import pkgutil
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from tradewind.model import secret_names
from tradewind.model.definition import DagDefinition, DefinitionDefaults, encode_definition, version_hash
from tradewind.model.errors import DefinitionError
from tradewind.observe.failpoints import fp
from tradewind.parser import plugins_child, problems, timetable_child
from tradewind.parser.lookups_child import ParsingRuntime
from tradewind.parser.orders import REPORT, ParseOrder, decode_order
from tradewind.parser.parse_result import ChildReport, Problem, ReadDag
from tradewind.platform import linux
from tradewind.platform.fork_server import ForkServer, Ready, encode, freeze_heap
from tradewind.sdk import dag_warnings, open_dags
from tradewind.sdk.conf import conf
from tradewind.sdk.definition import to_definition
from tradewind.sdk.entry_points import read_entry_points
from tradewind.sdk.import_paths import plugins_folder
from tradewind.sdk.load import Loaded, load_file
from tradewind.sdk.open_dags import collecting
from tradewind.wire import runtime

if TYPE_CHECKING:
    from tradewind.sdk.dag import DAG

PRELOADED = (
    "json",
    "logging",
    "pathlib",
    "random",
    "subprocess",
    "textwrap",
    "uuid",
    "pendulum",
    "tradewind.airflow.finder",
    "tradewind.execution.context",
    "tradewind.sdk.decorators",
    "tradewind.sdk.exceptions",
    "tradewind.execution.macros",
    "tradewind.sdk.variables",
    "tradewind.operators.bash",
    "tradewind.operators.branch",
    "tradewind.operators.empty",
    "tradewind.operators.python",
    "tradewind.sensors.base",
    "tradewind.sensors.external_task",
    "tradewind.sensors.filesystem",
    "tradewind.sensors.python",
)
"""Modules that most DAG files import. pendulum takes 20 ms, and files written for Airflow 3 usually import it."""

MANY_FILES = 8
PRELOADED_FOR_MANY = (
    "tradewind.sdk.param_schema",
    "tradewind.sdk.assets",
    "tradewind.sdk.notifier",
    "tradewind.sdk.trigger",
    "tradewind.airflow.compat.dates",
    "tradewind.airflow.compat.email",
    "tradewind.airflow.compat.logging_mixin",
    "tradewind.airflow.compat.provider_helpers",
    "tradewind.airflow.compat.session",
    "tradewind.airflow.compat.state",
    "tradewind.airflow.compat.xcom",
    "tradewind.execution.other_runs",
    "tradewind.operators.email",
    "tradewind.operators.latest_only",
    "tradewind.operators.trigger_dagrun",
    "tradewind.operators.virtualenv",
    "tradewind.sensors.date_time",
    "tradewind.sensors.time_delta",
    "tradewind.timetables.trigger",
)
"""Modules that some DAG files import. They take 0.1 s (jsonschema, which checks params, takes most of it). The zygote imports them
when it reads its `MANY_FILES`th file: a folder with many files saves this time in each child, and a single file does not wait.
"""

OOM_SCORE = b"900"
"""If the machine runs out of memory, the kernel kills parse children first."""
CPU_GRACE_SECONDS = 2
WARM_ROUNDS = 10
"""The interpreter specialises code at about the eighth execution."""


class Zygote(ForkServer):
    """A fork server that also kills processes that parse children have left behind."""

    def __init__(self, link: socket.socket, child: Callable[[bytes, list[int]], None]) -> None:
        super().__init__(link, child, self._prepare_fork, lambda: fp("zygote.after_fork"))
        self._forks = 0

    def _reap(self) -> None:
        super()._reap()
        linux.reap_and_kill_orphans(self.living)

    def _prepare_fork(self, data: bytes) -> None:
        """List the folders of the file; import further modules, if this is the fork for one of many files."""
        fp("zygote.before_fork")
        order = decode_order(data)
        for folder in {order.folder, os.path.dirname(os.path.join(order.folder, order.file))}:
            list_for_imports(folder)
        self._forks += 1
        if self._forks == MANY_FILES:
            for name in PRELOADED_FOR_MANY:
                with contextlib.suppress(Exception):  # a child that needs the module reports the error
                    importlib.import_module(name)
            gc.freeze()


def main() -> None:
    """Entry point: `python -m tradewind.parser.base_image LINK_FD PARSER_PID`."""
    link = socket.socket(fileno=int(sys.argv[1]))
    link.set_inheritable(False)
    linux.die_with_parent(int(sys.argv[2]))
    linux.become_subreaper()
    linux.set_name("tw-zygote")
    linux.find_title()
    # Ctrl-C in a terminal goes to the whole process group, but the parser decides when the zygote ends
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    secret_names.configure_from(os.environ)
    for name in PRELOADED:
        importlib.import_module(name)
    importlib.import_module("tradewind.airflow.names").build_tables()
    read_entry_points()
    _warm_up()
    freeze_heap()
    me = os.getpid()
    link.send(encode(Ready()))
    Zygote(link, lambda order, descriptors: _child(me, order, descriptors)).serve()


SETTLED_SECONDS = 2.0


def list_for_imports(folder: str) -> None:
    """List a folder of Python's path once for all children. Python lists the folder again after a change.

    Otherwise each child lists the folder at its first import that is not loaded yet, which takes a millisecond with 1,000 files.
    A folder that changed just now is left to the child: two changes can have the same time.
    """
    finder = pkgutil.get_importer(folder)
    if not isinstance(finder, importlib.machinery.FileFinder):
        return
    try:
        changed = os.stat(folder).st_mtime
    except OSError:
        return
    if time.time() - changed < SETTLED_SECONDS:
        finder.invalidate_caches()
    else:
        finder.find_spec("tradewind_no_module")


_COMMON = """
from datetime import datetime
from tradewind import DAG, task
from tradewind.operators.bash import BashOperator
from tradewind.operators.python import PythonOperator

with DAG("d", schedule="@daily", start_date=datetime(2024, 1, 1), catchup=False, tags=["t"], default_args={"retries": 1}):
    one = BashOperator(task_id="one", bash_command="true")
    two = PythonOperator(task_id="two", python_callable=print)
    one >> two

    @task
    def three(): ...

    three()
"""


def _warm_up() -> None:
    """Read an ordinary file a few times. All children then share the modules, caches and specialised code that the first use
    creates, instead of creating it (and copying memory pages) in each child. This saves a fifth of the time for a small
    file."""
    for _ in range(WARM_ROUNDS):
        namespace: dict[str, object] = {"__name__": "tradewind_warm_up", "__file__": "warm_up.py"}
        with collecting() as collection:
            exec(compile(_COMMON, "warm_up.py", "exec"), namespace)
        for dag in collection.found(namespace).dags:
            _shape(definition := to_definition(dag, "warm_up.py", DefinitionDefaults()))
            version_hash(encode_definition(definition))


# --- the child --------------------------------------------------------------------------------------------------------


_PARSE_NAME = linux.ProcessName("tw-parse")
"""Made before the first fork: see `ProcessName`."""


def _child(parent: int, data: bytes, descriptors: list[int]) -> None:
    linux.die_with_parent(parent)
    order = decode_order(data)
    report, printed, *line = descriptors
    _set_up_process(order, report, printed)
    lookups = ParsingRuntime(line[0]) if line else None
    runtime.install(lookups)
    me = os.getpid()
    fp("parse.before_import")
    try:
        found = _handle_order(order)
    finally:
        # if the file has forked, its child process also runs this line; it must not write a report
        if os.getpid() != me:
            _exit(0)
        os._exit = _exit
    faulthandler.disable()
    faulthandler.unregister(signal.SIGXCPU)
    # lift the limit, so that the report can be written even if the file used all its memory
    resource.setrlimit(resource.RLIMIT_AS, (resource.getrlimit(resource.RLIMIT_AS)[1],) * 2)
    _flush()
    fp("parse.before_report")
    data = encode(found if lookups is None else _with_lookups(found, tuple(lookups.lookups)))
    try:
        os.ftruncate(report, 0)
        os.lseek(report, 0, os.SEEK_SET)
        with open(report, "wb", closefd=False) as file:
            file.write(REPORT)
            file.write(data)
    except OSError:
        _exit(problems.REPORT_LOST)


def _handle_order(order: ParseOrder) -> ChildReport:
    if order.ask is not None:
        return timetable_child.answer(order.ask, order.folder, order.memory_limit)
    if order.import_error is not None:
        return plugins_child.report_import_error(*order.import_error)
    if order.changed_assets is not None:
        return plugins_child.call_asset_listeners(order.changed_assets)
    return plugins_child.read_plugins(order.folder) if order.plugins else read_file(order)


def _with_lookups(report: ChildReport, lookups: tuple[str, ...]) -> ChildReport:
    """Variables and connections may change although no file changes, so the file is volatile."""
    if not lookups:
        return report
    return msgspec.structs.replace(
        report, lookups=lookups, volatile_because=report.volatile_because or f"it requests {lookups[0]}"
    )


def _set_up_process(order: ParseOrder, report: int, printed: int) -> None:
    """Set limits, start a session, redirect the output, and prepare a crash note for every way in which the process can end."""
    os.setsid()
    linux.become_subreaper()
    _PARSE_NAME.set()
    linux.set_title(f"tradewind parse {order.file}")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    os.close(printed)
    try:
        with open("/proc/self/oom_score_adj", "wb") as file:
            file.write(OOM_SCORE)
    except OSError:
        pass  # not allowed in some containers
    _limit(resource.RLIMIT_CORE, 0, 0)
    _limit(resource.RLIMIT_CPU, order.cpu_seconds, order.cpu_seconds + CPU_GRACE_SECONDS)
    if order.memory_limit:
        _limit(resource.RLIMIT_AS, order.memory_limit, resource.RLIM_INFINITY)
    # collect garbage, but rarely: a file may create a hundred thousand objects that are all in use
    gc.set_threshold(100_000, 20, 20)
    gc.enable()
    faulthandler.enable(report, all_threads=False)
    # the parser or the kernel sends this at the time limit: faulthandler writes the frames, then the process ends
    faulthandler.register(signal.SIGXCPU, report, all_threads=False, chain=True)
    _record_exits(report)
    _ignore_compiled_files(order.folder, plugins_folder())
    conf.install(order.user_settings)


def _limit(what: int, soft: int, hard: int) -> None:
    """Set a limit, but never above an existing lower limit."""
    highest = resource.getrlimit(what)[1]
    if highest != resource.RLIM_INFINITY:
        soft = min(soft, highest)
        hard = highest if hard == resource.RLIM_INFINITY else min(hard, highest)
    resource.setrlimit(what, (soft, hard))


_exit = os._exit


def _record_exits(report: int) -> None:
    me = os.getpid()

    def exit_with_note(status: int) -> None:
        if os.getpid() == me:
            try:
                os.pwrite(report, problems.note_of_exit(status).encode(errors="replace"), 0)
            except OSError:
                pass
        _exit(status)

    os._exit = exit_with_note  # type: ignore[assignment]


def _ignore_compiled_files(*folders: str) -> None:
    """Always compile the modules of these folders from source.

    Compiled files are compared with the time (in seconds) and size of their source, so an edit within the same second would be
    missed. Also, no compiled files are written to the folder, which may be read-only or under version control.
    """
    original = importlib.machinery.SourceFileLoader.path_stats
    roots = _roots(*folders)

    def path_stats(loader: importlib.machinery.SourceFileLoader, path: str) -> object:
        if path.startswith(roots):
            raise OSError("sources in the DAG folder are always compiled")
        return original(loader, path)

    importlib.machinery.SourceFileLoader.path_stats = path_stats  # type: ignore[method-assign,assignment]


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # the file may have closed or replaced the stream
            pass


# --- reading a file ---------------------------------------------------------------------------------------------------


def read_file(order: ParseOrder) -> ChildReport:
    """Import the file and encode its DAGs. Any exception of the file becomes a problem."""
    path = os.path.join(order.folder, order.file)
    open_dags.author_warnings.clear()
    try:
        loaded = load_file(order.folder, order.file)
    except MemoryError as error:
        return ChildReport(problems=(problems.out_of_memory(error, path, order.memory_limit),))
    except BaseException as error:
        return ChildReport(problems=(problems.from_exception(error, path),), sources=_loaded_sources(order.folder, path))
    dags: list[ReadDag] = []
    found: list[Problem] = []
    for dag in loaded.dags.values():
        try:
            dags.append(_encode_dag(dag, order, loaded.duplicates.get(dag.dag_id)))
        except MemoryError as error:
            found.append(problems.out_of_memory(error, path, order.memory_limit))
        except Exception as error:
            found.append(_with_line(problems.from_exception(error, path), dag, path))
    sources: Any = tuple(map(tuple, loaded.sources))
    connections = _connections(loaded) if order.find_connections else ()
    return ChildReport(tuple(dags), tuple(found), sources, _why_volatile(loaded), connections=connections)


def _connections(loaded: Loaded) -> tuple[str, ...]:
    """The connection ids of all operators: attributes such as `conn_id` and `aws_conn_id`."""
    found: set[str] = set()
    for dag in loaded.dags.values():
        for task in dag.task_dict.values():
            for name, value in vars(task).items():
                if name.endswith("conn_id") and isinstance(value, str) and value and "{{" not in value:
                    found.add(value)
    return tuple(sorted(found))


def _loaded_sources(folder: str, path: str) -> tuple[tuple[str, int, int], ...]:
    """Modules of the folder that a failed import had loaded. After a change in one of them the file is read again."""
    roots = _roots(folder, plugins_folder())
    found = []
    for module in list(sys.modules.values()):
        origin = getattr(module, "__file__", None)
        if isinstance(origin, str) and origin != path and origin.startswith(roots):
            try:
                facts = os.stat(origin)
            except OSError:
                continue
            found.append((origin, facts.st_mtime_ns, facts.st_size))
    return tuple(found)


def _roots(*folders: str) -> tuple[str, ...]:
    """The path prefixes of these folders, with and without resolved links."""
    return tuple(os.path.join(path, "") for folder in folders for path in (folder, os.path.realpath(folder)))


def _why_volatile(loaded: Loaded) -> str | None:
    return loaded.volatile_because if loaded.dags else None


def _with_line(problem: Problem, dag: DAG, path: str) -> Problem:
    line = dag.location.line if problem.line is None and dag.location.file == path else problem.line
    return Problem(problem.message, problem.stack_trace, line)


def _encode_dag(dag: DAG, order: ParseOrder, warning: str | None = None) -> ReadDag:
    """The DAG as plain values. `warning`: one that belongs to its file, in addition to its own."""
    if len(dag.task_dict) > order.max_tasks:
        raise DefinitionError(
            dag.located_message(
                f"the DAG has {len(dag.task_dict)} tasks; at most {order.max_tasks} are allowed (setting parser.max_tasks_per_dag)"
            )
        )
    definition = to_definition(dag, order.file.replace(os.sep, "/"), order.defaults)
    more = (*dag_warnings.of_author(open_dags.author_warnings, dag), *([warning] if warning is not None else ()))
    if more:
        definition = msgspec.structs.replace(definition, warnings=(*definition.warnings, *more))
    try:
        data = encode_definition(definition)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise DefinitionError(
            dag.located_message(f"cannot encode the DAG: {error}; {_hint_for_encoding(definition)}")
        ) from None
    made_in = os.path.relpath(dag.fileloc, order.folder) if os.path.isabs(dag.fileloc) else order.file
    return ReadDag(dag.dag_id, data, version_hash(data), _shape(definition), made_in, definition.warnings)


def _hint_for_encoding(definition: DagDefinition) -> str:
    """Which part of the definition cannot be encoded."""
    for task in definition.tasks:
        try:
            encode(task)
        except (TypeError, ValueError, OverflowError, RecursionError):
            return f"check the arguments of task {task.task_id!r}, first its params"
    return "check the arguments of the DAG, first its params"


def _shape(definition: DagDefinition) -> str:
    tasks = [(task.task_id, task.operator, task.upstream) for task in definition.tasks]
    return hashlib.sha256(encode((definition.schedule, tasks))).hexdigest()[:32]


if __name__ == "__main__":
    main()
