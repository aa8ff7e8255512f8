"""Rules of style that a test can check."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shape.source import ROOT, TESTS, imports, modules, names_passed, syntax_tree
from tradewind.settings.options import BY_NAME

LONGEST_FUNCTION = 80
"""Lines of a function, including signature and docstring."""

LONG_FUNCTIONS: dict[str, str] = {}
"""Functions that may be longer (`api/app.py: make_app`) → the reason why they cannot be split sensibly."""

WORDS = ("TO" + "DO", "FIX" + "ME", "X" * 3)
"""Split into parts, so that this file does not contain the words."""

PYTHON_FOLDERS = ("src", "tests", "examples", "benchmarks", "docs")
SKIPPED = {"__pycache__", "scratch", "node_modules"}


@functools.cache
def files(*endings: str) -> list[Path]:
    """The project's own files with these endings."""
    found = [path for folder in PYTHON_FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.suffix in endings]
    found += [path for path in sorted(ROOT.iterdir()) if path.suffix in endings]
    return [path for path in found if not SKIPPED & set(path.parts)]


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(syntax_tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_no_comment_postpones_work() -> None:
    """A missing feature raises an error that says so. A note in a comment is not enough."""
    pattern = re.compile(rf"\b({'|'.join(WORDS)})\b")
    found = [
        f"{shown(path)}:{number}"
        for path in files(".py", ".md", ".sql", ".toml", ".sh")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_functions_fit_on_a_screen() -> None:
    """A function of more than 80 lines does more than its name says."""
    known = set()
    found = []
    for path in files(".py"):
        if path.read_bytes().count(b"\n") < LONGEST_FUNCTION:
            continue
        for node in functions(path):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            place = f"{shown(path).removeprefix('src/tradewind/')}: {node.name}"
            if length > LONGEST_FUNCTION:
                known.add(place)
                if place not in LONG_FUNCTIONS:
                    found.append(f"{place} has {length} lines")
    assert found == []
    assert set(LONG_FUNCTIONS) - known == set(), "these functions are short now: remove them from LONG_FUNCTIONS"


def test_every_module_has_a_docstring() -> None:
    """Except tests and files without code."""
    found = [
        shown(path)
        for path in files(".py")
        if TESTS not in path.parents
        and path.read_bytes().strip()
        and not ast.get_docstring(syntax_tree(path))
        and syntax_tree(path).body
    ]
    assert found == []


def _sleeps(node: ast.Call) -> bool:
    """True for calls of `time.sleep` and `asyncio.sleep`, except `sleep(0)`."""
    if ast.unparse(node.func) not in ("time.sleep", "sleep", "asyncio.sleep"):
        return False
    return not (node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0)


MAY_SLEEP = {
    "tests/chaos": "the kill test kills at random moments on purpose",
    "tests/conformance/workflows.py": "in virtual time",
    "tests/unit/testing/test_simulation.py": "in virtual time, where a sleep sets the duration of a task",
}


def test_tests_do_not_sleep() -> None:
    """Tests wait for the event itself. DAG files in folders named `dags` may sleep, because some tasks must take long."""
    found = []
    for path in files(".py"):
        if TESTS not in path.parents or path.parent.name == "dags" or {shown(path), shown(path.parent)} & set(MAY_SLEEP):
            continue
        local = {node.name for node in functions(path)}
        for node in ast.walk(syntax_tree(path)):
            if isinstance(node, ast.Call) and _sleeps(node) and ast.unparse(node.func) not in local:
                found.append(f"{shown(path)}:{node.lineno}")
    assert found == []


SIDE_EFFECT_MODULES = {
    "asyncio",
    "datetime",
    "io",
    "logging",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "secrets",
    "shutil",
    "signal",
} | {
    "socket",
    "sqlite3",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "uuid",
    "zoneinfo",
}


def test_the_kernel_has_no_side_effects() -> None:
    """No clock, no randomness, no files, no processes: its decisions depend only on its arguments."""
    found = [
        f"{module.shown} line {one.line} imports {one.module}"
        for module in modules().values()
        if module.package == "kernel"
        for one in imports(module.name)
        if one.module.partition(".")[0] in SIDE_EFFECT_MODULES
    ]
    assert found == []
    builtins = [
        f"{module.shown} line {node.lineno} calls {node.func.id}"
        for module in modules().values()
        if module.package == "kernel"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("open", "print", "input")
    ]
    assert builtins == []


def _armed_in(path: Path) -> tuple[set[str], set[str]]:
    """The failpoints and wake-ups that a test file sets through the environment: `{"TRADEWIND_FAILPOINTS": "name=kill9"}`."""
    points: set[str] = set()
    wakeups: set[str] = set()
    for node in ast.walk(syntax_tree(path)):
        pairs: list[tuple[ast.expr | None, ast.expr]] = []
        if isinstance(node, ast.Dict):
            pairs = list(zip(node.keys, node.values, strict=True))
        elif isinstance(node, ast.Call):
            pairs = [(ast.Constant(word.arg), word.value) for word in node.keywords]
            pairs += [(node.args[0], node.args[1])] if len(node.args) >= 2 else []
        for key, value in pairs:
            name = getattr(key, "value", None)
            text = getattr(value, "value", None)
            if name == "TRADEWIND_FAILPOINTS" and isinstance(text, str):
                points |= {part.partition("=")[0].strip() for part in text.split(";") if part.strip()}
            elif name == "TRADEWIND_DROP_WAKEUPS" and isinstance(text, str):
                wakeups |= {part.strip() for part in text.split(",") if part.strip()}
    return points, wakeups


def _tabled_in(path: Path, processes: set[str]) -> set[str]:
    """Names of failpoints in the tables of a test file: texts like `host.launch`, a process and a moment.

    Names of settings look the same and are left out.
    """
    pattern = re.compile(rf"({'|'.join(sorted(processes))})\.[a-z_]+")
    texts = (
        node.value for node in ast.walk(syntax_tree(path)) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return {text for text in texts if pattern.fullmatch(text)} - BY_NAME.keys()


def test_failpoints_that_tests_arm_exist() -> None:
    """A test of a renamed failpoint would pass without testing anything."""
    source = [module.path for module in modules().values() if module.name != "tradewind.observe.failpoints"]
    points = set().union(*(names_passed(path, "fp") for path in source))
    wakeups = set().union(*(names_passed(path, "drop") for path in source))
    assert points
    assert wakeups
    found = []
    for path in files(".py"):
        # the tests of the failpoints themselves use names that do not exist in the source
        if TESTS not in path.parents or shown(path) in (
            "tests/unit/observe/test_failpoints.py",
            "tests/shape/sample_of_arming.py",
        ):
            continue
        text = path.read_text(encoding="utf-8")
        if "TRADEWIND_FAILPOINTS" not in text and "TRADEWIND_DROP_WAKEUPS" not in text:
            continue
        armed, dropped = _armed_in(path)
        if "TRADEWIND_FAILPOINTS" in text:
            armed |= _tabled_in(path, {name.partition(".")[0] for name in points})
        found += [f"{shown(path)}: failpoint {name}" for name in sorted(armed - points)]
        found += [f"{shown(path)}: wake-up {name}" for name in sorted(dropped - wakeups)]
    assert found == []


def test_armed_names_are_found_in_tests() -> None:
    """The test above recognizes every way in which a test sets failpoints."""
    sample = TESTS / "shape" / "sample_of_arming.py"
    assert _armed_in(sample) == ({"a.b", "c.d"}, {"x", "y"})


HEAVY = (
    "jinja2",
    "pendulum",
    "sqlalchemy",
    "fastapi",
    "pydantic",
    "starlette",
    "rich",
    "click",
    "cryptography",
    "sqlite3",
    "yaml",
)

LIGHT = "import tradewind.platform.light_imports"
IN_FEW_SERVICES = ("inspect", "dataclasses", "ssl", "importlib.resources", "asyncio")
GIT = ("tradewind.bundles.git_repository", "tradewind.bundles.fetch_child")


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import tradewind", (*HEAVY, "tradewind.sdk", "importlib.metadata")),
        ("from tradewind import DAG, dag, task, task_group, Param, TaskGroup, XComArg, chain, BaseOperator", HEAVY),
        ("import tradewind.operators.bash, tradewind.operators.python, tradewind.sensors.filesystem", HEAVY),
        (
            "import tradewind.scheduler.server",
            ("fastapi", "jinja2", "pendulum", "sqlalchemy", "rich", "click"),
        ),
        ("import tradewind.worker.host", ("fastapi", "jinja2", "pendulum", "sqlite3", "rich", "click")),
        ("import tradewind.kernel.machine", (*HEAVY, "asyncio", "socket")),
        # a megabyte each, in every service, all the time; a service starts with light_imports
        (
            f"{LIGHT}, tradewind.cli.compose.scheduler, tradewind.scheduler.composition, tradewind.store.factory",
            (*IN_FEW_SERVICES, "tradewind.gateway"),
        ),
        (f"{LIGHT}, tradewind.cli.compose.worker_host, tradewind.worker.host", (*IN_FEW_SERVICES, *GIT)),
        (f"{LIGHT}, tradewind.cli.compose.parser, tradewind.parser.main", (*IN_FEW_SERVICES, *GIT)),
        ("import tradewind.cli.commands.standalone", ("dataclasses", "ssl", "sqlite3", "tradewind.store", "cryptography")),
    ],
)
def test_imports_are_light(statement: str, absent: tuple[str, ...]) -> None:
    """Only code that uses a heavy package imports it, and no process with user code has the database driver loaded."""
    code = f"{statement}\nimport sys\nprint(*(name for name in {absent!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == []


def test_version_is_the_one_of_pyproject() -> None:
    import tomllib

    import tradewind

    assert tradewind.__version__ == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_each_migration_has_its_own_number() -> None:
    numbers = [path.name[:4] for path in (ROOT / "src/tradewind/store/migrations").glob("*.sqlite.sql")]
    assert sorted(numbers) == [f"{number:04d}" for number in range(1, len(numbers) + 1)]
