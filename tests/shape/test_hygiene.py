"""Habits of the house that a machine can look after."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shape.source import ROOT, TESTS, imports, modules, names_passed
from tradewind.settings.options import BY_NAME

LONGEST_FUNCTION = 80
"""Lines, with signature and docstring."""

LONG_FUNCTIONS: dict[str, str] = {}
"""Functions that may be longer (`api/app.py: make_app`) → why they cannot be split sensibly."""

WORDS = ("TO" + "DO", "FIX" + "ME", "X" * 3)
"""Written so that this file does not name them."""

PYTHON_FOLDERS = ("src", "tests", "examples", "benchmarks", "docs")
SKIPPED = {"__pycache__", "scratch", "node_modules"}


@functools.cache
def files(*endings: str) -> list[Path]:
    """The project's own files with these endings."""
    found = [path for folder in PYTHON_FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.suffix in endings]
    found += [path for path in sorted(ROOT.iterdir()) if path.suffix in endings]
    return [path for path in found if not SKIPPED & set(path.parts)]


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes(), str(path))


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_nothing_is_left_for_later() -> None:
    """What is not built yet raises an error that says so; no note in the code stands for it."""
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
        for node in functions(path):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            place = f"{shown(path).removeprefix('src/tradewind/')}: {node.name}"
            if length > LONGEST_FUNCTION:
                known.add(place)
                if place not in LONG_FUNCTIONS:
                    found.append(f"{place} has {length} lines")
    assert found == []
    assert set(LONG_FUNCTIONS) - known == set(), "these are short by now"


def test_every_module_says_what_it_is_for() -> None:
    """A docstring at the top of each file with code in it."""
    found = [
        shown(path)
        for path in files(".py")
        if TESTS not in path.parents and path.read_bytes().strip() and not ast.get_docstring(tree(path)) and tree(path).body
    ]
    assert found == []


def _sleeps(node: ast.Call) -> bool:
    """time.sleep, asyncio.sleep of more than nothing."""
    if ast.unparse(node.func) not in ("time.sleep", "sleep", "asyncio.sleep"):
        return False
    return not (node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0)


MAY_SLEEP = {
    "tests/chaos": "the killer strikes at random moments, which is its work",
    "tests/conformance/workflows.py": "in virtual time",
    "tests/unit/testing/test_simulation.py": "in virtual time, where a sleep is how long a task takes",
}


def test_tests_do_not_sleep() -> None:
    """They wait for the event itself. (DAG files for tests may, in folders called `dags`: a task that takes long has to.)"""
    found = []
    for path in files(".py"):
        if TESTS not in path.parents or path.parent.name == "dags" or {shown(path), shown(path.parent)} & set(MAY_SLEEP):
            continue
        local = {node.name for node in functions(path)}
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and _sleeps(node) and ast.unparse(node.func) not in local:
                found.append(f"{shown(path)}:{node.lineno}")
    assert found == []


WORLD = {
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


def test_the_kernel_does_not_touch_the_world() -> None:
    """No clock, no randomness, no files, no processes: what it decides follows from what it was handed."""
    found = [
        f"{module.shown} line {one.line} imports {one.module}"
        for module in modules().values()
        if module.package == "kernel"
        for one in imports(module.name)
        if one.module.partition(".")[0] in WORLD
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
    """Failpoints and wake-ups that a test arms through the environment: `{"TRADEWIND_FAILPOINTS": "name=kill9"}`."""
    points: set[str] = set()
    wakeups: set[str] = set()
    for node in ast.walk(tree(path)):
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
    """Names of failpoints in tables that a test goes through: texts like `host.launch`, a process and a moment.

    Settings are called so, too.
    """
    pattern = re.compile(rf"({'|'.join(sorted(processes))})\.[a-z_]+")
    texts = (node.value for node in ast.walk(tree(path)) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return {text for text in texts if pattern.fullmatch(text)} - BY_NAME.keys()


def test_failpoints_that_tests_arm_exist() -> None:
    """A failpoint that was renamed would make its test pass without testing anything."""
    source = [module.path for module in modules().values() if module.name != "tradewind.observe.failpoints"]
    points = set().union(*(names_passed(path, "fp") for path in source))
    wakeups = set().union(*(names_passed(path, "drop") for path in source))
    assert points
    assert wakeups
    found = []
    for path in files(".py"):
        # the tests of the mechanism itself use names of their own
        if TESTS not in path.parents or shown(path) in (
            "tests/unit/observe/test_failpoints.py",
            "tests/shape/sample_of_arming.py",
        ):
            continue
        armed, dropped = _armed_in(path)
        if "TRADEWIND_FAILPOINTS" in path.read_text(encoding="utf-8"):
            armed |= _tabled_in(path, {name.partition(".")[0] for name in points})
        found += [f"{shown(path)}: failpoint {name}" for name in sorted(armed - points)]
        found += [f"{shown(path)}: wake-up {name}" for name in sorted(dropped - wakeups)]
    assert found == []


def test_armed_names_are_found_in_tests() -> None:
    """The test above sees what a test writes."""
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
    ],
)
def test_imports_are_light(statement: str, absent: tuple[str, ...]) -> None:
    """Whoever pays for a heavy package is whoever uses it; no process of users' code can reach the database's driver by chance."""
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
