"""The process that reads DAG files: a bare image, forked once for each file.

    parser ──exec──▶ zygote ──fork──▶ parse child (imports one file, writes what it found into a memory file, ends)

The zygote has imported what authors import and nothing else: no store, no settings, no credentials in its environment. A child
has limits of time, memory and core files, a session of its own, and is a subreaper: whatever it leaves behind comes to the
zygote, which kills it. So a file may loop, crash, exit or fork: its child ends, and only its own last version stays.

A child that cannot speak any more leaves a note in the memory file: faulthandler's frames, or the line that called `os._exit`.
"""

from __future__ import annotations

import faulthandler
import gc
import hashlib
import importlib
import importlib.machinery
import os
import resource
import signal
import socket
import sys
from typing import TYPE_CHECKING

import msgspec

from tradewind.model import secret_names
from tradewind.model.definition import DagDefinition, DefinitionDefaults, encode_definition, version_hash
from tradewind.model.errors import DefinitionError
from tradewind.observe.failpoints import fp
from tradewind.parser import import_requests, plugins_child, problems
from tradewind.parser.lookups_child import ParsingRuntime
from tradewind.parser.orders import REPORT, ParseOrder, decode_order
from tradewind.parser.parse_result import ChildReport, Problem, ReadDag
from tradewind.platform import linux
from tradewind.platform.fork_server import ForkServer, Ready, encode, freeze_heap
from tradewind.sdk.conf import conf
from tradewind.sdk.definition import to_definition
from tradewind.sdk.load import Loaded, load_file, plugins_folder
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
"""What DAG files nearly always import. pendulum is here because files written for Airflow 3 begin with it and it takes 20 ms."""

OOM_SCORE = b"900"
"""When the machine runs out of memory, a parse child is the kernel's first choice."""
CPU_GRACE_SECONDS = 2
WARM_ROUNDS = 10
"""The interpreter specialises code at about the eighth run."""


class Zygote(ForkServer):
    """The fork server, which also ends what dead parse children leave behind."""

    def _reap(self) -> None:
        super()._reap()
        linux.reap_and_kill_orphans(self.living)


def main() -> None:
    """Entry: `python -m tradewind.parser.base_image LINK_FD PARSER_PID`."""
    link = socket.socket(fileno=int(sys.argv[1]))
    link.set_inheritable(False)
    linux.die_with_parent(int(sys.argv[2]))
    linux.become_subreaper()
    linux.set_name("tw-zygote")
    linux.find_title()
    # a terminal's Ctrl-C goes to the whole group; when to end is the parser's affair
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    secret_names.configure_from(os.environ)
    for name in PRELOADED:
        importlib.import_module(name)
    _warm_up()
    freeze_heap()
    me = os.getpid()
    link.send(encode(Ready()))
    Zygote(
        link,
        lambda order, descriptors: _child(me, order, descriptors),
        lambda: fp("zygote.before_fork"),
        lambda: fp("zygote.after_fork"),
    ).serve()


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
    """Read an ordinary file a few times: what is imported late, cached or specialised at first use is then shared by every
    child, instead of being made (and the pages it lies on copied) in each. A fifth of what a small file costs."""
    for _ in range(WARM_ROUNDS):
        namespace: dict[str, object] = {"__name__": "tradewind_warm_up", "__file__": "warm_up.py"}
        with collecting() as collection:
            exec(compile(_COMMON, "warm_up.py", "exec"), namespace)
        for dag in collection.found(namespace).dags:
            _shape(definition := to_definition(dag, "warm_up.py", DefinitionDefaults()))
            version_hash(encode_definition(definition))


# --- the child --------------------------------------------------------------------------------------------------------


def _child(parent: int, data: bytes, descriptors: list[int]) -> None:
    linux.die_with_parent(parent)
    order = decode_order(data)
    report, printed, *line = descriptors
    _run_without_scheduler(order, report, printed)
    lookups = ParsingRuntime(line[0]) if line else None
    runtime.install(lookups)
    me = os.getpid()
    fp("parse.before_import")
    try:
        found = _answer(order)
    finally:
        # the file may have forked: its child comes by here too, and has nothing to say
        if os.getpid() != me:
            _exit(0)
        os._exit = _exit
    faulthandler.disable()
    faulthandler.unregister(signal.SIGXCPU)
    # a report must get out even of a file that took all it was allowed
    resource.setrlimit(resource.RLIMIT_AS, (resource.getrlimit(resource.RLIMIT_AS)[1],) * 2)
    _flush()
    fp("parse.before_report")
    data = encode(found if lookups is None else _with_asked(found, tuple(lookups.asked)))
    try:
        os.ftruncate(report, 0)
        os.lseek(report, 0, os.SEEK_SET)
        with open(report, "wb", closefd=False) as file:
            file.write(REPORT)
            file.write(data)
    except OSError:
        _exit(problems.REPORT_LOST)


def _answer(order: ParseOrder) -> ChildReport:
    if order.ask is not None:
        return import_requests.answer(order.ask, order.memory_limit)
    return plugins_child.read_plugins(order.folder) if order.plugins else read_file(order)


def _with_asked(report: ChildReport, asked: tuple[str, ...]) -> ChildReport:
    """What a file asks for may change although no file does."""
    if not asked:
        return report
    return msgspec.structs.replace(report, asked=asked, volatile_because=report.volatile_because or f"it asks for {asked[0]}")


def _run_without_scheduler(order: ParseOrder, report: int, printed: int) -> None:
    """Limits, a session of its own, its output in our pipe, a last word for every way to end."""
    os.setsid()
    linux.become_subreaper()
    linux.set_name("tw-parse")
    linux.set_title(f"tradewind parse {order.file}")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    os.close(printed)
    try:
        with open("/proc/self/oom_score_adj", "wb") as file:
            file.write(OOM_SCORE)
    except OSError:
        pass  # a container may forbid it
    _limit(resource.RLIMIT_CORE, 0, 0)
    _limit(resource.RLIMIT_CPU, order.cpu_seconds, order.cpu_seconds + CPU_GRACE_SECONDS)
    if order.memory_limit:
        _limit(resource.RLIMIT_AS, order.memory_limit, resource.RLIM_INFINITY)
    # the collector visits what a file makes, but seldom: a hundred thousand tasks are not garbage
    gc.set_threshold(100_000, 20, 20)
    gc.enable()
    faulthandler.enable(report, all_threads=False)
    # sent at the time limit, by the parser or by the kernel: the frames are written, then it kills
    faulthandler.register(signal.SIGXCPU, report, all_threads=False, chain=True)
    _note_exits(report)
    _compile_anew(order.folder, plugins_folder())
    conf.install(order.user_settings)


def _limit(what: int, soft: int, hard: int) -> None:
    """A limit, where the one that we were given is not lower already."""
    highest = resource.getrlimit(what)[1]
    if highest != resource.RLIM_INFINITY:
        soft = min(soft, highest)
        hard = highest if hard == resource.RLIM_INFINITY else min(hard, highest)
    resource.setrlimit(what, (soft, hard))


_exit = os._exit


def _note_exits(report: int) -> None:
    me = os.getpid()

    def exit_with_note(status: int) -> None:
        if os.getpid() == me:
            try:
                os.pwrite(report, problems.note_of_exit(status).encode(errors="replace"), 0)
            except OSError:
                pass
        _exit(status)

    os._exit = exit_with_note  # type: ignore[assignment]


def _compile_anew(*folders: str) -> None:
    """Never take these folders' modules from compiled files.

    Compiled files are told apart by the second and the size of their source: an edit within one second would be missed. Nor
    are any left in the folder, which may be read-only or under version control.
    """
    original = importlib.machinery.SourceFileLoader.path_stats
    roots = _roots(*folders)

    def path_stats(loader: importlib.machinery.SourceFileLoader, path: str) -> object:
        if path.startswith(roots):
            raise OSError("sources in the DAG folder are compiled anew")
        return original(loader, path)

    importlib.machinery.SourceFileLoader.path_stats = path_stats  # type: ignore[method-assign,assignment]


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # the file may have closed or replaced it
            pass


# --- reading ----------------------------------------------------------------------------------------------------------


def read_file(order: ParseOrder) -> ChildReport:
    """Import the file and write its DAGs down. Whatever the file raises becomes a problem."""
    path = os.path.join(order.folder, order.file)
    try:
        loaded = load_file(order.folder, order.file)
    except MemoryError as error:
        return ChildReport(problems=(problems.out_of_memory(error, path, order.memory_limit),))
    except BaseException as error:
        return ChildReport(problems=(problems.from_exception(error, path),), sources=_loaded_sources(order.folder, path))
    dags: list[ReadDag] = []
    found: list[Problem] = [_duplicate(sentence) for sentence in loaded.duplicates]
    for dag in loaded.dags.values():
        try:
            dags.append(_written_down(dag, order))
        except MemoryError as error:
            found.append(problems.out_of_memory(error, path, order.memory_limit))
        except Exception as error:
            found.append(_with_place(problems.from_exception(error, path), dag, path))
    return ChildReport(tuple(dags), tuple(found), tuple(map(tuple, loaded.sources)), _why_volatile(loaded))  # type: ignore[arg-type]


def _loaded_sources(folder: str, path: str) -> tuple[tuple[str, int, int], ...]:
    """Modules of the folder that a failed import had loaded: an edit of any of them is a reason to try again."""
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
    """How paths below these folders begin, links resolved or not."""
    return tuple(os.path.join(path, "") for folder in folders for path in (folder, os.path.realpath(folder)))


def _why_volatile(loaded: Loaded) -> str | None:
    return loaded.volatile_because if loaded.dags else None


def _duplicate(sentence: str) -> Problem:
    place = sentence.rpartition(" line ")[2].split(" ")[0]
    return Problem(f"DefinitionError: {sentence}", sentence, int(place) if place.isdigit() else None)


def _with_place(problem: Problem, dag: DAG, path: str) -> Problem:
    line = dag.location.line if problem.line is None and dag.location.file == path else problem.line
    return Problem(problem.message, problem.stack_trace, line)


def _written_down(dag: DAG, order: ParseOrder) -> ReadDag:
    if len(dag.task_dict) > order.max_tasks:
        raise DefinitionError(
            dag.located_message(
                f"it has {len(dag.task_dict)} tasks; at most {order.max_tasks} are allowed (setting parser.max_tasks_per_dag)"
            )
        )
    definition = to_definition(dag, order.file.replace(os.sep, "/"), order.defaults)
    try:
        data = encode_definition(definition)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise DefinitionError(dag.located_message(f"it cannot be written down: {error}; {_unwritable(definition)}")) from None
    made_in = os.path.relpath(dag.fileloc, order.folder) if os.path.isabs(dag.fileloc) else order.file
    return ReadDag(dag.dag_id, data, version_hash(data), _shape(definition), made_in, definition.warnings)


def _unwritable(definition: DagDefinition) -> str:
    """Where the value is that cannot be written down."""
    for task in definition.tasks:
        try:
            encode(task)
        except (TypeError, ValueError, OverflowError, RecursionError):
            return f"look at the arguments of task {task.task_id!r}, its params first"
    return "look at the arguments of the DAG, its params first"


def _shape(definition: DagDefinition) -> str:
    arrows = [(task.task_id, task.operator, task.upstream) for task in definition.tasks]
    return hashlib.sha256(encode((definition.schedule, arrows))).hexdigest()[:32]


if __name__ == "__main__":
    main()
